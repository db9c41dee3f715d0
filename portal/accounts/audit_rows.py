"""The SQL of the audit log: writing it, what failed tries leave, names of videos, and pruning."""

import json
from collections.abc import Collection

from portal.database.connection import Row, execute, fetch_rows
from portal.database.rows import IS_PRESENT

# At the clock's time: the transaction may have waited for others since its own.
INSERT = """
INSERT INTO audit_events (action, actor_kind, actor_id, actor_email, token_id, token_name, address,
                          object_id, object_name, detail)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
COLUMNS = (
    *("action", "actor_kind", "actor_id", "actor_email", "token_id", "token_name", "address"),
    *("object_id", "object_name", "detail"),
)
# Whether the line that is so many before the next one is of the last hour.
IS_CROWDED = """
SELECT at > now() - interval '1 hour' AS is_crowded
FROM audit_events WHERE action = %s ORDER BY id DESC OFFSET %s LIMIT 1
"""
COUNT_UNLISTED = """
UPDATE audit_events
SET detail = jsonb_set(detail, '{unlisted}',
                       to_jsonb((coalesce((detail->>'unlisted')::bigint, 0) + 1)::text))
WHERE id = (SELECT max(id) FROM audit_events WHERE action = %s)
"""
# A video that is gone is called as it was when it was deleted.
TITLES = f"""
SELECT id::text, title FROM videos WHERE id = ANY(%s::uuid[]) AND {IS_PRESENT}
"""  # noqa: S608 - a constant
LAST_TITLES = """
SELECT object_id AS id, detail->>'title' AS title FROM audit_events
WHERE object_id = ANY(%s) AND action = 'video.deleted' AND detail->>'title' IS NOT NULL
"""
PRUNE = """
DELETE FROM audit_events WHERE id IN (
  SELECT id FROM audit_events WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT %s
)
"""
PRUNE_BATCH = 10_000


async def insert(**columns: object) -> None:
    """Write a line with these columns."""
    columns["detail"] = json.dumps(columns["detail"])
    await execute(INSERT, *(columns[name] for name in COLUMNS))


async def is_crowded(action: str, *, limit: int) -> bool:
    """Whether there are so many lines of an action in the last hour."""
    found = await fetch_rows(IS_CROWDED, action, limit - 1)
    return any(row["is_crowded"] for row in found)


async def count_unlisted(action: str) -> None:
    """Count one more on the last line of an action."""
    await execute(COUNT_UNLISTED, action)


async def titles(video_ids: Collection[str]) -> list[Row]:
    """The titles of those of these videos that there are."""
    return await fetch_rows(TITLES, list(video_ids))


async def last_titles(video_ids: Collection[str]) -> list[Row]:
    """What those of these videos were called that are gone, as far as the log has it."""
    return await fetch_rows(LAST_TITLES, list(video_ids))


async def prune(*, keep_days: int) -> int:
    """Delete lines that are older than this, in batches; returns how many."""
    pruned = 0
    while batch := await execute(PRUNE, keep_days, PRUNE_BATCH):
        pruned += batch
    return pruned
