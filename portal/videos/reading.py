"""Reading a video: by its id, for a change, for many at once, and who may see it.

What is asked for nearly every request is SQL by hand: the ORM costs several times what running such
a query does.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from psycopg import sql

from portal.accounts.permissions import Audience
from portal.config import Config
from portal.database.connection import IS_PRESENT, Row, fetch_rows, lock_present
from portal.database.models import Video, Visibility
from portal.errors import VideoNotFound
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.packaging.master import MASTER_NAME

# Columns that only `details_of` needs.
DETAIL_COLUMNS = ("duration_s", "has_poster", "failure_code", "failure_message")
RECORDS = f"""
SELECT id AS key, id::text, title, description, category_ids, tags, file_name, storage_key,
       transcode_job_id::text, status, published_attempt, size_bytes, created_at, updated_at,
       passthrough, visibility, signed_in_only, owner_id, metadata_version,
       {", ".join(DETAIL_COLUMNS)}
FROM videos WHERE id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants
VIDEOS = f"SELECT * FROM videos WHERE id = ANY({{ids}}) AND {IS_PRESENT}"  # noqa: S608
AUDIENCE_COLUMNS = ("visibility", "signed_in_only", "owner_id")
AUDIENCE = f"SELECT {', '.join(AUDIENCE_COLUMNS)} FROM videos WHERE id = %s AND {IS_PRESENT}"  # noqa: S608
# Who may see what an attempt wrote: of a ready video what it was published by, or a rendition; of
# one that is processed what is recorded, which can be watched already.
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
    """The video with this id; `VideoNotFound` for an unknown or malformed one."""
    parsed = parse_video_id(video_id)
    video = await Video.present().get_or_none(id=parsed) if parsed else None
    if video is None:
        raise VideoNotFound
    return video


async def fetch_videos(video_ids: Sequence[UUID]) -> dict[UUID, Video]:
    """Those of these videos that there are."""
    query = sql.SQL(VIDEOS).format(ids=sql.Literal(list(video_ids)))
    found: list[Video] = await Video.raw(query.as_string(None))
    return {video.id: video for video in found}


def parse_video_id(text: str) -> UUID | None:
    """The id, in its canonical form only: an address that names a video has one spelling."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


async def fetch_records(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """The columns that the API shows of these videos, as far as there are such videos."""
    rows = await fetch_rows(RECORDS, list(video_ids))
    return {row.pop("key"): row for row in rows}


async def fetch_served(video_id: UUID, attempt: int, rendition: str) -> Audience | None:
    """Who may see what this attempt wrote of a rendition; None if viewers get nothing of it.

    The rendition is empty for what lies in none's folder.
    """
    rows = await fetch_rows(SERVED, rendition, video_id, attempt, rendition, attempt)
    return audience_of(rows[0]) if rows else None


async def locked_video(video_id: UUID) -> Video:
    """The video, locked until the end of the current transaction. Raises `VideoNotFound`."""
    video = await lock_present(video_id)
    if video is None:
        raise VideoNotFound
    return video


async def fetch_audience(video_id: UUID) -> Audience | None:
    """Who may see a video; None when there is no such video."""
    rows = await fetch_rows(AUDIENCE, video_id)
    return audience_of(rows[0]) if rows else None


def master_url(
    config: Config, video_id: UUID | str, published_attempt: int | None, *, is_private: bool
) -> str:
    """Absolute address of the master playlist; empty while there is no published attempt."""
    is_plain = bool(config.playback_base_url) and not is_private
    base = config.playback_base_url if is_plain else config.public_url
    return stream_below(base, video_id, published_attempt)


def stream_below(base: str, video_id: UUID | str, published_attempt: int | None) -> str:
    """As `master_url`, below this address."""
    if published_attempt is None:
        return ""
    return f"{base}/{output_prefix(video_id, published_attempt)}{MASTER_NAME}"


def details_of(config: Config, video_id: str, columns: Row) -> Row:
    """Return a video's details for integrators, beside its record, with absolute addresses.

    `columns` has the columns of the video that are named here.
    """
    page_url = f"{config.public_url}/videos/{video_id}"
    failure = {"code": columns["failure_code"], "message": columns["failure_message"]}
    return {
        "visibility": columns["visibility"],
        "duration_seconds": columns["duration_s"],
        "page_url": page_url,
        "embed_url": f"{config.public_url}/embed/{video_id}",
        "poster_url": f"{page_url}/poster.jpg" if columns["has_poster"] else None,
        "failure": failure if columns["failure_code"] else None,
    }


def preview_url(base: str, video_id: UUID | str) -> str:
    """Return the address of the master playlist of what is made so far, below `base`."""
    return f"{base}/{output_root(video_id)}preview/{MASTER_NAME}"


def audience_of(found: Video | Row) -> Audience:
    """Who may see a video, by its record or by a row with the same columns."""
    read = partial(getattr, found) if isinstance(found, Video) else found.__getitem__
    visibility, signed_in_only, owner_id = map(read, AUDIENCE_COLUMNS)
    return Audience(Visibility(visibility), signed_in_only, owner_id)
