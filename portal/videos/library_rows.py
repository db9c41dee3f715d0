"""The library's SQL: counting, and the two ways to find a page of videos.

Composed here, because building such queries with the ORM costs several times what running them
does. The parameters are written into the texts: a plan made for no search in particular is a bad
one for most, and the server would settle for it after a few repetitions.
"""

from psycopg import sql
from tortoise.connection import get_connection

from portal.accounts.permissions import Principal
from portal.database.connection import Row
from portal.database.lease import JOIN_ATTEMPT
from portal.database.rows import IS_PRESENT
from portal.videos.library_queries import Cursor, LibraryQuery, Order, Tier

# A materialized part is planned as if all of it were wanted, and yet stops when enough is there;
# without it the planner reads the table from its start, where the matches need not be.
COUNT = """
WITH found AS MATERIALIZED (SELECT 1 FROM videos WHERE {where})
SELECT count(*) AS total FROM (SELECT 1 FROM found LIMIT {limit}) AS counted
"""
WALK = """
SELECT id, value FROM (
  SELECT id, {key} AS value, search, category_ids, status, visibility, signed_in_only, owner_id,
         deleted_at
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


async def count(query: LibraryQuery, search: str, *, cap: int) -> int:
    """How many videos match a tsquery and the filters, up to one more than `cap`."""
    rows = await _run(COUNT, where=_where(query, search), limit=cap + 1)
    return int(rows[0]["total"])


async def walk(
    query: LibraryQuery,
    tier: Tier,
    order: Order,
    start: Cursor | None,
    *,
    steps: int,
    limit: int,
) -> list[Cursor]:
    """The first matches of a tier among the `steps` videos after `start` along the order."""
    rows = await _run(
        WALK,
        order,
        where=_where(query, tier.own),
        beyond=_within(start, order, key=order.key) if start else sql.SQL("true"),
        steps=sql.Literal(steps),
        limit=limit,
    )
    return [Cursor(tier.number, row["value"], row["id"]) for row in rows]


async def fetch(
    query: LibraryQuery, order: Order, start: Cursor | None, *, tier: Tier | None, limit: int
) -> list[Cursor]:
    """The first matches after `start`, of one tier or of all, by sorting all there are."""
    rows = await _run(
        FETCH,
        order,
        where=_where(query, tier.own if tier else query.tiers[-1].whole),
        beyond=_beyond(start, order) if start else sql.SQL("true"),
        tier=sql.Literal(tier.number) if tier else _tier_of_row(query.tiers),
        limit=limit,
    )
    return [Cursor(row["tier"], row["value"], row["id"]) for row in rows]


def _where(query: LibraryQuery, search: str) -> sql.Composable:
    """The condition for what matches a tsquery and the filters."""
    conditions = [sql.SQL(IS_PRESENT), _matches(search)]
    if query.category_id is not None:
        category = sql.Literal(query.category_id)
        conditions.append(sql.SQL("category_ids @> ARRAY[{}]::smallint[]").format(category))
    if query.status is not None:
        conditions.append(sql.SQL("status = {}").format(sql.Literal(query.status.value)))
    if query.owner_id is not None:
        conditions.append(sql.SQL("owner_id = {}").format(sql.Literal(query.owner_id)))
    conditions.append(listed_for(query.seen_by))
    return sql.SQL(" AND ").join(conditions)


def listed_for(principal: Principal) -> sql.Composable:
    """The condition for what the library shows to someone."""
    if principal.sees_all:
        return sql.SQL("true")
    conditions: list[sql.Composable] = [sql.SQL("visibility = 'public'")]
    if principal.role is not None:
        conditions.append(sql.SQL("visibility = 'private' AND signed_in_only"))
    if principal.account_id is not None:
        conditions.append(sql.SQL("owner_id = {}").format(sql.Literal(principal.account_id)))
    return sql.SQL("({})").format(sql.SQL(" OR ").join(conditions))


def _matches(search: str) -> sql.Composable:
    """The condition for documents that match a tsquery; any document matches an empty one."""
    if not search:
        return sql.SQL("true")
    return sql.SQL("search @@ {}::tsquery").format(sql.Literal(search))


def _tier_of_row(tiers: tuple[Tier, ...]) -> sql.Composable:
    """The first tier that a row is in; that it is in the last is known."""
    number: sql.Composable = sql.Literal(tiers[-1].number)
    for tier in reversed(tiers[:-1]):
        number = sql.SQL("CASE WHEN {matches} THEN {this} ELSE {other} END").format(
            matches=_matches(tier.whole), this=sql.Literal(tier.number), other=number
        )
    return number


def _beyond(start: Cursor, order: Order) -> sql.Composable:
    """The condition for what comes after this place, in its tier or in a later one."""
    return sql.SQL("(tier {sign} {number} OR tier = {number} AND {within})").format(
        sign=sql.SQL("<" if order.backwards else ">"),
        number=sql.Literal(start.tier),
        within=_within(start, order, key="value"),
    )


def _within(start: Cursor, order: Order, *, key: str) -> sql.Composable:
    """The condition for what comes after this place, within its tier."""
    return sql.SQL("({key}, id) {sign} ({value}, {id})").format(
        key=sql.SQL(key),
        sign=sql.SQL("<" if order.descending else ">"),
        value=sql.Literal(start.value),
        id=sql.Literal(start.video_id),
    )


async def _run(
    query: str, order: Order | None = None, *, limit: int, **parts: sql.Composable
) -> list[Row]:
    if order is not None:
        parts["key"] = sql.SQL(order.key)
        parts["way"] = sql.SQL("DESC" if order.descending else "ASC")
        parts["tier_way"] = sql.SQL("DESC" if order.backwards else "ASC")
    text = sql.SQL(query).format(limit=sql.Literal(limit), **parts).as_string(None)
    # Without values: what is searched may hold a percent sign.
    return await get_connection("default").execute_query_dict(text)
