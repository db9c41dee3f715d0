"""How the queue stands, as its tables and the portal's leases have it; for operators."""

from __future__ import annotations

from typing import Any

from tortoise.connection import get_connection

# procrastinate's workers show every ten seconds that they live.
DEAD_AFTER_S = 60

COUNTS = """
SELECT queue_name AS queue, status::text AS status, count(*) AS jobs, min(queued.at) AS oldest
FROM procrastinate_jobs job
LEFT JOIN LATERAL (
  SELECT min(at) AS at FROM procrastinate_events WHERE job_id = job.id
) queued ON true
WHERE status IN ('todo', 'doing', 'failed')
GROUP BY queue_name, status ORDER BY queue_name, status
"""
# A job is stalled when the worker that took it gives no sign of life any more.
JOBS = """
SELECT job.id, job.task_name AS task, job.queue_name AS queue, job.status::text AS status,
       job.args->>'video_id' AS video_id, job.attempts, job.scheduled_at,
       (SELECT min(at) FROM procrastinate_events WHERE job_id = job.id) AS queued_at,
       (SELECT max(at) FROM procrastinate_events
        WHERE job_id = job.id AND type = 'started') AS started_at,
       job.status = 'doing' AND coalesce(
         worker.last_heartbeat < now() - make_interval(secs => %s), true) AS is_stalled
FROM procrastinate_jobs job
LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status IN ('todo', 'doing', 'failed')
ORDER BY job.status = 'doing' DESC, job.status = 'todo' DESC, job.priority DESC, job.id
LIMIT %s
"""
LEASES = """
SELECT worker, video_id::text AS video_id, number AS attempt, stage, percent, lease_expires_at,
       lease_expires_at < now() AS is_lost
FROM attempts WHERE outcome IS NULL ORDER BY worker, video_id
"""
WORKERS = """
SELECT id, last_heartbeat, last_heartbeat < now() - make_interval(secs => %s) AS is_dead
FROM procrastinate_workers ORDER BY id
"""
JOBS_OF_VIDEO = """
SELECT job.id, job.task_name AS task, job.status::text AS status, job.attempts, job.scheduled_at,
       (SELECT min(at) FROM procrastinate_events WHERE job_id = job.id) AS queued_at,
       (SELECT max(at) FROM procrastinate_events WHERE job_id = job.id) AS changed_at
FROM procrastinate_jobs job WHERE job.args->>'video_id' = %s ORDER BY job.id
"""

Row = dict[str, Any]


async def read_queue(*, limit: int) -> dict[str, list[Row]]:
    """Counts by queue and status, the first jobs, the queue's workers, and their leases."""
    return {
        "counts": await _rows(COUNTS),
        "jobs": await _rows(JOBS, DEAD_AFTER_S, limit),
        "leases": await _rows(LEASES),
        "workers": await _rows(WORKERS, DEAD_AFTER_S),
    }


async def jobs_of_video(video_id: str) -> list[Row]:
    """Every job there was of a video."""
    return await _rows(JOBS_OF_VIDEO, video_id)


async def _rows(query: str, *values: object) -> list[Row]:
    return await get_connection("default").execute_query_dict(query, list(values))
