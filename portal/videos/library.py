"""Pages of the library, searched, filtered and sorted; and related videos.

Pages are cut by keyset: a page begins after the last video of the previous one, however many videos
were added or deleted since. Nothing is counted beyond `COUNT_CAP`.

A small number of matches is fetched by their index and sorted. The first of many matches are soon
found by a walk along the order's index. When all of them are far along it, they are sorted, too.

The SQL is composed here, because building such queries with the ORM takes several times as long as
running them. Parameters are literals in the SQL: a generic plan is a bad one for most searches, and
the server would switch to it after a few repetitions.
"""

from dataclasses import dataclass, field, replace
from uuid import UUID

from psycopg import sql

from portal.accounts.permissions import (
    Principal,
    listed_for,
    shared_with,
    visible_to,
    with_public_pages,
)
from portal.database.connection import (
    IS_PRESENT,
    JOIN_ATTEMPT,
    Row,
    fetch_rows,
    run_query,
    sql_with,
)
from portal.database.models import Approval, Video, VideoStatus
from portal.database.search import tag_query
from portal.text import split_tags
from portal.videos.library_queries import Cursor, LibraryQuery, Match, Order, Tier
from portal.videos.reading import AUDIENCE_NOW, fetch_in_order
from portal.videos.words import videos_that_say

COUNT_CAP = 1_000
# True for all videos. With it the planner can walk along an index of the versions.
HAS_VERSION = "size_bytes IS NOT NULL"
IN_SERIES = "id IN (SELECT video_id FROM series_videos WHERE series_id = {series_id}::uuid)"
# Videos that a walk along an order reads before all matches are fetched by the index.
WALK_STEPS = 2_000
# Videos, each with a status that is read only where a condition needs it. A join would read all
# matches first. It is better for a rare status, whose versions have an index.
WITH_STATUS = """(
  SELECT *, (SELECT status FROM versions WHERE versions.id = version_id) AS status
  FROM publications
) AS videos"""
# The planner plans a materialized part for all its rows, though it stops at the limit. Otherwise it
# reads the table from its start, where there may be no matches.
COUNT = """
WITH found AS MATERIALIZED (SELECT 1 FROM {videos} WHERE {where})
SELECT count(*) AS total FROM (SELECT 1 FROM found LIMIT {limit}) AS counted
"""
WALK = """
SELECT id, value, {tier} AS tier, NULL AS total FROM (
  SELECT id, {key} AS value, search, category_ids, status, {audience},
         deleted_at, created_at, updated_at
  FROM videos WHERE {has_version} AND {beyond} ORDER BY {key} {way}, id {way} LIMIT {steps}
) AS near
WHERE {where} ORDER BY value {way}, id {way} LIMIT {limit}
"""
# A single row with nulls has the total if there is no place.
FETCH = """
WITH found AS MATERIALIZED (
  SELECT id, {key} AS value, {tier} AS tier FROM videos WHERE {where}
), counted AS (
  SELECT count(*) AS total FROM found
)
SELECT place.*, total FROM counted LEFT JOIN LATERAL (
  SELECT * FROM found WHERE {beyond}
  ORDER BY tier {tier_way}, value {way}, id {way} LIMIT {limit}
) AS place ON true
"""
# The places that `WALK` or `FETCH` found, with columns of their videos.
ROWS = """
SELECT {columns}, tier, value, total FROM ({places}) AS place LEFT JOIN videos USING (id)
ORDER BY tier {tier_way}, value {way}, id {way}
"""
# Stages of the videos that are processing.
STAGES = f"""
SELECT video.id, attempt.stage, attempt.percent
FROM videos video {JOIN_ATTEMPT}
WHERE video.id = ANY(%s) AND video.status = 'processing'
"""  # noqa: S608 - put together from constants
# Cap on the candidates of each kind: the newest, with a common tag, with a common category.
MAX_CANDIDATES = 500
# Each kind has its own index. The materialized parts stop at the limit.
RELATED = """
WITH newest AS MATERIALIZED (
  SELECT id FROM videos ORDER BY created_at DESC, id DESC LIMIT {candidates}
), tagged AS MATERIALIZED (
  SELECT id FROM videos WHERE search @@ {any_tag}::tsquery LIMIT {candidates}
), alike AS MATERIALIZED (
  SELECT id FROM videos WHERE category_ids && {categories} LIMIT {candidates}
), candidate AS (
  SELECT id FROM newest UNION SELECT id FROM tagged UNION SELECT id FROM alike
), counted AS (
  SELECT id, created_at, {tags} AS tags,
    (SELECT count(*) FROM unnest(category_ids) AS one WHERE one = ANY ({categories})) AS categories
  FROM candidate JOIN videos USING (id)
  WHERE id <> {own} AND status = 'ready' AND {present} AND {listed}
)
SELECT id FROM counted WHERE tags + categories > 0
ORDER BY tags DESC, categories DESC, created_at DESC, id DESC LIMIT {limit}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPage:
    """Page of videos, and the number of all matches, up to one more than `COUNT_CAP`.

    `rows` have the ids of the videos, and the columns that the query names. `previous` and `next`
    are None at the ends. `text` is the search that replaced the typed one.
    """

    rows: list[Row] = field(default_factory=list)
    is_first: bool = True
    total: int = 0
    text: str = ""
    previous: Cursor | None = None
    next: Cursor | None = None

    @property
    def video_ids(self) -> list[UUID]:
        """Return the ids of the videos, in their order."""
        return [row["id"] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Work:
    """Progress of a video's processing. The `stage` of a waiting video is None."""

    stage: str | None
    percent: float


async def list_videos(
    query: LibraryQuery,
    *,
    limit: int,
    after: Cursor | None = None,
    before: Cursor | None = None,
) -> LibraryPage:
    """Return a page of the library: the first one, or the one after or before a place."""
    if query.finds_nothing:
        return LibraryPage()
    written = await _count_written(query)
    # Spoken matches come last: viewers rarely page through `COUNT_CAP` videos to reach them.
    if query.words and written <= COUNT_CAP:
        # A public page doesn't reveal the words of the film.
        watchable = replace(query, includes_public_pages=False)
        spoken = await videos_that_say(query.words, among=_filters(watchable))
        query = replace(query, is_said=tuple(spoken))
    if not written and not query.is_said:
        return LibraryPage()
    order = query.order
    if before is not None:
        total, rows = await _find_rows(
            query, order.reverse(), before, written=written, limit=limit + 1
        )
        if len(rows) > limit:
            return _page_of(rows[limit - 1 :: -1], total, is_first=False, has_next=True)
        # Less than a page is left before the place, so return the first page.
        after = None
    total, rows = await _find_rows(query, order, after, written=written, limit=limit + 1)
    if total == 0:
        return LibraryPage()
    has_next = len(rows) > limit
    return _page_of(rows[:limit], total, is_first=after is None, has_next=has_next)


async def read_work(video_ids: list[UUID]) -> dict[UUID, Work]:
    """Return the progress of the videos that are processing, by id."""
    if not video_ids:
        return {}
    rows = await fetch_rows(STAGES, video_ids)
    return {row["id"]: Work(row["stage"], row["percent"] or 0.0) for row in rows}


async def related_videos(video: Video, *, seen_by: Principal, limit: int) -> list[Video]:
    """Return ready videos by the number of common tags, then of common categories, then by age."""
    tags = split_tags(video.tags)
    tagged = [sql_with("(search @@ {tag}::tsquery)::int", tag=tag_query(tag)) for tag in tags]
    text = sql_with(
        RELATED,
        candidates=MAX_CANDIDATES,
        any_tag=" | ".join(map(tag_query, tags)),
        categories=sql_with("{ids}::smallint[]", ids=list(video.category_ids)),
        tags=sql.SQL(" + ").join([sql.SQL("0"), *tagged]),
        own=video.id,
        present=sql.SQL(IS_PRESENT),
        listed=with_public_pages(listed_for(seen_by)),
        limit=limit,
    )
    rows = await run_query(text)
    return await fetch_in_order([row["id"] for row in rows])


def _page_of(rows: list[Row], total: int, *, is_first: bool, has_next: bool) -> LibraryPage:
    return LibraryPage(
        rows=rows,
        is_first=is_first,
        total=total,
        previous=None if is_first or not rows else _place_of(rows[0]),
        next=_place_of(rows[-1]) if rows and has_next else None,
    )


def _place_of(row: Row) -> Cursor:
    return Cursor(row["tier"], row["value"], row["id"])


async def _find_rows(
    query: LibraryQuery, order: Order, start: Cursor | None, *, written: int, limit: int
) -> tuple[int, list[Row]]:
    """Return the number of matches, at most `COUNT_CAP` + 1, and the rows after a place.

    `written` is the number of matches without the spoken ones, counted up to the same limit.
    """
    if written <= COUNT_CAP:
        total, rows = await _sort_all(query, order, start, limit=limit)
        return min(total, COUNT_CAP + 1), rows
    rows = []
    for tier in reversed(query.tiers) if order.backwards else query.tiers:
        if start and (tier.number > start.tier if order.backwards else tier.number < start.tier):
            continue
        begin = start if start and start.tier == tier.number else None
        rows += await _find_in_tier(query, tier, order, begin, limit=limit - len(rows))
        if len(rows) == limit:
            break
    return COUNT_CAP + 1, rows


async def _find_in_tier(
    query: LibraryQuery, tier: Tier, order: Order, start: Cursor | None, *, limit: int
) -> list[Row]:
    rows = await _walk(query, tier, order, start, limit=limit)
    if len(rows) < limit:
        _, rows = await _sort_all(query, order, start, tier=tier, limit=limit)
    return rows


async def _count_written(query: LibraryQuery) -> int:
    """Return the number of videos that match in their details, at most `COUNT_CAP` + 1.

    The best tier of matches is counted first: if it alone has more than `COUNT_CAP`, the others,
    which take longer to find, needn't be.
    """
    best = await _count_matches(query, query.tiers[0].own)
    if best > COUNT_CAP or len(query.tiers) == 1:
        return best
    return await _count_matches(query, query.tiers[-1].whole)


async def _count_matches(query: LibraryQuery, match: Match) -> int:
    """Return the number of videos that match and pass the filters, at most `COUNT_CAP` + 1."""
    is_rare = query.status not in (None, VideoStatus.READY)
    text = sql_with(
        COUNT,
        videos=sql.SQL("videos" if is_rare else WITH_STATUS),
        where=_where(query, match),
        limit=COUNT_CAP + 1,
    )
    [counted] = await run_query(text)
    return int(counted["total"])


async def _walk(
    query: LibraryQuery, tier: Tier, order: Order, start: Cursor | None, *, limit: int
) -> list[Row]:
    """Return the first matches of a tier among the `WALK_STEPS` videos after `start`."""
    places = sql_with(
        WALK,
        audience=sql.SQL(AUDIENCE_NOW),
        has_version=sql.SQL(HAS_VERSION),
        where=_where(query, tier.own),
        beyond=_within(start, order, key=order.key) if start else sql.SQL("true"),
        key=sql.SQL(order.key),
        way=_way(order.descending),
        tier=tier.number,
        steps=WALK_STEPS,
        limit=limit,
    )
    return await _read_places(query, order, places)


async def _sort_all(
    query: LibraryQuery,
    order: Order,
    start: Cursor | None,
    *,
    tier: Tier | None = None,
    limit: int,
) -> tuple[int, list[Row]]:
    """Count and sort all matches, of one tier or of all. Return the first ones after `start`."""
    places = sql_with(
        FETCH,
        where=_where(query, tier.own if tier else query.tiers[-1].whole),
        beyond=_beyond(start, order) if start else sql.SQL("true"),
        tier=tier.number if tier else _tier_of_row(query.tiers),
        tier_way=_way(order.backwards),
        key=sql.SQL(order.key),
        way=_way(order.descending),
        limit=limit,
    )
    rows = await _read_places(query, order, places)
    return rows[0]["total"], [row for row in rows if row["id"] is not None]


async def _read_places(query: LibraryQuery, order: Order, places: sql.Composable) -> list[Row]:
    """Return places, in their order, with the columns of videos that the query names."""
    text = sql_with(
        ROWS,
        places=places,
        columns=sql.SQL(", ".join(query.columns)),
        tier_way=_way(order.backwards),
        way=_way(order.descending),
    )
    return await run_query(text)


def _where(query: LibraryQuery, match: Match) -> sql.Composable:
    """Return the condition for a match that passes the filters."""
    return sql_with("{match} AND {filters}", match=_matches(match), filters=_filters(query))


def _filters(query: LibraryQuery) -> sql.Composable:
    """Return the condition of the filters, without that for the text."""
    conditions: list[sql.Composable] = [sql.SQL(IS_PRESENT), _is_found(query)]
    hides_failed = query.hides_failed and query.status is not VideoStatus.READY
    if hides_failed and not query.seen_by.sees_all:
        condition = "(status <> 'failed' OR owner_id = {own_id}::uuid)"
        conditions.append(sql_with(condition, own_id=query.seen_by.account_id))
    if query.shared:
        conditions.append(shared_with(query.seen_by, query.shared))
        if own_id := query.seen_by.account_id:
            conditions.append(sql_with("owner_id IS DISTINCT FROM {own_id}", own_id=own_id))
    if query.tag:
        conditions.append(_finds(tag_query(query.tag)))
    if query.category_id is not None:
        conditions.append(sql_with("category_ids @> ARRAY[{id}]::smallint[]", id=query.category_id))
    if query.status is not None:
        conditions.append(sql_with("status = {status}", status=query.status.value))
    pending = query.approval
    if pending is Approval.APPROVED:
        conditions.append(sql.SQL("approval IS NULL"))
        pending = None
    for condition, value in (
        ("owner_id = {value}", query.owner_id),
        ("visibility = {value}", query.visibility and query.visibility.value),
        ("approval = {value}", pending and pending.value),
        ("created_at > {value}", query.created_after),
        ("created_at < {value}", query.created_before),
        ("updated_at > {value}", query.updated_after),
        ("id = ANY ({value})", list(query.ids) or None),
    ):
        if value is not None:
            conditions.append(sql_with(condition, value=value))
    return sql.SQL(" AND ").join(conditions)


def _is_found(query: LibraryQuery) -> sql.Composable:
    """Return the condition for videos that the reader may see in the list, or in the series."""
    if query.series_id is not None:
        in_series = sql_with(IN_SERIES, series_id=query.series_id)
        return sql_with(
            "{visible} AND {member}", visible=visible_to(query.seen_by), member=in_series
        )
    listed = listed_for(query.seen_by)
    return with_public_pages(listed) if query.includes_public_pages else listed


def _matches(match: Match) -> sql.Composable:
    """Return the condition of a match."""
    is_written = _finds(match.search)
    if not match.is_said:
        return is_written
    operator = "AND NOT" if match.only_said else "OR"
    condition = f"(id = ANY ({{ids}}) {operator} {{is_written}})"
    return sql_with(condition, ids=list(match.is_said), is_written=is_written)


def _finds(search: str) -> sql.Composable:
    """Return the condition for documents that match a tsquery; all match an empty one."""
    return sql_with("search @@ {search}::tsquery", search=search) if search else sql.SQL("true")


def _tier_of_row(tiers: tuple[Tier, ...]) -> sql.Composable:
    """Return the expression for the first tier of a row; every row is in the last one."""
    number: sql.Composable = sql.Literal(tiers[-1].number)
    for tier in reversed(tiers[:-1]):
        case = "CASE WHEN {matches} THEN {this} ELSE {other} END"
        number = sql_with(case, matches=_matches(tier.whole), this=tier.number, other=number)
    return number


def _beyond(start: Cursor, order: Order) -> sql.Composable:
    """Return the condition for rows after a place, in its tier or in a later one."""
    sign = sql.SQL("<" if order.backwards else ">")
    within = _within(start, order, key="value")
    condition = "(tier {sign} {number} OR tier = {number} AND {within})"
    return sql_with(condition, sign=sign, number=start.tier, within=within)


def _within(start: Cursor, order: Order, *, key: str) -> sql.Composable:
    """Return the condition for rows after a place within its tier."""
    sign = sql.SQL("<" if order.descending else ">")
    place = {"value": start.value, "id": start.video_id}
    return sql_with("({key}, id) {sign} ({value}, {id})", key=sql.SQL(key), sign=sign, **place)


def _way(is_descending: bool) -> sql.Composable:
    return sql.SQL("DESC" if is_descending else "ASC")
