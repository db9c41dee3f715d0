"""Lines of the audit log, as its tests compare them."""

from typing import Any

from api_client import run_sql

from portal.accounts.audit import AuditQuery, document, read_all

INSERT_MANY = """
INSERT INTO events (action, actor_kind, actor_email, token_name, address, object_id,
                          object_name, detail)
SELECT 'video.edited', 'person', 'person' || number % 7 || '@example.org', '', '192.0.2.1',
       gen_random_uuid()::text, '', '{{"fields": "title"}}'
FROM generate_series(1, {count}) AS number
"""


async def lines() -> list[dict[str, Any]]:
    """Return all lines as programs receive them, the oldest first."""
    return [document(line) async for line in read_all(AuditQuery())]


async def add_lines(database_url: str, count: int) -> None:
    """Insert this number of lines, by seven people in turns."""
    await run_sql(database_url, INSERT_MANY.format(count=count))
