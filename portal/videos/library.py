"""Reads the library: searched, filtered, sorted, a page at a time.

Pages are cut by keyset: a page begins after the last video of the one before, however many were
added or deleted meanwhile. Nothing is counted beyond `COUNT_CAP`.

Few matches are fetched by their index and sorted. Of many, the first are soon found by walking
along the order's index; when they all lie far along it, they are sorted, too.
"""

from dataclasses import dataclass, field
from uuid import UUID

from portal.database.connection import fetch_rows
from portal.database.models import Video
from portal.videos import library_rows as rows
from portal.videos.library_queries import ORDERS, Cursor, LibraryQuery, Order, Tier
from portal.videos.publishing import fetch_videos

COUNT_CAP = 1_000
# So many videos are looked at along an order before the index is asked for all matches.
WALK_STEPS = 4_000


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
    total = await rows.count(query, query.tiers[-1].whole, cap=COUNT_CAP)
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
    found = await fetch_rows(rows.STAGES, video_ids)
    return {row["id"]: Work(row["stage"], row["percent"] or 0.0) for row in found}


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
    if total <= COUNT_CAP:
        return await rows.fetch(query, order, start, tier=None, limit=limit)
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
    if len(query.tiers) == 1 or await rows.count(query, tier.own, cap=COUNT_CAP) > COUNT_CAP:
        found = await rows.walk(query, tier, order, start, steps=WALK_STEPS, limit=limit)
        if len(found) == limit:
            return found
    return await rows.fetch(query, order, start, tier=tier, limit=limit)
