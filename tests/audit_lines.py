"""Lines of the audit log, as its tests compare them."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from api_client import run_sql

from portal.accounts.audit import document
from portal.database.account_models import AuditEvent

INSERT_MANY = """
INSERT INTO audit_events (action, actor_kind, actor_email, token_name, address, object_id,
                          object_name, detail)
SELECT 'video.edited', 'person', 'person' || number % 7 || '@example.org', '', '192.0.2.1',
       md5(number::text)::uuid::text, '', '{{"fields": "title"}}'
FROM generate_series(1, {count}) AS number
"""


async def lines() -> list[dict[str, Any]]:
    """All lines, the oldest first, as programs get them."""
    return [document(it) for it in await AuditEvent.all().order_by("id")]


def video_of(number: int) -> str:
    """The object of that line of `add_lines`."""
    return str(UUID(hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()))


@asynccontextmanager
async def noted() -> AsyncIterator[list[dict[str, Any]]]:
    """The lines that are written inside, once it is left."""
    before, found = len(await lines()), list[dict[str, Any]]()
    yield found
    found += (await lines())[before:]


async def add_lines(database_url: str, count: int) -> None:
    """Write so many lines at once, by seven people in turns."""
    await run_sql(database_url, INSERT_MANY.format(count=count))
