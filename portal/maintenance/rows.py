"""Rows that the janitor and recovery go by: what is due, and what nobody works on any more."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from portal.database.connection import execute, fetch_rows
from portal.database.lease import IS_LIVE, IS_UNDER_WAY
from portal.processing.attempts import LEASE_S
from portal.videos.progress import JOB_OF_VIDEO

BATCH = 100

# Uploads untouched since then that no video was made of.
IDLE_UPLOADS = """
SELECT key FROM uploads
WHERE (greatest(created_at, active_at) < %s OR is_discarded AND multipart_id IS NOT NULL)
  AND NOT EXISTS (SELECT FROM videos WHERE storage_key = key)
  AND key > %s
ORDER BY key LIMIT %s
"""
# Sources whose upload address has expired and that may have been replaced until then, with the size
# that their video has; 0 for a deleted one.
EXPIRED_SOURCES = """
WITH expired AS (SELECT %s::timestamptz AS at)
SELECT key, size_bytes FROM (
  SELECT uploads.key, videos.size_bytes FROM expired, uploads
  JOIN videos ON videos.storage_key = uploads.key
  WHERE NOT is_compared AND uploads.created_at < expired.at
  UNION ALL
  SELECT storage_key, 0 FROM expired, tombstones
  WHERE published_at < expired.at AND published_at > %s
) source
WHERE key > %s ORDER BY key LIMIT %s
"""
KNOWN_KEYS = """
SELECT key, multipart_id FROM uploads WHERE key = ANY(%s)
UNION ALL
SELECT storage_key, NULL FROM tombstones WHERE storage_key = ANY(%s)
"""
# Final videos, none of whose attempts was under way, or may have been,
# since then.
SETTLED = """
(videos.status = 'failed' OR videos.status = 'ready' AND videos.complete_job_id IS NULL)
AND NOT EXISTS (
  SELECT FROM attempts later WHERE later.video_id = videos.id
    AND greatest(later.started_at, later.lease_expires_at) > %s
)
"""
# Videos settled since then with attempts that were not swept.
SWEEPABLE = f"""
SELECT attempts.video_id::text AS key FROM attempts
JOIN videos ON videos.id = attempts.video_id
WHERE NOT attempts.is_swept AND {SETTLED} AND attempts.video_id > %s
GROUP BY attempts.video_id ORDER BY attempts.video_id LIMIT %s
"""  # noqa: S608 - constants of this file
IS_SETTLED = f"SELECT FROM videos WHERE id = %s AND {SETTLED}"
DUE_TOMBSTONES = """
SELECT video_id::text AS key FROM tombstones
WHERE deleted_at < %s AND video_id > %s
ORDER BY video_id LIMIT %s
"""

BEGAN_BEFORE = f"""
NOT EXISTS (
  SELECT 1 FROM procrastinate_events
  WHERE job_id = job.id AND type = 'started' AND abs(extract(epoch FROM now() - at)) < {LEASE_S}
)
"""  # noqa: S608 - put together from constants
# Unfinished videos that no live attempt and no waiting job covers. A job that started, or whose
# attempt ended, a moment ago is still being seen to by its worker.
ABANDONED_VIDEOS = f"""
WITH unfinished AS (
  SELECT id, {JOB_OF_VIDEO} AS job_id FROM videos
  WHERE status = 'processing' OR status = 'ready' AND complete_job_id IS NOT NULL
)
SELECT 'transcode' AS kind, unfinished.id AS video_id, unfinished.job_id, job.status::text AS status
FROM unfinished
LEFT JOIN procrastinate_jobs job ON job.id = unfinished.job_id
WHERE job.status IS DISTINCT FROM 'todo'
  AND NOT EXISTS (
    SELECT 1 FROM attempts
    WHERE video_id = unfinished.id
      AND ({IS_UNDER_WAY} OR abs(extract(epoch FROM now() - finished_at)) < {LEASE_S})
  )
  AND {BEGAN_BEFORE}
"""  # noqa: S608 - put together from constants
IS_OF_NO_VIDEO = f"""
NOT EXISTS (
  SELECT 1 FROM videos WHERE videos.id = (job.args->>'video_id')::uuid AND job.id = {JOB_OF_VIDEO}
)
"""  # noqa: S608
# A job that ended although its worker could not record it: no row refers to it, and no row shows
# that it is running or was a moment ago.
ENDED_UNHEARD = f"""
  job.task_name IN ('portal:transcode', 'portal:encode', 'portal:complete') AND {IS_OF_NO_VIDEO}
  AND NOT EXISTS (
    SELECT 1 FROM attempts
    WHERE video_id = (job.args->>'video_id')::uuid
      AND (outcome IS NULL OR abs(extract(epoch FROM now() - finished_at)) < {LEASE_S})
  )
  AND NOT EXISTS (
    SELECT 1 FROM videos JOIN procrastinate_events successor ON job_id = encode_job_id
    WHERE videos.id = (job.args->>'video_id')::uuid AND type = 'deferred'
      AND abs(extract(epoch FROM now() - successor.at)) < {LEASE_S}
  )
  AND NOT EXISTS (
    SELECT 1 FROM tombstones
    WHERE video_id = (job.args->>'video_id')::uuid
      AND abs(extract(epoch FROM now() - deleted_at)) < {LEASE_S}
  )
  AND {BEGAN_BEFORE}
"""  # noqa: S608
# Jobs that nothing refers to any more, and nobody works on.
LEFT_RUNNING = f"""
SELECT job.id, job.task_name FROM procrastinate_jobs job
WHERE job.status = 'doing' AND {IS_OF_NO_VIDEO}
  AND NOT EXISTS (SELECT 1 FROM deletions WHERE job_id = job.id)
  AND NOT EXISTS (
    SELECT 1 FROM poster_requests WHERE job_id = job.id AND state IN ('waiting', 'working')
  )
  AND NOT EXISTS (
    SELECT 1 FROM attempts WHERE video_id = (job.args->>'video_id')::uuid AND {IS_UNDER_WAY}
  )
  AND (NOT EXISTS (
    SELECT 1 FROM procrastinate_workers worker
    WHERE worker.id = job.worker_id
      AND abs(extract(epoch FROM now() - worker.last_heartbeat)) < {LEASE_S}
  ) OR ({ENDED_UNHEARD}))
"""  # noqa: S608
# Removals and posters whose lease expired and that no waiting job will see to.
ABANDONED_SIDE_JOBS = f"""
WITH promised AS (
  SELECT 'removal' AS kind, video_id, NULL::int AS number, job_id, lease_expires_at FROM deletions
  UNION ALL
  SELECT 'poster', video_id, number, job_id, lease_expires_at FROM poster_requests
  WHERE state IN ('waiting', 'working')
)
SELECT promised.*, job.status::text AS status
FROM promised LEFT JOIN procrastinate_jobs job ON job.id = promised.job_id
WHERE NOT {IS_LIVE} AND job.status IS DISTINCT FROM 'todo'
"""  # noqa: S608
# Transcodes of deleted videos whose workers are dead: they hold the lock of the removal.
LOCK_HOLDERS = f"""
SELECT job.id FROM deletions
JOIN procrastinate_jobs job ON job.lock = 'video:' || deletions.video_id
WHERE NOT {IS_LIVE} AND job.status = 'doing' AND job.id <> deletions.job_id
"""  # noqa: S608
# Ends that lie further ahead than they can have been set: the longest pause of a job is ten
# minutes, and the lease of a removal or a poster, or the time it settles in, below two. A
# deletion that can be undone happened.
TOO_FAR_AHEAD = (
    """UPDATE videos SET deleted_at = now() WHERE deleted_at > now()""",
    f"""UPDATE attempts SET lease_expires_at = now() + make_interval(secs => {LEASE_S})
    WHERE outcome IS NULL AND lease_expires_at > now() + make_interval(secs => {LEASE_S})""",  # noqa: S608
    """UPDATE procrastinate_jobs SET scheduled_at = now()
    WHERE scheduled_at > now() + interval '11 minutes' AND status = 'todo'""",
    """UPDATE deletions SET settles_at = now() WHERE settles_at > now() + interval '2 minutes'""",
    """UPDATE deletions SET lease_expires_at = now()
    WHERE lease_expires_at > now() + interval '2 minutes'""",
    """UPDATE poster_requests SET lease_expires_at = now()
    WHERE lease_expires_at > now() + interval '2 minutes' AND state IN ('waiting', 'working')""",
)


async def recorded_multiparts(keys: Sequence[str]) -> dict[str, str | None]:
    """The multipart upload recorded for each of the keys that the database knows."""
    rows = await fetch_rows(KNOWN_KEYS, keys, keys)
    return {row["key"]: row["multipart_id"] for row in rows}


async def is_settled(video_id: UUID, since: datetime) -> bool:
    """Whether a video is final and was not worked on since then; for good if it is locked."""
    return bool(await fetch_rows(IS_SETTLED, video_id, since))


async def limit_ends() -> None:
    """Bring leases and pauses that end too far ahead back to their greatest length."""
    for statement in TOO_FAR_AHEAD:
        await execute(statement)
