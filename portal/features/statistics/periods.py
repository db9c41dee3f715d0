"""Periods that end today, and the sums of each video over them, which order lists of videos.

The fold adds its changes to the sums, and takes away the days that have left a period.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from portal.database.connection import execute

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


class Period(StrEnum):
    """Days up to today, in UTC."""

    WEEK = "7d"
    FOUR_WEEKS = "28d"
    QUARTER = "90d"
    YEAR = "365d"
    ALL_TIME = "all"

    @property
    def days(self) -> int | None:
        """Return the number of days; None for all days."""
        return None if self is Period.ALL_TIME else int(self.removesuffix("d"))

    @property
    def number(self) -> int:
        """Return the value of `video_periods.period`: the number of days, 0 for all days."""
        return self.days or 0


DEFAULT_PERIOD = Period.FOUR_WEEKS
PERIOD_NUMBERS = tuple(period.number for period in Period)


@dataclass(frozen=True, slots=True)
class Days:
    """Days of statistics, both included, in UTC. Without a `start` they begin with the figures.

    `period` is the period that has these days, None if no period has.
    """

    start: date | None
    end: date
    period: Period | None = None

    @property
    def count(self) -> int | None:
        """Return the number of days; None without a start."""
        return (self.end - self.start).days + 1 if self.start else None

    @property
    def before(self) -> "Days | None":
        """Return as many days before these; None without a start."""
        if self.start is None:
            return None
        last = self.start - timedelta(days=1)
        return Days(last - (self.end - self.start), last)


def days_of_period(period: Period) -> Days:
    """Return the days of a period, which ends today."""
    today = datetime.now(UTC).date()
    start = today - timedelta(days=period.days - 1) if period.days else None
    return Days(start, today, period)


async def add_changes(rows: str) -> None:
    """Add changes of `video_days`, as rows in JSON."""
    await execute(ADD, rows, list(PERIOD_NUMBERS))
    await execute(ADD_VIEWS, rows)


async def begin_day() -> None:
    """Let all periods end today (UTC): subtract the days that have left them.

    Does nothing when they end today already.
    """
    await execute(ADVANCE, list(PERIOD_NUMBERS))
