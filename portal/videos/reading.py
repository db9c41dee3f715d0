"""Reads of videos and their audiences, locks for changes, and addresses.

Reads of nearly every request are SQL by hand, because the ORM takes several times as long as the
query.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from portal.accounts.permissions import Audience
from portal.config import Config
from portal.database.connection import IS_PRESENT, Row, fetch_rows, select_videos
from portal.database.models import Video, Visibility
from portal.errors import VersionConflict, VideoNotFound
from portal.events.records import AUDIENCE_COLUMNS, DETAILS, VideoColumns
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.packaging.master import MASTER_NAME

RECORDS = f"""
SELECT {", ".join((*VideoColumns.model_fields, *DETAILS, "metadata_version"))}
FROM videos WHERE id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants
AUDIENCE = f"SELECT {', '.join(AUDIENCE_COLUMNS)} FROM videos WHERE id = %s AND {IS_PRESENT}"  # noqa: S608
# Audience of an attempt's output that viewers may load. Of a ready video these are the files of the
# published attempt and of renditions, of a processing one the recorded segments, for the preview.
SERVED = f"""
SELECT visibility, signed_in_only, owner_id
FROM videos LEFT JOIN renditions
  ON renditions.video_id = videos.id AND name = %s AND state = 'complete'
WHERE videos.id = %s AND {IS_PRESENT} AND CASE status
  WHEN 'ready' THEN %s IN (published_attempt, attempt_number)
  WHEN 'processing' THEN EXISTS (
    SELECT FROM made_segments WHERE video_id = videos.id AND rendition = %s AND folder = %s
  )
END
"""  # noqa: S608


async def get_video(video_id: str) -> Video:
    """Return the video with this id. Raises `VideoNotFound`, also for a malformed id."""
    parsed = parse_video_id(video_id)
    video = await Video.present().get_or_none(id=parsed) if parsed else None
    if video is None:
        raise VideoNotFound
    return video


async def fetch_videos(video_ids: Sequence[UUID]) -> dict[UUID, Video]:
    """Return the existing videos, by id."""
    videos = await select_videos(f"id = ANY({{ids}}) AND {IS_PRESENT}", ids=list(video_ids))
    return {video.id: video for video in videos}


async def fetch_in_order(video_ids: Sequence[UUID]) -> list[Video]:
    """Return the existing videos, in the order of these ids."""
    by_id = await fetch_videos(video_ids)
    return [by_id[video_id] for video_id in video_ids if video_id in by_id]


def parse_video_id(text: str) -> UUID | None:
    """Return the id in a text; None unless it is in its canonical form.

    So there is one address for each video.
    """
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


async def fetch_records(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """Return the columns of the existing videos that the API shows, by id."""
    rows = await fetch_rows(RECORDS, list(video_ids))
    return {row["id"]: row for row in rows}


async def fetch_served(video_id: UUID, attempt: int, rendition: str) -> Audience | None:
    """Return the audience of a rendition's files by an attempt; None if viewers may not load them.

    The rendition is empty for files outside of its folders.
    """
    rows = await fetch_rows(SERVED, rendition, video_id, attempt, rendition, attempt)
    return audience_in(rows[0]) if rows else None


async def locked_video(video_id: UUID) -> Video:
    """Return a video, locked until the end of the transaction. Raises `VideoNotFound`."""
    videos = await select_videos(f"id = {{id}} AND {IS_PRESENT} FOR UPDATE", id=video_id)
    if not videos:
        raise VideoNotFound
    return videos[0]


def check_version(
    present: str, versions: Collection[str] | None, conflict: type[VersionConflict]
) -> None:
    """Raise a conflict unless the present version is one of those that a change was made from.

    None allows any version. A change to what is recorded already is no conflict: perhaps only the
    answer to it was lost. So compare the values first.
    """
    if versions is not None and present not in versions:
        raise conflict


async def fetch_audience(video_id: UUID) -> Audience | None:
    """Return the audience of a video; None for an unknown video."""
    rows = await fetch_rows(AUDIENCE, video_id)
    return audience_in(rows[0]) if rows else None


def master_url(
    config: Config, video_id: UUID | str, published_attempt: int | None, *, is_private: bool
) -> str:
    """Return the absolute address of the master playlist; empty without a published attempt."""
    is_plain = bool(config.playback_base_url) and not is_private
    base = config.playback_base_url if is_plain else config.public_url
    return stream_below(base, video_id, published_attempt)


def stream_below(base: str, video_id: UUID | str, published_attempt: int | None) -> str:
    """Return the address of the master playlist below a base address; empty as `master_url`."""
    if published_attempt is None:
        return ""
    return f"{base}/{output_prefix(video_id, published_attempt)}{MASTER_NAME}"


def preview_url(base: str, video_id: UUID | str) -> str:
    """Return the address of the master playlist of the preview, below a base address."""
    return f"{base}/{output_root(video_id)}preview/{MASTER_NAME}"


def audience_of(video: Video) -> Audience:
    """Return the audience of a video."""
    return Audience(video.visibility, video.signed_in_only, video.owner_id)


def audience_in(columns: Row) -> Audience:
    """Return the audience in columns of a row, or in JSON; the narrowest if there is none."""
    owner_id = columns.get("owner_id")
    return Audience(
        visibility=Visibility(columns.get("visibility", Visibility.PRIVATE)),
        signed_in_only=columns.get("signed_in_only", False),
        owner_id=UUID(str(owner_id)) if owner_id else None,
    )
