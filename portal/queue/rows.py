"""SQL on procrastinate's tables: the queue's state, finished jobs, and waiting jobs."""

from uuid import UUID

from portal.database.connection import IS_LIVE, Row, execute, fetch_rows

# Beginning of the names of worker processes, as PostgreSQL lists their connections.
WORKER_PREFIX = "portal worker "

# procrastinate's workers send a heartbeat every ten seconds.
DEAD_AFTER_S = 30

COUNTS = """
SELECT queue_name AS queue, status::text AS status, count(*) AS jobs,
       min((SELECT min(at) FROM procrastinate_events WHERE job_id = job.id)) AS oldest
FROM procrastinate_jobs job
WHERE status IN ('todo', 'doing', 'failed')
GROUP BY queue_name, status ORDER BY queue_name, status
"""
# A job is stalled if its worker has stopped sending heartbeats.
JOBS = """
SELECT job.id, job.task_name AS task, job.queue_name AS queue, job.status::text AS status,
       coalesce(job.args->>'video_id', version.video_id::text) AS video_id,
       job.attempts, job.scheduled_at,
       CASE WHEN job.status = 'todo' AND job.queue_name IN ('prepare', 'transcode') THEN (
         SELECT error_code FROM attempts
         WHERE version_id = version.id ORDER BY number DESC LIMIT 1
       ) END AS last_error,
       (SELECT min(at) FROM procrastinate_events WHERE job_id = job.id) AS queued_at,
       (SELECT max(at) FROM procrastinate_events
        WHERE job_id = job.id AND type = 'started') AS started_at,
       job.status = 'doing' AND coalesce(
         worker.last_heartbeat < now() - make_interval(secs => %s), true) AS is_stalled
FROM procrastinate_jobs job
LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
LEFT JOIN versions version ON version.id = (job.args->>'version_id')::uuid
WHERE job.status IN ('todo', 'doing', 'failed')
ORDER BY job.status = 'doing' DESC, job.status = 'todo' DESC, job.priority DESC, job.id
LIMIT %s
"""
# Leases of attempts, and of the parts of passes.
LEASES = f"""
SELECT worker, video_id::text AS video_id, number AS attempt, NULL AS segments, stage, percent,
       lease_expires_at, NOT {IS_LIVE} AS is_lost
FROM attempts WHERE outcome IS NULL
UNION ALL
SELECT worker, video_id::text, folder, concat(start, '-', until - 1), 'transcoding',
       100.0 * (
         SELECT count(*) FROM made_segments made WHERE made.version_id = pass.version_id
         AND rendition = renditions->>0 AND number >= start AND number < until
       ) / (until - start), lease_expires_at, NOT {IS_LIVE}
FROM pass_parts part JOIN passes pass USING (version_id)
JOIN versions ON versions.id = version_id
WHERE lease_expires_at IS NOT NULL ORDER BY worker, video_id, segments NULLS FIRST
"""  # noqa: S608 - put together from constants
WORKERS = """
SELECT id, last_heartbeat, last_heartbeat < now() - make_interval(secs => %s) AS is_dead
FROM procrastinate_workers ORDER BY id
"""
# Number of worker processes. Each one names its connections differently.
WORKER_PROCESSES = f"""(
  SELECT count(DISTINCT application_name) FROM pg_stat_activity
  WHERE datname = current_database() AND starts_with(application_name, '{WORKER_PREFIX}')
)"""  # noqa: S608
# All jobs of a video, also finished ones.
JOBS_OF_VIDEO = """
SELECT job.id, job.task_name AS task, job.status::text AS status, job.attempts, job.scheduled_at,
       (SELECT min(at) FROM procrastinate_events WHERE job_id = job.id) AS queued_at,
       (SELECT max(at) FROM procrastinate_events WHERE job_id = job.id) AS changed_at
FROM procrastinate_jobs job
WHERE %s IN (job.args->>'video_id', (
  SELECT video_id::text FROM versions WHERE id = (job.args->>'version_id')::uuid
))
ORDER BY job.id
"""
# Condition on waiting jobs that no lock prevents from starting.
_CAN_BEGIN = """
waiting.queue_name = 'transcode' AND waiting.status = 'todo'
AND coalesce(waiting.scheduled_at <= now(), true)
AND NOT EXISTS (
  SELECT FROM procrastinate_jobs holder
  WHERE holder.lock = waiting.lock AND holder.status = 'doing'
)
"""
# Condition that is true if no job waits for a slot of transcoding.
NOTHING_WAITS = f"NOT EXISTS (SELECT FROM procrastinate_jobs waiting WHERE {_CAN_BEGIN})"
# True if more passes with a higher priority wait than passes with a lower priority run. A job that
# shares a pass gives way to every pass, other jobs to first passes only.
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
# Lane of a requester's imports with the fewest jobs.
IMPORT_LANE = """
SELECT lane FROM generate_series(0, 3) lane
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
# The lock `FOR KEY SHARE` keeps a worker from taking the job before the transaction ends.
WAKE_WAITING = """
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted"}')
FROM (
  SELECT queue_name FROM procrastinate_jobs
  WHERE lock = %s AND status = 'todo' AND priority = 0
  LIMIT 1 FOR KEY SHARE
) waiting
"""
# Unfinished jobs about a video, other than those about its versions.
UNFINISHED_JOBS_OF_VIDEO = """
SELECT id, status = 'doing' AS is_running FROM procrastinate_jobs
WHERE status IN ('todo', 'doing') AND args->>'video_id' = %s
"""
PRIORITY = "SELECT priority FROM procrastinate_jobs WHERE id = %s"
# Count one more job of a requester, and return the number of the recent ones before it.
# Every minute one of them is forgotten, and no more than 20 are remembered. `forgotten_at` is when
# none is left. Concurrent transactions of a requester wait for each other here, so that each counts
# the jobs of the others.
COUNT_REQUEST = """
INSERT INTO recent_requests AS recent (requester, forgotten_at)
VALUES (%s, now() + interval '1 minute')
ON CONFLICT (requester) DO UPDATE
SET forgotten_at = interval '1 minute'
  + least(greatest(recent.forgotten_at, now()), now() + interval '20 minutes')
RETURNING ceil(extract(epoch FROM forgotten_at - now()) / 60 - 1)::int AS recent
"""
# Functions of procrastinate, which offers no others for a job without its worker.
QUEUE_AGAIN = "SELECT procrastinate_retry_job_v2(%s, now(), NULL, NULL, NULL)"
END = "SELECT procrastinate_finish_job_v1(%s, 'aborted', false)"
DELETE_FORGOTTEN = "DELETE FROM recent_requests WHERE forgotten_at < now()"
# procrastinate's own function deletes all jobs at once and sorts every event.
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
    """Return counts by queue and status, the first jobs, the workers, and their leases."""
    return {
        "counts": await fetch_rows(COUNTS),
        "jobs": await fetch_rows(JOBS, DEAD_AFTER_S, limit),
        "leases": await fetch_rows(LEASES),
        "workers": await fetch_rows(WORKERS, DEAD_AFTER_S),
    }


async def list_jobs_of(video_id: UUID) -> list[Row]:
    """Return the unfinished jobs about a video, without those about its versions."""
    return await fetch_rows(UNFINISHED_JOBS_OF_VIDEO, str(video_id))


async def priority_of(job_id: int) -> int | None:
    """Return the priority of a job; None if the job no longer exists."""
    rows = await fetch_rows(PRIORITY, job_id)
    return rows[0]["priority"] if rows else None


async def count_request(requester: str) -> int:
    """Count a job of a requester, and return the number of recent ones before it."""
    [row] = await fetch_rows(COUNT_REQUEST, requester)
    recent: int = row["recent"]
    return recent


async def queue_again(job_id: int) -> None:
    """Enqueue a started or failed job again, to run at once.

    A started job that was asked to abort becomes a failed one instead. Raises
    `psycopg.errors.RaiseException` if the job is in another state, or doesn't exist.
    """
    await execute(QUEUE_AGAIN, job_id)


async def end_job(job_id: int) -> None:
    """End a job whose worker is gone, which releases the job's lock."""
    await execute(END, job_id)


async def delete_forgotten_requests() -> None:
    """Delete the counts of requesters that queued no job recently."""
    await execute(DELETE_FORGOTTEN)


async def is_overtaken(job_id: int) -> bool:
    """Return whether a waiting pass should get the slot of the pass that this job runs."""
    [row] = await fetch_rows(OVERTAKEN, job_id)
    return bool(row["is_overtaken"])


async def emptiest_import_lane(prefix: str) -> str:
    """Return the lock of the lane with the fewest imports."""
    [row] = await fetch_rows(IMPORT_LANE, prefix)
    return f"{prefix}{row['lane']}"


async def import_waits(job_id: int, above_priority: int) -> bool:
    """Return whether an import above the priority waits for this job's slot."""
    [row] = await fetch_rows(IMPORT_WAITS, above_priority, job_id)
    return bool(row["waits"])


async def wake_waiting_job(lock: str) -> bool:
    """Have a worker look for a waiting job with this lock after the transaction.

    Return whether there is such a job.
    """
    return bool(await fetch_rows(WAKE_WAITING, lock))


async def prune_jobs(*, keep_days: int) -> int:
    """Delete jobs that ended before `keep_days`, in batches. Return their number."""
    pruned = 0
    while batch := await execute(PRUNE, keep_days, PRUNE_BATCH):
        pruned += batch
    return pruned
