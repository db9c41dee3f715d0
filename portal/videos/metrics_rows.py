"""The SQL of the service's figures for Prometheus: few queries, each bounded."""

from collections.abc import Sequence
from dataclasses import dataclass

from portal.database.connection import IS_LIVE, IS_PRESENT, Row, fetch_rows

Rows = Sequence[Row]

# Jobs that are done stay in the table; those that are not have an index of their own. A job's age
# counts from when it was asked for.
JOBS = """
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
VIDEOS = f"""
SELECT status, count(*) AS videos FROM videos WHERE {IS_PRESENT} GROUP BY status
"""  # noqa: S608  # constants of the code
FAILURES = f"""
SELECT coalesce(failure_code, '') AS code, count(*) AS videos
FROM videos WHERE status = 'failed' AND {IS_PRESENT} GROUP BY 1
"""  # noqa: S608
LEASES = f"""
SELECT CASE WHEN {IS_LIVE} THEN 'live' ELSE 'expired' END AS state,
       count(*) AS leases
FROM attempts WHERE outcome IS NULL GROUP BY 1
"""  # noqa: S608  # constants of the code
TOTALS = """
SELECT outcome, error_code, duration_range, attempts, duration_s, media_s FROM attempt_totals
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Rows of the queries above, as of one moment."""

    jobs: Rows
    videos: Rows
    failures: Rows
    leases: Rows
    totals: Rows


async def read_figures(queues: Sequence[str]) -> Figures:
    """Read everything; jobs are those of these queues."""
    return Figures(
        jobs=await fetch_rows(JOBS, list(queues)),
        videos=await fetch_rows(VIDEOS),
        failures=await fetch_rows(FAILURES),
        leases=await fetch_rows(LEASES),
        totals=await fetch_rows(TOTALS),
    )
