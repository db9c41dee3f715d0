"""The SQL that finds what to watch after a video."""

from collections.abc import Sequence
from uuid import UUID

from psycopg import sql
from tortoise.connection import get_connection

from portal.accounts.permissions import Principal
from portal.database.rows import IS_PRESENT
from portal.database.search import tag_query
from portal.videos.library_rows import listed_for

# So many videos are looked at of each kind, however many there are.
LOOKED_AT = 500
# The newest are found by their index, and what is rare among them by its own. The materialized
# parts stop when enough is there (see `library_rows`).
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


async def fetch_related(
    own: UUID, tags: Sequence[str], categories: Sequence[int], *, seen_by: Principal, limit: int
) -> list[UUID]:
    """Ready videos that have most of these tags, then most of these categories, then the newest."""
    queries = [sql.Literal(tag_query(tag)) for tag in tags]
    counted = sql.SQL(" + ").join(
        [sql.SQL("0"), *(sql.SQL("(search @@ {}::tsquery)::int").format(it) for it in queries)]
    )
    text = sql.SQL(RELATED).format(
        looked_at=sql.Literal(LOOKED_AT),
        any_tag=sql.Literal(" | ".join(map(tag_query, tags))),
        categories=sql.SQL("{}::smallint[]").format(sql.Literal(list(categories))),
        tags=counted,
        own=sql.Literal(own),
        present=sql.SQL(IS_PRESENT),
        listed=listed_for(seen_by),
        limit=sql.Literal(limit),
    )
    rows = await get_connection("default").execute_query_dict(text.as_string(None))
    return [row["id"] for row in rows]
