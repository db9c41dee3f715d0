"""Recovery: enqueue jobs again that a dead worker left behind, and replace lost ones.

Jobs are idempotent: each reads the state again and skips finished work. So there are two rules:
a stalled job runs again, and a row that requires a job gets a new one if its job no longer exists.

A job is stalled when its worker has sent no heartbeat for `DEAD_AFTER_S`. Another worker begins it
within a minute, because the attempt's lease is shorter. A living worker can lose a job, too: the
response with the job did not arrive, or the worker could not record the job's end. Such a job
is not under way, as its kind declares, and has run for twice as long as it may.

Recovery also removes deleted videos that were not restored in time. Their rows need no job.
"""

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from portal.database.connection import (
    IS_UNDER_WAY,
    execute,
    fetch_rows,
    retry_outage,
    server_time,
    transaction,
)
from portal.features import FEATURES
from portal.features.deletion.service import finish_deletions
from portal.queue.jobs import Job, Required
from portal.queue.rows import DEAD_AFTER_S, end_job, queue_again

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 10
JOBS = {job.task_name: job for feature in FEATURES for job, _ in feature.jobs}


def _cases(values: Mapping[str, object]) -> str:
    """Return an SQL expression for the value of a job's task; null for other tasks."""
    cases = "\n".join(f"WHEN '{task}' THEN {value}" for task, value in values.items())
    return f"CASE job.task_name {cases} END"


def _rows_without_job(jobs: Iterable[Job]) -> str:
    """Return a query for the rows that require a job which is lost."""
    required = "UNION ALL".join(
        _required_rows(job.task_name, job.required) for job in jobs if job.required
    )
    return f"""
    SELECT required.* FROM ({required}) required
    LEFT JOIN procrastinate_jobs job ON job.id = job_id
    WHERE coalesce(job.status NOT IN ('todo', 'doing', 'failed'), true) AND NOT EXISTS (
      SELECT FROM attempts WHERE {IS_UNDER_WAY}
        AND (arguments->>'version_id' = version_id::text OR arguments->>'video_id' = video_id::text)
    )
    """  # noqa: S608 - put together from constants


def _required_rows(task: str, required: Required) -> str:
    arguments = ", ".join(f"'{name}', {column}" for name, column in required.arguments.items())
    return f"""
    SELECT '{task}' AS task, {required.job_id} AS job_id,
           jsonb_build_object({arguments}) AS arguments
    FROM {required.table} WHERE {required.condition} AND {required.job_id} IS NOT NULL
    """  # noqa: S608


_LONGEST_S = _cases({name: 2 * job.longest_s for name, job in JOBS.items()})
_IS_UNDER_WAY = _cases({name: f"({job.is_under_way})" for name, job in JOBS.items()})
STALLED = f"""
SELECT job.id, job.task_name AS task, job.queueing_lock, job.abort_requested
FROM procrastinate_jobs job LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status = 'failed' AND job.queueing_lock IS NULL AND NOT job.abort_requested
OR job.status = 'doing' AND (
  coalesce(worker.last_heartbeat < now() - make_interval(secs => {DEAD_AFTER_S}), true)
  OR NOT EXISTS (
    SELECT FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
      AND at > now() - make_interval(secs => {_LONGEST_S})
  ) AND NOT {_IS_UNDER_WAY}
)
"""  # noqa: S608
WITHOUT_JOB = _rows_without_job(JOBS.values())


async def recover_forever(ending: asyncio.Event) -> None:
    """Recover jobs and finish deletions every few seconds, in every worker until it ends."""
    # Checked in addition to cancellation, because the queue's pool may swallow a cancellation.
    while not ending.is_set():
        try:
            await recover()
            await finish_deletions()
        except psycopg.Error:
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await retry_outage(server_time, timeout_s=math.inf)
            # No worker could send a heartbeat during the outage; living workers do so first.
            await asyncio.sleep(2 * RECOVERY_INTERVAL_S)
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover() -> int:
    """Enqueue stalled jobs again and replace lost ones; return how many.

    A job that two workers recover at the same time is enqueued once.
    """
    stalled = await fetch_rows(STALLED)
    for row in stalled:
        logger.warning(
            "Enqueuing a stalled job again",
            extra={"action": "recover", "job_id": row["id"], "task": row["task"]},
        )
        # The next periodic job of the kind may be queued already, or the video was deleted.
        if row["queueing_lock"] or row["abort_requested"]:
            await end_job(row["id"])
        else:
            await queue_again(row["id"])
    lost = await fetch_rows(WITHOUT_JOB)
    for row in lost:
        fields = {"task": row["task"], "arguments": row["arguments"], "job_id": row["job_id"]}
        logger.warning("Replacing a lost job", extra={"action": "recover", **fields})
        async with transaction():
            await _replace_lost_job(row["task"], row["arguments"], row["job_id"])
    return len(stalled) + len(lost)


async def _replace_lost_job(task: str, arguments: Mapping[str, Any], lost_id: int) -> None:
    """Enqueue a new job for a row that requires one, unless another worker has done so."""
    job = JOBS[task]
    required = job.required
    if required is None:
        return
    if required.replace is not None:
        await required.replace(arguments, lost_id)
        return
    table = required.table
    columns = (required.job_id, *required.arguments.values())
    values = (lost_id, *(arguments[name] for name in required.arguments))
    is_row = " AND ".join(f"{column} = %s" for column in columns)
    if await fetch_rows(f"SELECT FROM {table} WHERE {is_row} FOR UPDATE", *values):
        job_id = await job.enqueue(**arguments)
        change = f"UPDATE {table} SET {required.job_id} = %s WHERE {is_row}"  # noqa: S608
        await execute(change, job_id, *values)
