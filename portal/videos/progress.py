"""Progress of transcoding: of videos, for pages and the API; of the service, for Prometheus.

Clients poll, so the progress of videos is one query. Workers renew the leases of their attempts: an
attempt whose lease has expired is not under way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Annotated
from uuid import UUID

from pydantic import Field

from portal.database.connection import (
    IS_LIVE,
    IS_PRESENT,
    IS_UNDER_WAY,
    JOIN_ATTEMPT,
    Row,
    fetch_rows,
)
from portal.database.models import VideoStatus
from portal.events.records import (
    AUDIENCE_COLUMNS,
    Percent,
    Seconds,
    Shape,
    Size,
    TranscodeFailure,
    rounded_to,
)
from portal.queue.jobs import QUEUES
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.videos.chapters import Chapters, chapters_of

# The job that works on a version: the one that makes it playable, or the one that completes it.
JOB_OF_VERSION = (
    "CASE status WHEN 'processing' THEN coalesce(encode_job_id, transcode_job_id) "
    "ELSE complete_job_id END"
)
# Videos, their live attempts, places in the queue and renditions.
PROGRESS = f"""
WITH unfinished AS (
  SELECT id, {JOB_OF_VERSION} AS job_id,
         CASE status WHEN 'processing' THEN 0 ELSE -1 END AS rank,
         CASE status WHEN 'processing' THEN 'prepare' ELSE 'transcode' END AS next_queue
  FROM videos
  WHERE (status = 'processing' OR complete_job_id IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1 FROM attempts WHERE attempts.version_id = videos.version_id AND {IS_UNDER_WAY}
    )
), waiting AS MATERIALIZED (
  -- In the order in which each queue hands out jobs; a lost job will be replaced.
  SELECT unfinished.id, rank() OVER (
    PARTITION BY coalesce(job.queue_name, next_queue)
    ORDER BY rank DESC, job.priority DESC, job_id
  ) AS position
  FROM unfinished LEFT JOIN procrastinate_jobs job ON job.id = unfinished.job_id
)
SELECT video.id, video.status, video.failure_code, video.failure_message, video.notes,
       video.has_poster, video.has_storyboard, video.published_attempt,
       -- A cut gets the renditions that its whole film still gains.
       coalesce(video.complete_job_id, film.complete_job_id) AS complete_job_id,
       video.storyboard_job_id,
       attempt.number, attempt.stage, coalesce(attempt.percent, begun.percent) AS percent,
       attempt.eta_s, begun.number AS begun_number,
       -- The queue is ranked once, and only if one of these videos may wait in it.
       CASE WHEN video.status = 'processing' OR video.complete_job_id IS NOT NULL
            THEN (SELECT position FROM waiting WHERE waiting.id = video.id) END AS position,
       (SELECT count(DISTINCT worker) FROM (
          SELECT attempt.worker UNION ALL
          SELECT worker FROM pass_parts part
          WHERE part.version_id = video.version_id AND {IS_LIVE}
        ) busy) AS workers,
       COALESCE(made.renditions, '[]') AS renditions,
       (SELECT json_agg(track ORDER BY is_default DESC, label) FROM (
          SELECT language, label, is_default, source, id || '-' || version AS version,
                 whole_text IS NOT NULL AND video.keep IS NULL AS has_late
          FROM captions WHERE video_id = video.id AND text IS NOT NULL
        ) track) AS captions,
       (SELECT row_to_json(chapters) FROM chapters WHERE video_id = video.id) AS chapters,
       video.description, video.described_times, video.duration_s, video.keep,
       -- There are segments of a picture, and of all sound.
       video.status = 'processing' AND (
         SELECT coalesce(bool_or(first IS NOT NULL) FILTER (WHERE kind = 'video'), false)
                AND coalesce(bool_and(first IS NOT NULL) FILTER (WHERE kind = 'audio'), true)
         FROM renditions planned LEFT JOIN made_segments first
           ON first.version_id = video.version_id AND first.rendition = name
           AND first.number = 0 AND first.duration_s > 0
         WHERE planned.version_id = video.version_id
       ) AS has_preview
FROM videos video
LEFT JOIN versions film ON film.id = video.base_id
{JOIN_ATTEMPT}
LEFT JOIN LATERAL (
  -- The last attempt at a pass that waits to be resumed.
  SELECT number, percent FROM attempts last
  WHERE attempt.number IS NULL AND last.version_id = video.version_id
    AND EXISTS (SELECT FROM made_segments made WHERE made.version_id = video.version_id)
  ORDER BY number DESC LIMIT 1
) begun ON true
CROSS JOIN LATERAL (
  SELECT json_agg(rendition ORDER BY rendition.position) AS renditions
  FROM renditions rendition WHERE rendition.version_id = video.version_id
) made
WHERE video.id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants
# Progress of the videos that workers are making ready, with their audiences.
UNDER_WAY = f"""
SELECT DISTINCT ON (video.id) video.id::text AS video_id, stage, percent,
       {", ".join(AUDIENCE_COLUMNS)}
FROM attempts JOIN videos video USING (version_id)
WHERE {IS_UNDER_WAY} AND status = 'processing' AND {IS_PRESENT}
ORDER BY video.id, number DESC
"""  # noqa: S608 - put together from constants
# Finished jobs stay in the table; unfinished ones have their own index. A job's age counts from its
# first time in the queue.
UNFINISHED_JOBS = """
WITH unfinished AS (
  SELECT id, queue_name AS queue,
         CASE WHEN status = 'doing' THEN 'running'
              WHEN scheduled_at > now() THEN 'scheduled' ELSE 'waiting' END AS state
  FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND queue_name = ANY (%s)
), counted AS (
  SELECT queue, state, count(*) AS jobs, min(id) AS oldest_id FROM unfinished GROUP BY queue, state
)
SELECT queue, state, jobs,
       (SELECT extract(epoch FROM now() - min(at))::float8 FROM procrastinate_events
        WHERE job_id = oldest_id AND type = 'deferred') AS oldest_s
FROM counted
"""
VIDEOS_BY_STATUS = f"""
SELECT status, count(*) AS videos FROM videos WHERE {IS_PRESENT} GROUP BY status
"""  # noqa: S608  # constants of the code
VIDEOS_BY_FAILURE = f"""
SELECT coalesce(failure_code, '') AS code, count(*) AS videos
FROM videos WHERE status = 'failed' AND {IS_PRESENT} GROUP BY 1
"""  # noqa: S608
LEASES = f"""
SELECT CASE WHEN {IS_LIVE} THEN 'live' ELSE 'expired' END AS state,
       count(*) AS leases
FROM attempts WHERE outcome IS NULL GROUP BY 1
"""  # noqa: S608  # constants of the code
ATTEMPT_TOTALS = """
SELECT outcome, error_code, duration_range, attempts, duration_s, media_s FROM attempt_totals
"""


# The first three are those of `transcoding.Stage`.
class TranscodeStage(StrEnum):
    """Stage of a video's processing."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"
    IMPORTING = "importing"
    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"


class RenditionStage(StrEnum):
    """Stage of a rendition."""

    PLANNED = "planned"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


class JobProgress(Shape):
    """Progress of a job that makes renditions."""

    stage: TranscodeStage = Field(description="Step on the way to ready.")
    percent: Percent = Field(description="Progress of the transcoding.")
    seconds_left: Seconds = Field(
        description="Estimate of the time that is left; null if it is unknown."
    )
    queue_position: int | None = Field(description="1 is next.")
    workers: int = Field(description="Number of workers on it, possibly on several machines.")


class RenditionRecord(Shape):
    """Rendition, planned or complete."""

    name: str = Field(description="Unique name in the video, such as `720p`.")
    kind: Kind = Field(description="`video`, `audio` or `subtitles`.")
    state: RenditionStage = Field(description="State of the rendition.")
    width: int | None = Field(description="Width of the picture in pixels; null without a picture.")
    height: int | None = Field(
        description="Height of the picture in pixels; null without a picture."
    )
    frame_rate: Annotated[float | None, rounded_to(3)] = Field(
        description="Frames per second; null without a picture."
    )
    codecs: str | None = Field(description="CODECS attribute in the master playlist.")
    bandwidth: int | None = Field(description="Peak rate in bits per second.")
    average_bandwidth: int | None = Field(description="Average rate in bits per second.")
    size_bytes: Size | None = Field(description="Size of all segments; null until it is complete.")
    language: str | None = Field(
        description="Language of the sound or subtitles (BCP 47); null if it is unknown."
    )
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None = Field(description="Why the rendition failed; null unless it did.")


class RenditionProgress(RenditionRecord):
    """Rendition with the name of a track, and whether players begin with it."""

    label: str | None
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionTrack:
    """Captions that players can show; each change has another `version`.

    `has_late` says that some cues begin after the end of the film, so that viewers don't get them.
    """

    language: str
    label: str
    is_default: bool
    source: str
    version: str
    has_late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything about a video's transcoding.

    `work` is the progress until the video is ready, `remaining` that of the rest of a ready video.
    With `has_preview` the segments so far can be watched.
    """

    work: JobProgress
    remaining: JobProgress | None = None
    failure: TranscodeFailure | None = None
    notes: tuple[Note, ...] = ()
    renditions: tuple[RenditionProgress, ...] = ()
    captions: tuple[CaptionTrack, ...] = ()
    chapters: Chapters = field(default_factory=Chapters)
    has_poster: bool = False
    has_storyboard: bool = False
    has_preview: bool = False

    @property
    def unfinished(self) -> tuple[RenditionProgress, ...]:
        """The renditions that are still to come."""
        stages = (RenditionStage.PLANNED, RenditionStage.RUNNING)
        return tuple(rendition for rendition in self.renditions if rendition.state in stages)

    @property
    def failed(self) -> tuple[RenditionProgress, ...]:
        """The renditions that failed."""
        failed = RenditionStage.FAILED
        return tuple(rendition for rendition in self.renditions if rendition.state is failed)


def progress_without_workers(stage: TranscodeStage, *, percent: float) -> JobProgress:
    """Return the progress (0 to 100) of a job that is not in the queue and has no worker."""
    return JobProgress(
        stage=stage, percent=percent, seconds_left=None, queue_position=None, workers=0
    )


async def fetch_progress(video_ids: Sequence[UUID]) -> dict[UUID, Progress]:
    """Return the progress of the existing videos, by id."""
    rows = await fetch_rows(PROGRESS, list(video_ids))
    return {row["id"]: _progress(row) for row in rows}


async def fetch_under_way() -> list[Row]:
    """Return `video_id`, `stage` and `percent` of each video that a worker is making ready.

    The rows also have the columns of `reading.audience_in`.
    """
    return await fetch_rows(UNDER_WAY)


def _progress(video: Row) -> Progress:
    rows = video["renditions"]
    return Progress(
        work=_work(video),
        remaining=_remaining(video, rows),
        failure=TranscodeFailure.of(video["failure_code"], video["failure_message"]),
        notes=tuple(Note(code) for code in video["notes"]),
        renditions=tuple(_rendition(row, making=video["number"]) for row in rows),
        captions=tuple(CaptionTrack(**row) for row in video["captions"] or ()),
        chapters=chapters_of(video["chapters"], video),
        has_poster=video["has_poster"] and video["published_attempt"] is not None,
        has_storyboard=video["has_storyboard"] and video["published_attempt"] is not None,
        has_preview=video["has_preview"],
    )


def _work(video: Row) -> JobProgress:
    if video["status"] == VideoStatus.READY:
        return progress_without_workers(TranscodeStage.READY, percent=100.0)
    if video["status"] == VideoStatus.FAILED:
        return progress_without_workers(TranscodeStage.FAILED, percent=0.0)
    return _attempt(video, percent=video["percent"])


def _remaining(video: Row, rows: Sequence[Row]) -> JobProgress | None:
    is_complete = video["complete_job_id"] is None and video["storyboard_job_id"] is None
    if video["status"] != VideoStatus.READY or is_complete:
        return None
    return _attempt(video, percent=_share_made(video, rows))


def _attempt(video: Row, *, percent: float | None) -> JobProgress:
    return JobProgress(
        stage=TranscodeStage(video["stage"] or TranscodeStage.WAITING),
        percent=percent or 0.0,
        seconds_left=video["eta_s"],
        queue_position=video["position"],
        workers=video["workers"] if video["stage"] else 0,
    )


def _share_made(video: Row, rows: Sequence[Row]) -> float:
    """Return the percentage of later passes that is done, with renditions weighted by pixels."""
    total = 0.0
    complete = 0.0
    current = video["number"] or video["begun_number"]
    for row in rows:
        number = row["attempt_number"]
        is_complete = row["state"] == RenditionStage.COMPLETE
        is_first = is_complete and (number or 0) in range(1, video["published_attempt"] + 1)
        if row["kind"] != Kind.VIDEO or is_first:
            continue
        pixels = (row["width"] or 1) * (row["height"] or 1)
        if is_complete:
            total += pixels
            complete += pixels
        elif row["state"] == RenditionStage.PLANNED:
            is_begun = current is not None and number == current
            total += pixels
            complete += pixels * video["percent"] / 100 if is_begun else 0.0
    return 100.0 * complete / total if total else 100.0


def _rendition(row: Row, *, making: int | None) -> RenditionProgress:
    state = RenditionStage(row["state"])
    if state is RenditionStage.PLANNED and making is not None and row["attempt_number"] == making:
        state = RenditionStage.RUNNING
    columns = row | {
        "bandwidth": row["bandwidth_bps"],
        "average_bandwidth": row["average_bandwidth_bps"],
        "kind": Kind(row["kind"]),
        "state": state,
        "frame_rate": float(Fraction(row["frame_rate"])) if row["frame_rate"] else None,
        "error_code": row["error_code"] if state is RenditionStage.FAILED else None,
    }
    return RenditionProgress(**columns)


async def read_figures() -> dict[str, list[Row]]:
    """Return rows for the metrics: `jobs`, `videos`, `failures`, `leases` and `totals`.

    Their columns are those of `UNFINISHED_JOBS`, `VIDEOS_BY_STATUS`, `VIDEOS_BY_FAILURE`, `LEASES`
    and `ATTEMPT_TOTALS`, in this order.
    """
    return {
        "jobs": await fetch_rows(UNFINISHED_JOBS, list(QUEUES)),
        "videos": await fetch_rows(VIDEOS_BY_STATUS),
        "failures": await fetch_rows(VIDEOS_BY_FAILURE),
        "leases": await fetch_rows(LEASES),
        "totals": await fetch_rows(ATTEMPT_TOTALS),
    }
