"""Rows that a comparison reads: videos and uploads in order, and jobs that fit no record."""

from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

from portal.database.connection import Row, fetch_rows
from portal.database.rows import rows_by_key
from portal.maintenance.rows import ENDED_UNHEARD
from portal.queue.rows import DEAD_AFTER_S

PAGE = 1000

VIDEOS = """
SELECT id::text AS key, status::text AS status FROM videos
WHERE id > %s ORDER BY id LIMIT %s
"""
IS_VIDEO_KNOWN = """
SELECT 1 FROM videos WHERE id = %s
UNION ALL SELECT 1 FROM deletions WHERE video_id = %s
UNION ALL SELECT 1 FROM tombstones WHERE video_id = %s
"""
UPLOADS = """
SELECT uploads.key, videos.id::text AS video_id, videos.size_bytes, videos.source_etag,
       greatest(uploads.created_at, active_at) < %s AS is_idle
FROM uploads LEFT JOIN videos ON videos.storage_key = uploads.key
WHERE uploads.key > %s ORDER BY uploads.key LIMIT %s
"""
IS_KEY_KNOWN = """
SELECT 1 FROM uploads WHERE key = %s
UNION ALL SELECT 1 FROM deletions WHERE storage_key = %s
UNION ALL SELECT 1 FROM tombstones WHERE storage_key = %s
"""
# Running jobs of workers that show no sign of life, or whose end was not heard of.
STUCK = f"""
SELECT job.id, job.task_name, job.args->>'video_id' AS video_id
FROM procrastinate_jobs job
LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status = 'doing'
  AND (coalesce(worker.last_heartbeat < now() - make_interval(secs => {DEAD_AFTER_S}), true)
    AND NOT EXISTS (
      SELECT 1 FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
        AND at > now() - make_interval(secs => {DEAD_AFTER_S})
    )
    OR ({ENDED_UNHEARD}))
ORDER BY job.id
"""  # noqa: S608 - put together from constants
# One that runs finds out for itself, and a removal ends a moment after its row.
WITHOUT_VIDEO = """
SELECT job.id, job.task_name, job.args->>'video_id' AS video_id
FROM procrastinate_jobs job
WHERE job.status = 'todo' AND job.args->>'video_id' IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM videos WHERE id = (job.args->>'video_id')::uuid)
  AND NOT EXISTS (SELECT 1 FROM deletions WHERE video_id = (job.args->>'video_id')::uuid)
ORDER BY job.id
"""


def videos_by_id() -> AsyncIterator[tuple[str, Row]]:
    """Every video's id and status, by id."""
    return ((row["key"], row) async for row in rows_by_key(VIDEOS, page=PAGE))


def uploads_by_key(*, idle_since: datetime) -> AsyncIterator[tuple[str, Row]]:
    """Every upload with its video, by storage key."""
    rows = rows_by_key(UPLOADS, idle_since, first="", page=PAGE)
    return ((row["key"], row) async for row in rows)


async def is_video_known(video_id: UUID) -> bool:
    """Whether there is, or was, a video with this id."""
    return bool(await fetch_rows(IS_VIDEO_KNOWN, *[video_id] * 3))


async def is_key_known(key: str) -> bool:
    """Whether this storage key was issued here."""
    return bool(await fetch_rows(IS_KEY_KNOWN, *[key] * 3))
