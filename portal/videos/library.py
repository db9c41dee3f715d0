"""Reads the library: searched, filtered, sorted, a page at a time; and what to watch after a video.

Pages are cut by keyset: a page begins after the last video of the one before, however many were
added or deleted meanwhile. Nothing is counted beyond `COUNT_CAP`.

Few matches are fetched by their index and sorted. Of many, the first are soon found by walking
along the order's index; when they all lie far along it, they are sorted, too.

The SQL is composed here, because building such queries with the ORM costs several times what
running them does. The parameters are written into the texts: a plan made for no search in
particular is a bad one for most, and the server would settle for it after a few repetitions.
"""

from dataclasses import dataclass, field, replace
from uuid import UUID

from psycopg import sql

from portal.accounts.permissions import Principal
from portal.database.connection import (
    IS_PRESENT,
    JOIN_ATTEMPT,
    fetch_rows,
    run_query,
    sql_with,
)
from portal.database.models import Video
from portal.database.search import tag_query
from portal.text import split_tags
from portal.videos.library_queries import ORDERS, Cursor, LibraryQuery, Match, Order, Tier
from portal.videos.reading import fetch_videos
from portal.videos.words import videos_that_say

COUNT_CAP = 1_000
# So many videos are looked at along an order before the index is asked for all matches.
WALK_STEPS = 4_000
# A materialized part is planned as if all of it were wanted, and yet stops when enough is there;
# without it the planner reads the table from its start, where the matches need not be.
COUNT = """
WITH found AS MATERIALIZED (SELECT 1 FROM videos WHERE {where})
SELECT count(*) AS total FROM (SELECT 1 FROM found LIMIT {limit}) AS counted
"""
WALK = """
SELECT id, value FROM (
  SELECT id, {key} AS value, search, category_ids, status, visibility, signed_in_only, owner_id,
         deleted_at, created_at, updated_at
  FROM videos WHERE {beyond} ORDER BY {key} {way}, id {way} LIMIT {steps}
) AS near
WHERE {where} ORDER BY value {way}, id {way} LIMIT {limit}
"""
# The OFFSET keeps the planner from walking along the order's index instead.
FETCH = """
SELECT id, value, tier FROM (
  SELECT id, {key} AS value, {tier} AS tier FROM videos WHERE {where} OFFSET 0
) AS found
WHERE {beyond} ORDER BY tier {tier_way}, value {way}, id {way} LIMIT {limit}
"""
# Of those of some videos that are processing.
STAGES = f"""
SELECT video.id, attempt.stage, attempt.percent
FROM videos video {JOIN_ATTEMPT}
WHERE video.id = ANY(%s) AND video.status = 'processing'
"""  # noqa: S608 - put together from constants
# So many videos are looked at of each kind, however many there are.
LOOKED_AT = 500
# The newest are found by their index, and what is rare among them by its own. The materialized
# parts stop when enough is there.
RELATED = """
WITH newest AS MATERIALIZED (
  SELECT id FROM videos ORDER BY created_at DESC, id DESC LIMIT {looked_at}
), tagged AS MATERIALIZED (
  SELECT id FROM videos WHERE search @@ {any_tag}::tsquery LIMIT {looked_at}
), alike AS MATERIALIZED (
  SELECT id FROM videos WHERE category_ids && {categories} LIMIT {looked_at}
), looked_at AS (
  SELECT id FROM newest UNION SELECT id FROM tagged UNION SELECT id FROM alike
), counted AS (
  SELECT id, created_at, {tags} AS tags,
    (SELECT count(*) FROM unnest(category_ids) AS one WHERE one = ANY ({categories})) AS categories
  FROM looked_at JOIN videos USING (id)
  WHERE id <> {own} AND status = 'ready' AND {present} AND {listed}
)
SELECT id FROM counted WHERE tags + categories > 0
ORDER BY tags DESC, categories DESC, created_at DESC, id DESC LIMIT {limit}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPage:
    """Some videos in their order; how many match in all, up to one more than `COUNT_CAP`.

    `previous` and `next` are None where there are no more videos. `text` is what was searched for
    instead of what was typed.
    """

    videos: list[Video] = field(default_factory=list)
    is_first: bool = True
    total: int = 0
    text: str = ""
    previous: Cursor | None = None
    next: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """How far the processing of a video is; `stage` is None while it waits for its turn."""

    stage: str | None
    percent: float


async def list_videos(
    query: LibraryQuery,
    *,
    limit: int,
    after: Cursor | None = None,
    before: Cursor | None = None,
) -> LibraryPage:
    """A page of the library: its first, the one after a place, or the one before a place."""
    if query.finds_nothing:
        return LibraryPage()
    total = written = await _count(query, query.tiers[-1].whole)
    if query.words and written <= COUNT_CAP:
        # After more than those nobody would come to it.
        say = await videos_that_say(query.words, among=_filters(query))
        query = replace(query, is_said=tuple(say))
        if query.is_said:
            total = await _count(query, query.tiers[-1].whole)
    if total == 0:
        return LibraryPage()
    order = ORDERS[query.sort]
    if before is not None:
        found = await _find(query, order.reverse(), before, written=written, limit=limit + 1)
        if len(found) > limit:
            return await _page(found[limit - 1 :: -1], total, is_first=False, has_next=True)
        # Fewer than a page are left before it: the first page.
        after = None
    found = await _find(query, order, after, written=written, limit=limit + 1)
    more = len(found) > limit
    return await _page(found[:limit], total, is_first=after is None, has_next=more)


async def read_work(video_ids: list[UUID]) -> dict[UUID, Work]:
    """How far the processing of these videos is; without those that are final."""
    if not video_ids:
        return {}
    found = await fetch_rows(STAGES, video_ids)
    return {row["id"]: Work(row["stage"], row["percent"] or 0.0) for row in found}


async def related_videos(video: Video, *, seen_by: Principal, limit: int) -> list[Video]:
    """Ready videos that have most in common with this one, the newest first among equals.

    Most of its tags, then most of its categories.
    """
    tags, categories = split_tags(video.tags), list(video.category_ids)
    tagged = [sql_with("(search @@ {tag}::tsquery)::int", tag=tag_query(tag)) for tag in tags]
    text = sql_with(
        RELATED,
        looked_at=LOOKED_AT,
        any_tag=" | ".join(map(tag_query, tags)),
        categories=sql_with("{ids}::smallint[]", ids=categories),
        tags=sql.SQL(" + ").join([sql.SQL("0"), *tagged]),
        own=video.id,
        present=sql.SQL(IS_PRESENT),
        listed=listed_for(seen_by),
        limit=limit,
    )
    rows = await run_query(text)
    by_id = await fetch_videos([row["id"] for row in rows])
    # One that was deleted in this moment is left out.
    return [by_id[row["id"]] for row in rows if row["id"] in by_id]


async def _page(found: list[Cursor], total: int, *, is_first: bool, has_next: bool) -> LibraryPage:
    by_id = await fetch_videos([it.video_id for it in found])
    return LibraryPage(
        # One that was deleted in this moment is left out.
        videos=[by_id[it.video_id] for it in found if it.video_id in by_id],
        is_first=is_first,
        total=total,
        previous=None if is_first or not found else found[0],
        next=found[-1] if found and has_next else None,
    )


async def _find(
    query: LibraryQuery, order: Order, start: Cursor | None, *, written: int, limit: int
) -> list[Cursor]:
    if written <= COUNT_CAP:
        return await _fetch(query, order, start, tier=None, limit=limit)
    found: list[Cursor] = []
    for tier in reversed(query.tiers) if order.backwards else query.tiers:
        if start and (tier.number > start.tier if order.backwards else tier.number < start.tier):
            continue
        begin = start if start and start.tier == tier.number else None
        found += await _find_in_tier(query, tier, order, begin, limit=limit - len(found))
        if len(found) == limit:
            break
    return found


async def _find_in_tier(
    query: LibraryQuery, tier: Tier, order: Order, start: Cursor | None, *, limit: int
) -> list[Cursor]:
    if len(query.tiers) == 1 or await _count(query, tier.own) > COUNT_CAP:
        found = await _walk(query, tier, order, start, limit=limit)
        if len(found) == limit:
            return found
    return await _fetch(query, order, start, tier=tier, limit=limit)


async def _count(query: LibraryQuery, match: Match) -> int:
    """How many videos match, and the filters, up to one more than `COUNT_CAP`."""
    [counted] = await run_query(sql_with(COUNT, where=_where(query, match), limit=COUNT_CAP + 1))
    return int(counted["total"])


async def _walk(
    query: LibraryQuery, tier: Tier, order: Order, start: Cursor | None, *, limit: int
) -> list[Cursor]:
    """The first matches of a tier among the `WALK_STEPS` videos after `start` along the order."""
    text = sql_with(
        WALK,
        where=_where(query, tier.own),
        beyond=_within(start, order, key=order.key) if start else sql.SQL("true"),
        key=sql.SQL(order.key),
        way=_way(order.descending),
        steps=WALK_STEPS,
        limit=limit,
    )
    return [Cursor(tier.number, row["value"], row["id"]) for row in await run_query(text)]


async def _fetch(
    query: LibraryQuery, order: Order, start: Cursor | None, *, tier: Tier | None, limit: int
) -> list[Cursor]:
    """The first matches after `start`, of one tier or of all, by sorting all there are."""
    text = sql_with(
        FETCH,
        where=_where(query, tier.own if tier else query.tiers[-1].whole),
        beyond=_beyond(start, order) if start else sql.SQL("true"),
        tier=tier.number if tier else _tier_of_row(query.tiers),
        tier_way=_way(order.backwards),
        key=sql.SQL(order.key),
        way=_way(order.descending),
        limit=limit,
    )
    return [Cursor(row["tier"], row["value"], row["id"]) for row in await run_query(text)]


def _where(query: LibraryQuery, match: Match) -> sql.Composable:
    """The condition for what matches, and the filters."""
    return sql_with("{match} AND {filters}", match=_matches(match), filters=_filters(query))


def _filters(query: LibraryQuery) -> sql.Composable:
    """The condition for what is asked for, whatever it says."""
    conditions = [sql.SQL(IS_PRESENT), listed_for(query.seen_by)]
    if query.tag:
        conditions.append(_finds(tag_query(query.tag)))
    if query.category_id is not None:
        conditions.append(sql_with("category_ids @> ARRAY[{id}]::smallint[]", id=query.category_id))
    if query.status is not None:
        conditions.append(sql_with("status = {status}", status=query.status.value))
    for condition, value in (
        ("owner_id = {it}", query.owner_id),
        ("visibility = {it}", query.visibility and query.visibility.value),
        ("created_at > {it}", query.created_after),
        ("created_at < {it}", query.created_before),
        ("updated_at > {it}", query.updated_after),
        ("id = ANY ({it})", list(query.ids) or None),
    ):
        if value is not None:
            conditions.append(sql_with(condition, it=value))
    return sql.SQL(" AND ").join(conditions)


def listed_for(principal: Principal) -> sql.Composable:
    """The condition for what the library shows to someone: `Principal.may_list` in SQL."""
    if principal.sees_all:
        return sql.SQL("true")
    conditions: list[sql.Composable] = [sql.SQL("visibility = 'public'")]
    if principal.role is not None:
        conditions.append(sql.SQL("visibility = 'private' AND signed_in_only"))
    if principal.account_id is not None:
        conditions.append(sql_with("owner_id = {owner}", owner=principal.account_id))
    return sql_with("({any})", any=sql.SQL(" OR ").join(conditions))


def _matches(match: Match) -> sql.Composable:
    """Its condition in SQL."""
    found = _finds(match.search)
    if not match.is_said:
        return found
    how = "AND NOT" if match.only_said else "OR"
    condition = f"(id = ANY ({{ids}}) {how} {{found}})"
    return sql_with(condition, ids=list(match.is_said), found=found)


def _finds(search: str) -> sql.Composable:
    """The condition for documents that match a tsquery; any document matches an empty one."""
    return sql_with("search @@ {search}::tsquery", search=search) if search else sql.SQL("true")


def _tier_of_row(tiers: tuple[Tier, ...]) -> sql.Composable:
    """The first tier that a row is in; that it is in the last is known."""
    number: sql.Composable = sql.Literal(tiers[-1].number)
    for tier in reversed(tiers[:-1]):
        case = "CASE WHEN {matches} THEN {this} ELSE {other} END"
        number = sql_with(case, matches=_matches(tier.whole), this=tier.number, other=number)
    return number


def _beyond(start: Cursor, order: Order) -> sql.Composable:
    """The condition for what comes after this place, in its tier or in a later one."""
    sign = sql.SQL("<" if order.backwards else ">")
    within = _within(start, order, key="value")
    condition = "(tier {sign} {number} OR tier = {number} AND {within})"
    return sql_with(condition, sign=sign, number=start.tier, within=within)


def _within(start: Cursor, order: Order, *, key: str) -> sql.Composable:
    """The condition for what comes after this place, within its tier."""
    sign = sql.SQL("<" if order.descending else ">")
    place = {"value": start.value, "id": start.video_id}
    return sql_with("({key}, id) {sign} ({value}, {id})", key=sql.SQL(key), sign=sign, **place)


def _way(is_descending: bool) -> sql.Composable:
    return sql.SQL("DESC" if is_descending else "ASC")
