"""Reads videos' records for the JSON API.

In SQL, because building such a query with the ORM costs several times what running it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tortoise.connection import get_connection

Record = Mapping[str, Any]

RECORDS = """
SELECT id AS key, id::text, title, description, category_ids, tags, file_name, storage_key,
       transcode_job_id::text, status, published_attempt, size_bytes, created_at, updated_at
FROM videos WHERE id = ANY(%s)
"""


async def fetch_records(video_ids: Sequence[UUID]) -> dict[UUID, Record]:
    """The columns of the records of these videos, as far as there are such videos."""
    rows = await get_connection("default").execute_query_dict(RECORDS, [list(video_ids)])
    return {row.pop("key"): row for row in rows}
