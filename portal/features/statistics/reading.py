"""Reads of statistics: the figures of a video or of the library, and the most watched videos."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Self
from uuid import UUID

from psycopg import sql
from psycopg.errors import QueryCanceled

from portal.accounts.permissions import Audience
from portal.database.connection import IS_PRESENT, Row, execute, run_query, sql_with, transaction
from portal.errors import FieldError, InvalidRequest
from portal.features.statistics.figures import (
    COUNTS,
    LISTS,
    OTHER,
    STARTUP_RANGES,
    Counts,
    Kind,
    Sums,
)
from portal.features.statistics.films import fetch_films
from portal.features.statistics.periods import Days
from portal.locale.messages import Message

# Two conditions, because PostgreSQL uses no index for `IS NOT DISTINCT FROM`.
OF_VIDEO = "video_id = {video_id}"
OF_LIBRARY = "video_id IS NULL"
# psycopg parses JSON faster than arrays.
STARTUPS = "to_json(startups) AS startups, '[]'::json AS seen, '[]'::json AS plays"
ALL_LISTS = ", ".join(f"to_json({name}) AS {name}" for name in LISTS)
DAYS = f"""
SELECT day AS date, {", ".join(COUNTS)}, {{lists}}
FROM video_days
WHERE {{owner}} AND kind = 'all' AND day BETWEEN {{start}} AND {{end}}
"""  # noqa: S608 - put together from constants
SUMS = ", ".join(f"coalesce(sum({name}), 0)::bigint AS {name}" for name in COUNTS)
# Sums of subscripts take a third of the time of unnest().
RANGE_SUMS = ", ".join(f"sum(startups[{number + 1}])::bigint" for number in range(STARTUP_RANGES))
STARTUP_SUMS = f"""
CASE WHEN count(startups) > 0 THEN to_json(ARRAY[{RANGE_SUMS}]) ELSE '[]' END AS startups
"""
TOTAL = f"""
SELECT {SUMS}, {STARTUP_SUMS} FROM video_days
WHERE {{owner}} AND kind = 'all' AND day BETWEEN {{start}} AND {{end}}
"""  # noqa: S608 - put together from constants
# The largest parts of each kind, and one for all others, whose start-up times are not summed.
PARTS = f"""
WITH parts AS (
  SELECT kind, value, {SUMS}, {STARTUP_SUMS}, min(day) AS first_day, max(day) AS last_day
  FROM video_days
  WHERE {{owner}} AND kind <> 'all' AND day BETWEEN {{start}} AND {{end}}
  GROUP BY kind, value HAVING sum(viewers) > 0 OR sum(watch_ms) > 0
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY kind ORDER BY value = {{other}}, views DESC, watch_ms DESC, value
  ) > {{limit}} AS is_small FROM parts
)
SELECT kind, CASE WHEN is_small THEN {{other}} ELSE value END AS name, {SUMS},
       CASE count(*) WHEN 1 THEN (array_agg(startups))[1] ELSE '[]' END AS startups,
       min(first_day) AS first_day, max(last_day) AS last_day
FROM ranked GROUP BY kind, name ORDER BY kind, views DESC, watch_ms DESC, name
"""  # noqa: S608 - put together from constants
MAX_PARTS = 50
# The library has no sums by site. Summing two sites on each of ten days of 100,000 videos takes
# 0.7 s, which is too long for a page.
LIBRARY_SITES = f"""
SELECT value AS name, {SUMS}
FROM video_days
WHERE video_id IS NOT NULL AND kind = 'site' AND day BETWEEN {{start}} AND {{end}}
GROUP BY value HAVING sum(viewers) > 0
ORDER BY views DESC, watch_ms DESC, value LIMIT {{limit}}
"""  # noqa: S608 - put together from constants
MAX_LIBRARY_SITES = 100
# `{listed}` is the condition for videos that a reader's lists include.
RANKING = """
SELECT id, title, owner_id, editor_ids, sums.views, viewers, watch_ms, share, sums.{key} AS value
FROM {sums} AS sums JOIN videos ON videos.id = sums.video_id
WHERE viewers > 0 AND {present} AND {listed} AND {beyond}
ORDER BY sums.{key} DESC, sums.video_id DESC LIMIT {limit}
"""
OF_PERIOD = "(SELECT * FROM video_periods WHERE period = {period})"
OF_DAYS = """(
  SELECT video_id, sum(views)::bigint AS views, sum(viewers)::bigint AS viewers,
         sum(watch_ms)::bigint AS watch_ms, sum(share)::bigint AS share,
         coalesce(sum(share) / nullif(100.0 * sum(viewers), 0), 0)::double precision
           AS average_share
  FROM video_days
  WHERE video_id IS NOT NULL AND kind = 'all' AND day BETWEEN {start} AND {end}
  GROUP BY video_id
)"""
# A year of 100,000 videos that were watched on ten days each takes 1.2 s.
LIMIT_TIME = "SET LOCAL statement_timeout = '5s'"
BEYOND = "(sums.{key}, sums.video_id) < ({value}, {video_id})"

# Sums of the library over all days; one row.
PLAYBACK = f"""
SELECT {SUMS}, {STARTUP_SUMS} FROM video_days WHERE {OF_LIBRARY} AND kind = 'all'
"""  # noqa: S608 - put together from constants


class Ranking(StrEnum):
    """Order of videos by one of their figures, the highest first."""

    VIEWS = "-views"
    WATCH_TIME = "-watchSeconds"
    AVERAGE_SHARE = "-averageShare"


# Each column has an index that begins with the period.
COLUMNS = {
    Ranking.VIEWS: "views",
    Ranking.WATCH_TIME: "watch_ms",
    Ranking.AVERAGE_SHARE: "average_share",
}


@dataclass(frozen=True, slots=True)
class RankingCursor:
    """Place in a ranking: after a video with this value."""

    value: float
    video_id: UUID

    def __str__(self) -> str:
        return f"{self.video_id.hex}-{self.value}"

    @classmethod
    def parse(cls, text: str, ranking: Ranking) -> Self | None:
        """Return the place that a text names; None if it names no place in the ranking."""
        video_id, _, value = text.partition("-")
        read = float if ranking is Ranking.AVERAGE_SHARE else int
        try:
            return cls(read(value), UUID(hex=video_id))
        except ValueError:
            return None


@dataclass(slots=True, kw_only=True)
class VideoFigures(Counts):
    """Figures of a video. `value` is the one that the ranking orders by."""

    id: UUID
    title: str
    owner_id: UUID | None
    editor_ids: Sequence[UUID]
    value: float

    @property
    def audience(self) -> Audience:
        """Return those of the video's audience who may edit it."""
        return Audience(owner_id=self.owner_id, editor_ids=frozenset(self.editor_ids))


@dataclass(frozen=True, slots=True)
class RankedVideos:
    """Videos of a ranking, and the place of the last one if others follow."""

    videos: Sequence[VideoFigures]
    next: RankingCursor | None


@dataclass(slots=True, kw_only=True)
class DayFigures(Sums):
    """Figures of one day."""

    date: date


@dataclass(slots=True, kw_only=True)
class PartFigures(Counts):
    """Figures of a part of the viewers: those with one device, or from one site.

    A height of the picture has a watch time alone, because viewers see several heights.
    """

    name: str
    first_day: date | None = None
    last_day: date | None = None


@dataclass(slots=True, kw_only=True)
class Statistics(Sums):
    """Figures of a video or of the library over some days, and of parts of the viewers.

    `days` has every day, also those without views.
    """

    days: Sequence[DayFigures]
    devices: Sequence[PartFigures]
    places: Sequence[PartFigures]
    sites: Sequence[PartFigures]
    heights: Sequence[PartFigures]


async def read_statistics(video_id: UUID | None, days: Days) -> Statistics:
    """Return the figures of a video, or of the whole library if `video_id` is None.

    Retention and replays mean nothing for the library, and are zeros. Its sites are read by
    `read_library_sites`.
    """
    limits = {"owner": _owner(video_id), "start": days.start or date.min, "end": days.end}
    lists = sql.SQL(ALL_LISTS if video_id else STARTUPS)
    rows = await run_query(sql_with(DAYS, lists=lists, **limits))
    watched = {row["date"]: DayFigures(**row) for row in rows}
    parts: dict[str, list[PartFigures]] = {kind: [] for kind in Kind}
    parts_query = sql_with(PARTS, **limits, limit=MAX_PARTS, other=OTHER)
    for row in await run_query(parts_query):
        parts[row.pop("kind")].append(PartFigures(**row))
    first = days.start or min(watched, default=days.end)
    dates = [first + timedelta(days=age) for age in range((days.end - first).days + 1)]
    statistics = Statistics.over(
        list(watched.values()),
        days=[watched.get(date) or DayFigures(date=date) for date in dates],
        devices=parts[Kind.DEVICE],
        places=parts[Kind.PLACE],
        sites=parts[Kind.SITE],
        heights=parts[Kind.HEIGHT],
    )
    film = (await fetch_films([video_id])).get(video_id) if video_id else None
    if film is None:
        return statistics
    return replace(statistics, seen=film.curve(statistics.seen), plays=film.curve(statistics.plays))


async def read_library_sites(days: Days) -> list[PartFigures] | None:
    """Return the sites with the most views of all videos; None if summing takes too long."""
    start = days.start or date.min
    query = sql_with(LIBRARY_SITES, start=start, end=days.end, limit=MAX_LIBRARY_SITES)
    try:
        rows = await _run_briefly(query)
    except QueryCanceled:
        # No index finds sites by day, so fewer days might take as long.
        return None
    return [PartFigures(**row) for row in rows]


async def read_counts(video_id: UUID | None, days: Days) -> Counts:
    """Return the counts of a video, or of the library, over some days."""
    query = sql_with(TOTAL, owner=_owner(video_id), start=days.start or date.min, end=days.end)
    [row] = await run_query(query)
    return Counts(**row)


def _owner(video_id: UUID | None) -> sql.Composable:
    return sql_with(OF_VIDEO, video_id=video_id) if video_id else sql.SQL(OF_LIBRARY)


async def rank_videos(
    ranking: Ranking,
    *,
    days: Days,
    listed: sql.Composable,
    limit: int,
    after: RankingCursor | None = None,
) -> RankedVideos:
    """Return the first videos of a ranking, or those after a place.

    `listed` is the condition in SQL for the videos that are included. Videos that nobody watched
    are left out. Days that are no period take longer, because the sums of all videos are computed.
    Raises `InvalidRequest` if they take too long.
    """
    key = sql.Identifier(COLUMNS[ranking])
    beyond: sql.Composable = sql.SQL("true")
    if after:
        beyond = sql_with(BEYOND, key=key, value=after.value, video_id=after.video_id)
    if days.period is None:
        sums = sql_with(OF_DAYS, start=days.start or date.min, end=days.end)
    else:
        sums = sql_with(OF_PERIOD, period=days.period.number)
    query = sql_with(
        RANKING,
        key=key,
        sums=sums,
        present=sql.SQL(IS_PRESENT),
        listed=listed,
        beyond=beyond,
        limit=limit + 1,
    )
    rows = await (_run_ranking_of_days(query) if days.period is None else run_query(query))
    videos = [VideoFigures(**row) for row in rows]
    last = videos[limit - 1] if len(videos) > limit else None
    return RankedVideos(videos[:limit], RankingCursor(last.value, last.id) if last else None)


async def _run_ranking_of_days(query: sql.Composable) -> list[Row]:
    try:
        return await _run_briefly(query)
    except QueryCanceled as exc:
        fault = Message(
            "Too many videos were watched on these days. Ask for fewer days, or for a `period`."
        )
        raise InvalidRequest([FieldError("/from", fault)]) from exc


async def _run_briefly(query: sql.Composable) -> list[Row]:
    """Return the rows of a query. Raises `QueryCanceled` if it takes longer than `LIMIT_TIME`."""
    async with transaction():
        await execute(LIMIT_TIME)
        return await run_query(query)
