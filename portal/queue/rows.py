"""The queue's tables by hand: how it stands, for operators; finished jobs; jobs that wait."""

from datetime import datetime

from portal.database.connection import IS_LIVE, Row, execute, fetch_rows

# procrastinate's workers show every ten seconds that they live.
DEAD_AFTER_S = 30

COUNTS = """
SELECT queue_name AS queue, status::text AS status, count(*) AS jobs,
       min((SELECT min(at) FROM procrastinate_events WHERE job_id = job.id)) AS oldest
FROM procrastinate_jobs job
WHERE status IN ('todo', 'doing', 'failed')
GROUP BY queue_name, status ORDER BY queue_name, status
"""
# A job is stalled when the worker that took it gives no sign of life any more.
JOBS = """
SELECT job.id, job.task_name AS task, job.queue_name AS queue, job.status::text AS status,
       job.args->>'video_id' AS video_id, job.attempts, job.scheduled_at,
       CASE WHEN job.status = 'todo' AND job.queue_name IN ('prepare', 'transcode') THEN (
         SELECT error_code FROM attempts
         WHERE video_id = (job.args->>'video_id')::uuid ORDER BY number DESC LIMIT 1
       ) END AS last_error,
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
# Of attempts, and of the runs of those that are shared.
LEASES = f"""
SELECT worker, video_id::text AS video_id, number AS attempt, NULL AS segments, stage, percent,
       lease_expires_at, NOT {IS_LIVE} AS is_lost
FROM attempts WHERE outcome IS NULL
UNION ALL
SELECT worker, video_id::text, folder, concat(start, '-', until - 1), 'transcoding',
       100.0 * (made - start) / (until - start), lease_expires_at, NOT {IS_LIVE}
FROM pass_runs WHERE worker IS NOT NULL ORDER BY worker, video_id, segments NULLS FIRST
"""  # noqa: S608 - put together from constants
WORKERS = """
SELECT id, last_heartbeat, last_heartbeat < now() - make_interval(secs => %s) AS is_dead
FROM procrastinate_workers ORDER BY id
"""
# Every job there was of a video.
JOBS_OF_VIDEO = """
SELECT job.id, job.task_name AS task, job.status::text AS status, job.attempts, job.scheduled_at,
       (SELECT min(at) FROM procrastinate_events WHERE job_id = job.id) AS queued_at,
       (SELECT max(at) FROM procrastinate_events WHERE job_id = job.id) AS changed_at
FROM procrastinate_jobs job WHERE job.args->>'video_id' = %s ORDER BY job.id
"""
# What waits for a lock can't begin anyway.
_CAN_BEGIN = """
waiting.queue_name = 'transcode' AND waiting.status = 'todo'
AND coalesce(waiting.scheduled_at <= now(), true)
AND NOT EXISTS (
  SELECT FROM procrastinate_jobs holder
  WHERE holder.lock = waiting.lock AND holder.status = 'doing'
)
"""
# Whether a free slot for transcoding finds nothing to do.
NOTHING_WAITS = f"NOT EXISTS (SELECT FROM procrastinate_jobs waiting WHERE {_CAN_BEGIN})"
# Whether more passes wait, that go before the one that a job runs, than worse ones run that can
# give way instead. Who helps gives way to every pass, others to first ones.
OVERTAKEN = f"""
WITH mine AS (SELECT id, priority, task_name FROM procrastinate_jobs WHERE id = %s)
SELECT (
  SELECT count(*) FROM procrastinate_jobs waiting, mine
  WHERE {_CAN_BEGIN} AND waiting.priority > mine.priority
    AND (waiting.task_name = 'portal:encode' OR mine.task_name = 'portal:share')
) > (
  SELECT count(*) FROM procrastinate_jobs running, mine
  WHERE running.queue_name = 'transcode' AND running.status = 'doing'
    AND (running.priority, -running.id) < (mine.priority, -mine.id)
) AS is_overtaken
"""  # noqa: S608 - put together from constants
# Lane of an owner's imports with the fewest jobs, and the number of jobs in all lanes.
IMPORT_LANE = """
SELECT lane, sum(count(job.id)) OVER ()::int AS unfinished
FROM generate_series(0, 3) lane
LEFT JOIN procrastinate_jobs job ON job.lock = %s || lane
  AND job.queue_name = 'imports' AND job.status IN ('todo', 'doing')
GROUP BY lane ORDER BY count(job.id), lane LIMIT 1
"""
# True if an import above a priority could begin as soon as a job ended.
IMPORT_WAITS = """
SELECT EXISTS (
  SELECT FROM procrastinate_jobs waiting
  WHERE waiting.queue_name = 'imports' AND waiting.status = 'todo' AND waiting.priority > %s
    AND coalesce(waiting.scheduled_at <= now(), true)
    AND NOT EXISTS (
      SELECT FROM procrastinate_jobs holder
      WHERE holder.lock = waiting.lock AND holder.status = 'doing' AND holder.id <> %s
    )
) AS waits
"""
# `FOR KEY SHARE` keeps a worker from taking the job before the current transaction ends.
WAKE_WAITING = """
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted"}')
FROM (
  SELECT queue_name FROM procrastinate_jobs
  WHERE lock = %s AND status = 'todo' AND priority = 0
  LIMIT 1 FOR KEY SHARE
) waiting
"""
QUEUED_AT = "SELECT min(at) AS at FROM procrastinate_events WHERE job_id = %s"
# procrastinate's own deletes all at once, and sorts every event for it.
PRUNE = """
DELETE FROM procrastinate_jobs WHERE id IN (
  SELECT id FROM procrastinate_jobs job
  WHERE status IN ('succeeded', 'failed', 'cancelled', 'aborted')
    AND NOT EXISTS (
      SELECT FROM procrastinate_events
      WHERE job_id = job.id AND at > now() - make_interval(days => %s)
    )
  ORDER BY id LIMIT %s
)
"""
PRUNE_BATCH = 1000


async def read_queue(*, limit: int) -> dict[str, list[Row]]:
    """Counts by queue and status, the first jobs, the queue's workers, and their leases."""
    return {
        "counts": await fetch_rows(COUNTS),
        "jobs": await fetch_rows(JOBS, DEAD_AFTER_S, limit),
        "leases": await fetch_rows(LEASES),
        "workers": await fetch_rows(WORKERS, DEAD_AFTER_S),
    }


async def queued_at(job_id: int) -> datetime | None:
    """When a job was asked for; None when it is lost."""
    [row] = await fetch_rows(QUEUED_AT, job_id)
    at: datetime | None = row["at"]
    return at


async def is_overtaken(job_id: int) -> bool:
    """Whether a first pass that waits should have the slot of the pass that this job runs."""
    [row] = await fetch_rows(OVERTAKEN, job_id)
    return bool(row["is_overtaken"])


async def emptiest_lane(prefix: str) -> tuple[str, int]:
    """Return the lock of the lane with the fewest imports, and how many all lanes have."""
    [row] = await fetch_rows(IMPORT_LANE, prefix)
    return f"{prefix}{row['lane']}", row["unfinished"]


async def import_waits(job_id: int, above_priority: int) -> bool:
    """Return whether another import waits for the slot of this job's import."""
    [row] = await fetch_rows(IMPORT_WAITS, above_priority, job_id)
    return bool(row["waits"])


async def wake_waiting_job(lock: str) -> bool:
    """Have a worker look for a waiting job with this lock after the transaction.

    Return whether there is such a job.
    """
    return bool(await fetch_rows(WAKE_WAITING, lock))


async def prune_jobs(*, keep_days: int) -> int:
    """Delete jobs that ended longer ago than this, in batches; returns how many."""
    pruned = 0
    while batch := await execute(PRUNE, keep_days, PRUNE_BATCH):
        pruned += batch
    return pruned
