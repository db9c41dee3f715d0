"""Sums of each video over the last days, which lists of videos are sorted by.

A period ends today and has 7, 28, 90 or 365 days; `ALL_TIME` is the period of all days. The fold
adds its changes, and takes away the days that have left a period.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from portal.database.connection import execute

ALL_TIME = 0
PERIODS = (7, 28, 90, 365, ALL_TIME)

# `%s` is the rows of `video_days` that were added, in JSON. A report that was late may be of a day
# that has left a period.
ADD = """
WITH change AS (
  SELECT * FROM jsonb_populate_recordset(NULL::video_days, %s)
  WHERE kind = 'all' AND video_id IS NOT NULL
)
INSERT INTO video_periods
SELECT video_id, period, sum(views), sum(viewers), sum(watch_ms), sum(share)
FROM change, unnest(%s::smallint[]) AS period, statistics_day AS today
WHERE period = 0 OR change.day > today.day - period
GROUP BY video_id, period
ON CONFLICT (period, video_id) DO UPDATE SET
  views = video_periods.views + excluded.views,
  viewers = video_periods.viewers + excluded.viewers,
  watch_ms = video_periods.watch_ms + excluded.watch_ms,
  share = video_periods.share + excluded.share
"""
# The counts of views that cards show.
ADD_VIEWS = """
UPDATE publications SET views = publications.views + change.views FROM (
  SELECT video_id, sum(views) AS views FROM jsonb_populate_recordset(NULL::video_days, %s)
  WHERE kind = 'all' GROUP BY video_id HAVING sum(views) <> 0
) AS change WHERE publications.id = change.video_id
"""
# Takes the days away that have left a period since the last time, if any.
ADVANCE = """
WITH today AS (
  UPDATE statistics_day SET day = (now() AT TIME ZONE 'UTC')::date
  FROM statistics_day AS before
  WHERE before.day < (now() AT TIME ZONE 'UTC')::date
  RETURNING before.day AS before, statistics_day.day AS day
), gone AS (
  SELECT video_id, period, sum(views) AS views, sum(viewers) AS viewers,
         sum(watch_ms) AS watch_ms, sum(share) AS share
  FROM today, unnest(%s::smallint[]) AS period, video_days AS past
  WHERE kind = 'all' AND video_id IS NOT NULL AND period > 0
    AND past.day > today.before - period AND past.day <= today.day - period
  GROUP BY video_id, period
)
UPDATE video_periods SET
  views = video_periods.views - gone.views,
  viewers = video_periods.viewers - gone.viewers,
  watch_ms = video_periods.watch_ms - gone.watch_ms,
  share = video_periods.share - gone.share
FROM gone
WHERE video_periods.video_id = gone.video_id AND video_periods.period = gone.period
"""


@dataclass(frozen=True, slots=True)
class Days:
    """Days of statistics, both included, in UTC. Without a `start` they begin with the figures.

    `period` is the period with these days, None if they are none of the `PERIODS`.
    """

    start: date | None
    end: date
    period: int | None = None

    @property
    def before(self) -> "Days | None":
        """Return as many days before these; None without a start."""
        if self.start is None:
            return None
        last = self.start - timedelta(days=1)
        return Days(last - (self.end - self.start), last)


def days_of_period(period: int) -> Days:
    """Return the days of a period, which ends today."""
    today = datetime.now(UTC).date()
    return Days(today - timedelta(days=period - 1) if period else None, today, period)


async def add_changes(rows: str) -> None:
    """Add changes of `video_days`, as rows in JSON."""
    await execute(ADD, rows, list(PERIODS))
    await execute(ADD_VIEWS, rows)


async def begin_day() -> None:
    """Let all periods end today (UTC): subtract the days that have left them.

    Does nothing when they end today already.
    """
    await execute(ADVANCE, list(PERIODS))
