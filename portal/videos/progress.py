"""How a video's transcoding stands, for the pages and the API; one query, since clients poll.

A worker shows by its lease that it lives: an attempt whose lease ran out is not under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any
from uuid import UUID

from tortoise.connection import get_connection

from portal.database.models import VideoStatus
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.notes import Note


class TranscodeStage(StrEnum):
    """What is being done for a video. The first three are of `transcoding.Stage`."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"
    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"


class RenditionStage(StrEnum):
    """How a rendition stands."""

    PLANNED = "planned"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How far a job is. `queue_position` counts from 1 while it waits."""

    stage: TranscodeStage
    percent: float
    seconds_left: float | None = None
    queue_position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenditionProgress:
    """A rendition, planned or made; what is measured is None until then."""

    name: str
    kind: Kind
    state: RenditionStage
    width: int | None
    height: int | None
    fps: float | None
    codecs: str | None
    bandwidth_bps: int | None
    average_bandwidth_bps: int | None
    size_bytes: int | None
    language: str | None
    label: str | None
    copied: bool
    error_code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything about a video's transcoding.

    `work` is the way to ready, `remaining` what is still done for a video that is ready.
    """

    work: Work
    remaining: Work | None
    failure_code: str | None
    failure_message: str | None
    notes: tuple[Note, ...]
    renditions: tuple[RenditionProgress, ...]
    has_poster: bool
    has_storyboard: bool

    @property
    def unfinished(self) -> tuple[RenditionProgress, ...]:
        """The renditions that are still to come."""
        return tuple(
            it
            for it in self.renditions
            if it.state in (RenditionStage.PLANNED, RenditionStage.RUNNING)
        )

    @property
    def failed(self) -> tuple[RenditionProgress, ...]:
        """The renditions that were given up."""
        return tuple(it for it in self.renditions if it.state is RenditionStage.FAILED)


VIDEOS = """
WITH unfinished AS (
  SELECT id, CASE status WHEN 'processing' THEN transcode_job_id ELSE complete_job_id END AS job_id,
         CASE status WHEN 'processing' THEN 0 ELSE -1 END AS rank
  FROM videos
  WHERE (status = 'processing' OR complete_job_id IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM attempts
      WHERE video_id = videos.id AND outcome IS NULL AND lease_expires_at > now()
    )
), waiting AS (
  -- In the order in which the queue hands jobs out; a lost one will be replaced.
  SELECT unfinished.id, rank() OVER (ORDER BY rank DESC, job.priority DESC, job_id) AS position
  FROM unfinished LEFT JOIN procrastinate_jobs job ON job.id = unfinished.job_id
)
SELECT video.id, video.status, video.failure_code, video.failure_message, video.notes,
       video.has_poster, video.has_storyboard, video.published_attempt, video.complete_job_id,
       attempt.number, attempt.stage, attempt.percent, attempt.eta_s,
       waiting.position, COALESCE(made.renditions, '[]') AS renditions
FROM videos video
LEFT JOIN waiting ON waiting.id = video.id
LEFT JOIN LATERAL (
  SELECT * FROM attempts
  WHERE video_id = video.id AND outcome IS NULL AND lease_expires_at > now()
  ORDER BY number DESC LIMIT 1
) attempt ON true
CROSS JOIN LATERAL (
  SELECT json_agg(rendition ORDER BY rendition.position) AS renditions
  FROM renditions rendition WHERE video_id = video.id
) made
WHERE video.id = ANY(%s)
"""

Row = Mapping[str, Any]


async def fetch_progress(video_ids: Sequence[UUID]) -> dict[UUID, Progress]:
    """How the transcoding of these videos stands, as far as there are such videos."""
    rows = await get_connection("default").execute_query_dict(VIDEOS, [list(video_ids)])
    return {row["id"]: _progress(row) for row in rows}


def _progress(video: Row) -> Progress:
    rows = video["renditions"]
    return Progress(
        work=_work(video),
        remaining=_remaining(video, rows),
        failure_code=video["failure_code"],
        failure_message=video["failure_message"],
        notes=tuple(Note(code) for code in video["notes"]),
        renditions=tuple(_rendition(row, making=video["number"]) for row in rows),
        has_poster=video["has_poster"] and video["published_attempt"] is not None,
        has_storyboard=video["has_storyboard"] and video["published_attempt"] is not None,
    )


def _work(video: Row) -> Work:
    if video["status"] == VideoStatus.READY:
        return Work(stage=TranscodeStage.READY, percent=100.0)
    if video["status"] == VideoStatus.FAILED:
        return Work(stage=TranscodeStage.FAILED, percent=0.0)
    return _attempt(video, percent=video["percent"])


def _remaining(video: Row, rows: Sequence[Row]) -> Work | None:
    if video["status"] != VideoStatus.READY or video["complete_job_id"] is None:
        return None
    return _attempt(video, percent=_share_made(video, rows))


def _attempt(video: Row, *, percent: float | None) -> Work:
    if video["number"] is None:
        return Work(
            stage=TranscodeStage.WAITING, percent=percent or 0.0, queue_position=video["position"]
        )
    return Work(
        stage=TranscodeStage(video["stage"]), percent=percent or 0.0, seconds_left=video["eta_s"]
    )


def _share_made(video: Row, rows: Sequence[Row]) -> float:
    """Percent of what later passes make; a rendition counts as its number of pixels."""
    total = made = 0.0
    for row in rows:
        if row["kind"] != Kind.VIDEO or row["attempt_number"] == video["published_attempt"]:
            continue
        pixels = (row["width"] or 1) * (row["height"] or 1)
        if row["state"] == RenditionStage.COMPLETE:
            total, made = total + pixels, made + pixels
        elif row["state"] == RenditionStage.PLANNED:
            is_running = video["number"] is not None and row["attempt_number"] == video["number"]
            total += pixels
            made += pixels * video["percent"] / 100 if is_running else 0.0
    return 100.0 * made / total if total else 100.0


def _rendition(row: Row, *, making: int | None) -> RenditionProgress:
    state = RenditionStage(row["state"])
    if state is RenditionStage.PLANNED and making is not None and row["attempt_number"] == making:
        state = RenditionStage.RUNNING
    return RenditionProgress(
        name=row["name"],
        kind=Kind(row["kind"]),
        state=state,
        width=row["width"],
        height=row["height"],
        fps=float(Fraction(row["frame_rate"])) if row["frame_rate"] else None,
        codecs=row["codecs"],
        bandwidth_bps=row["bandwidth_bps"],
        average_bandwidth_bps=row["average_bandwidth_bps"],
        size_bytes=row["size_bytes"],
        language=row["language"],
        label=row["label"],
        copied=row["copied"],
        error_code=row["error_code"] if state is RenditionStage.FAILED else None,
    )
