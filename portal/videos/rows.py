"""The SQL of the video features. Asked for nearly every request, so not built by the ORM, which
costs several times what running such a query does.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from portal.accounts.permissions import Audience
from portal.database.connection import Row, execute, fetch_rows
from portal.database.lease import IS_UNDER_WAY, JOIN_ATTEMPT
from portal.database.models import Video
from portal.database.rows import IS_PRESENT, lock_present
from portal.database.states import Visibility
from portal.errors import VideoNotFound

ISSUE_UPLOAD = """
INSERT INTO uploads (key, file_name, content_type, owner_id, created_at)
VALUES (%s, %s, %s, %s, now())
"""
RECORDS = f"""
SELECT id AS key, id::text, title, description, category_ids, tags, file_name, storage_key,
       transcode_job_id::text, status, published_attempt, size_bytes, created_at, updated_at,
       visibility, signed_in_only, owner_id
FROM videos WHERE id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants
AUDIENCE_COLUMNS = ("visibility", "signed_in_only", "owner_id")
AUDIENCE = f"SELECT {', '.join(AUDIENCE_COLUMNS)} FROM videos WHERE id = %s AND {IS_PRESENT}"  # noqa: S608
# Who may see what an attempt wrote of a ready video: what it was published by, or a rendition.
SERVED = f"""
SELECT visibility, signed_in_only, owner_id
FROM videos LEFT JOIN renditions
  ON renditions.video_id = videos.id AND name = %s AND state = 'complete'
WHERE videos.id = %s AND status = 'ready' AND {IS_PRESENT}
  AND %s IN (published_attempt, attempt_number)
"""  # noqa: S608
OVERDUE = """
SELECT id FROM videos WHERE deleted_at <= now() - make_interval(secs => %s) ORDER BY deleted_at
"""
# The job that works on a video: the one that makes it playable, or the one that completes it.
JOB_OF_VIDEO = (
    "CASE status WHEN 'processing' THEN coalesce(encode_job_id, transcode_job_id) "
    "ELSE complete_job_id END"
)
# Videos, their live attempts, places in the queue and renditions.
PROGRESS = f"""
WITH unfinished AS (
  SELECT id, {JOB_OF_VIDEO} AS job_id,
         CASE status WHEN 'processing' THEN 0 ELSE -1 END AS rank,
         CASE status WHEN 'processing' THEN 'prepare' ELSE 'transcode' END AS next_queue
  FROM videos
  WHERE (status = 'processing' OR complete_job_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM attempts WHERE video_id = videos.id AND {IS_UNDER_WAY})
), waiting AS (
  -- In the order in which each queue hands jobs out; a lost one will be replaced.
  SELECT unfinished.id, rank() OVER (
    PARTITION BY coalesce(job.queue_name, next_queue)
    ORDER BY rank DESC, job.priority DESC, job_id
  ) AS position
  FROM unfinished LEFT JOIN procrastinate_jobs job ON job.id = unfinished.job_id
)
SELECT video.id, video.status, video.failure_code, video.failure_message, video.notes,
       video.has_poster, video.has_storyboard, video.published_attempt, video.complete_job_id,
       attempt.number, attempt.stage, coalesce(attempt.percent, begun.percent) AS percent,
       attempt.eta_s, begun.number AS begun_number,
       waiting.position, COALESCE(made.renditions, '[]') AS renditions
FROM videos video
LEFT JOIN waiting ON waiting.id = video.id
{JOIN_ATTEMPT}
LEFT JOIN LATERAL (
  -- The last attempt at a pass that waits to be gone on with.
  SELECT number, percent FROM attempts last
  WHERE attempt.number IS NULL AND last.video_id = video.id
    AND EXISTS (SELECT FROM made_segments WHERE video_id = video.id)
  ORDER BY number DESC LIMIT 1
) begun ON true
CROSS JOIN LATERAL (
  SELECT json_agg(rendition ORDER BY rendition.position) AS renditions
  FROM renditions rendition WHERE video_id = video.id
) made
WHERE video.id = ANY(%s) AND {IS_PRESENT}
"""  # noqa: S608 - put together from constants


async def issue_upload(
    key: str, file_name: str, content_type: str, *, owner_id: UUID | None
) -> None:
    """Record that a storage key was given out, and to which account."""
    await execute(ISSUE_UPLOAD, key, file_name, content_type, owner_id)


async def fetch_records(video_ids: Sequence[UUID]) -> dict[UUID, Row]:
    """The columns that the API shows of these videos, as far as there are such videos."""
    rows = await fetch_rows(RECORDS, list(video_ids))
    return {row.pop("key"): row for row in rows}


async def fetch_overdue(undo_s: int) -> list[UUID]:
    """The videos that were deleted so long ago, the first first."""
    return [row["id"] for row in await fetch_rows(OVERDUE, undo_s)]


async def fetch_served(video_id: UUID, attempt: int, rendition: str) -> Audience | None:
    """Who may see what this attempt wrote of a rendition; None if viewers get nothing of it.

    The rendition is empty for what lies in none's folder.
    """
    rows = await fetch_rows(SERVED, rendition, video_id, attempt)
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


def audience_of(found: Video | Row) -> Audience:
    """Who may see a video, by its record or by a row with the same columns."""
    read = partial(getattr, found) if isinstance(found, Video) else found.__getitem__
    visibility, signed_in_only, owner_id = map(read, AUDIENCE_COLUMNS)
    return Audience(Visibility(visibility), signed_in_only, owner_id)
