"""Running totals of ended attempts, which outlive the attempts, their videos and the workers.

One row for each outcome, error code and range of durations, so that reading them takes the same
time after ten attempts and after ten million. A total is written in the transaction that ends
the attempt.
"""

from portal.database.connection import execute

# Upper ends of the ranges, in seconds; the last range has none. What was counted stays in the range
# it was put in: other bounds need a migration.
DURATION_BOUNDS_S = (5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10_800.0, 43_200.0)

COUNT = """
INSERT INTO attempt_totals (outcome, error_code, duration_range, attempts, duration_s, media_s)
SELECT outcome, coalesce(error_code, ''), width_bucket(took.seconds, %s::float8[]),
       1, took.seconds, %s
FROM attempts,
     LATERAL (SELECT extract(epoch FROM finished_at - started_at)::float8 AS seconds) AS took
WHERE id = %s
ON CONFLICT (outcome, error_code, duration_range) DO UPDATE
SET attempts = attempt_totals.attempts + 1,
    duration_s = attempt_totals.duration_s + excluded.duration_s,
    media_s = attempt_totals.media_s + excluded.media_s
"""


async def count_attempt(attempt_id: int, *, media_s: float = 0.0) -> None:
    """Count an attempt that was just ended, as a part of that transaction.

    `media_s` is how much of a video it made, in seconds.
    """
    await execute(COUNT, list(DURATION_BOUNDS_S), media_s, attempt_id)
