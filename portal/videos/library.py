"""Reads the library: searched, filtered, sorted, a page at a time.

In SQL, because building such queries with the ORM costs several times what running them does.
Pages are cut by keyset: a page begins after the last video of the one before, however many were
added or deleted meanwhile. Nothing is counted beyond `COUNT_CAP`.

Few matches are fetched by their index and sorted. Of many, the first are soon found by walking
along the order's index; when they all lie far along it, they are sorted, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import sql
from tortoise.connection import get_connection

from portal.database.models import Video
from portal.videos.library_queries import ORDERS, Cursor, LibraryQuery, Order, Tier, matches
from portal.videos.publishing import fetch_videos

COUNT_CAP = 1_000
# So many videos are looked at along an order before the index is asked for all matches.
WALK_STEPS = 4_000

# The parameters are written into the texts: a plan made for no search in particular is a bad one
# for most, and the server would settle for it after a few repetitions.

# A materialized part is planned as if all of it were wanted, and yet stops when enough is there;
# without it the planner reads the table from its start, where the matches need not be.
COUNT = """
WITH found AS MATERIALIZED (SELECT 1 FROM videos WHERE {where})
SELECT count(*) AS total FROM (SELECT 1 FROM found LIMIT {limit}) AS counted
"""
WALK = """
SELECT id, value FROM (
  SELECT id, {key} AS value, search, category_ids, status
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
# An attempt whose lease ran out is not under way; see `progress.py`.
STAGES = """
SELECT video.id, attempt.stage, attempt.percent
FROM videos video
LEFT JOIN LATERAL (
  SELECT stage, percent FROM attempts
  WHERE video_id = video.id AND outcome IS NULL AND lease_expires_at > now()
  ORDER BY number DESC LIMIT 1
) attempt ON true
WHERE video.id = ANY(%s) AND video.status = 'processing'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPage:
    """Some videos in their order; how many match in all, up to one more than `COUNT_CAP`.

    `previous` and `next` are None where there are no more videos.
    """

    videos: list[Video] = field(default_factory=list)
    is_first: bool = True
    total: int = 0
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
    total = await _count(query.where(query.tiers[-1].whole))
    if total == 0:
        return LibraryPage()
    order = ORDERS[query.sort]
    if before is not None:
        found = await _find(query, order.reverse(), before, total=total, limit=limit + 1)
        if len(found) > limit:
            return await _page(found[limit - 1 :: -1], total, is_first=False, has_next=True)
        # Fewer than a page are left before it: the first page.
        after = None
    found = await _find(query, order, after, total=total, limit=limit + 1)
    more = len(found) > limit
    return await _page(found[:limit], total, is_first=after is None, has_next=more)


async def read_work(video_ids: list[UUID]) -> dict[UUID, Work]:
    """How far the processing of these videos is; without those that are final."""
    if not video_ids:
        return {}
    rows = await get_connection("default").execute_query_dict(STAGES, [video_ids])
    return {row["id"]: Work(row["stage"], row["percent"] or 0.0) for row in rows}


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
    query: LibraryQuery, order: Order, start: Cursor | None, *, total: int, limit: int
) -> list[Cursor]:
    tiers = query.tiers
    if total <= COUNT_CAP:
        where = query.where(tiers[-1].whole)
        return await _fetch(where, order, start, tier=_tier_of_row(tiers), limit=limit)
    found: list[Cursor] = []
    for tier in reversed(tiers) if order.backwards else tiers:
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
    where = query.where(tier.own)
    if len(query.tiers) == 1 or await _count(where) > COUNT_CAP:
        found = await _walk(where, order, start, tier=tier.number, limit=limit)
        if len(found) == limit:
            return found
    return await _fetch(where, order, start, tier=sql.Literal(tier.number), limit=limit)


async def _walk(
    where: sql.Composable, order: Order, start: Cursor | None, *, tier: int, limit: int
) -> list[Cursor]:
    beyond = start.beyond(order, key=order.key) if start else sql.SQL("true")
    rows = await _run(
        WALK, order, where=where, beyond=beyond, steps=sql.Literal(WALK_STEPS), limit=limit
    )
    return [Cursor(tier, row["value"], row["id"]) for row in rows]


async def _fetch(
    where: sql.Composable, order: Order, start: Cursor | None, *, tier: sql.Composable, limit: int
) -> list[Cursor]:
    parts = {"where": where, "beyond": _beyond(start, order), "tier": tier}
    rows = await _run(FETCH, order, limit=limit, **parts)
    return [Cursor(row["tier"], row["value"], row["id"]) for row in rows]


def _tier_of_row(tiers: tuple[Tier, ...]) -> sql.Composable:
    """The first tier that a row is in; that it is in the last is known."""
    number: sql.Composable = sql.Literal(tiers[-1].number)
    for tier in reversed(tiers[:-1]):
        number = sql.SQL("CASE WHEN {matches} THEN {this} ELSE {other} END").format(
            matches=matches(tier.whole), this=sql.Literal(tier.number), other=number
        )
    return number


def _beyond(start: Cursor | None, order: Order) -> sql.Composable:
    if start is None:
        return sql.SQL("true")
    return sql.SQL("(tier {sign} {number} OR tier = {number} AND {within})").format(
        sign=sql.SQL("<" if order.backwards else ">"),
        number=sql.Literal(start.tier),
        within=start.beyond(order, key="value"),
    )


async def _count(where: sql.Composable) -> int:
    rows = await _run(COUNT, where=where, limit=COUNT_CAP + 1)
    return int(rows[0]["total"])


async def _run(
    query: str, order: Order | None = None, *, limit: int, **parts: sql.Composable
) -> list[dict[str, Any]]:
    if order is not None:
        parts["key"] = sql.SQL(order.key)
        parts["way"] = sql.SQL("DESC" if order.descending else "ASC")
        parts["tier_way"] = sql.SQL("DESC" if order.backwards else "ASC")
    text = sql.SQL(query).format(limit=sql.Literal(limit), **parts).as_string(None)
    return await get_connection("default").execute_query_dict(text)
