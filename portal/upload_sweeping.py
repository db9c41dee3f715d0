"""Removes what is left of uploads in parts that nobody goes on with; runs in every worker.

Storage keeps the parts of an unfinished upload, and bills them, until they are used or removed.
Not removed here: files that arrived whole and were never published.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import psycopg
from botocore.exceptions import ClientError
from tortoise.connection import get_connection
from tortoise.exceptions import BaseORMException

from portal import uploads
from portal.errors import KeyAlreadyUsed, Unavailable, UploadNotIssued

if TYPE_CHECKING:
    from portal.resources import Resources
    from portal.storage import Storage

logger = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 3600
# As long as a signed address can live at most.
ABANDONED_AFTER_S = 7 * 24 * 3600
BATCH = 100

# A discarded one is still here only if its removal broke off.
ABANDONED = """
SELECT substr(key, 8, 32) AS id FROM uploads
WHERE multipart_id IS NOT NULL
  AND (is_discarded OR created_at < now() - make_interval(secs => %s))
ORDER BY created_at LIMIT %s
"""


@asynccontextmanager
async def sweeping(resources: Resources) -> AsyncIterator[None]:
    """Sweep now and then, as long as the context lasts."""
    async with asyncio.TaskGroup() as group:
        sweep = group.create_task(_sweep_forever(resources.storage))
        try:
            yield
        finally:
            sweep.cancel()


async def sweep_uploads(storage: Storage) -> int:
    """Discard abandoned uploads, the oldest first; returns how many of them."""
    rows = await get_connection("default").execute_query_dict(ABANDONED, [ABANDONED_AFTER_S, BATCH])
    for row in rows:
        try:
            await uploads.discard(row["id"], storage=storage)
        except (KeyAlreadyUsed, UploadNotIssued):
            # Finished and published, or deleted, a moment ago.
            logger.info("Upload is in use", extra={"action": "sweep_uploads"})
    return len(rows)


async def _sweep_forever(storage: Storage) -> None:
    while True:
        try:
            while await sweep_uploads(storage) == BATCH:
                logger.info("Many abandoned uploads", extra={"action": "sweep_uploads"})
        except (psycopg.Error, BaseORMException, ClientError, Unavailable):
            logger.warning("Sweep failed", exc_info=True, extra={"action": "sweep_failed"})
        await asyncio.sleep(SWEEP_INTERVAL_S)
