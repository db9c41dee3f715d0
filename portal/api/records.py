"""Reads videos' records for the JSON API, where many clients poll at once.

What is asked for while a query is under way is fetched together by the next one. A read never
sees less than what was committed before it was asked for, and a busy portal asks its database
once where a hundred pollers asked the portal. In SQL, because building such a query with the ORM
costs several times what running it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tortoise.connection import get_connection

from portal.pooling import refuse_if_away

Record = Mapping[str, Any]

RECORDS = """
SELECT id AS key, id::text, title, description, category_ids, tags, file_name, storage_key,
       transcode_job_id::text, status, published_attempt, size_bytes, created_at, updated_at
FROM videos WHERE id = ANY(%s)
"""


class RecordReader:
    """One for a process; made in `resources.py`."""

    def __init__(self) -> None:
        self._asked: dict[UUID, asyncio.Future[Record | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def read(self, video_id: UUID) -> Record | None:
        """The columns of a video's record, or None when there is no such video."""
        refuse_if_away()
        if video_id not in self._asked:
            self._asked[video_id] = asyncio.get_running_loop().create_future()
        answer = self._asked[video_id]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        # One asker that goes away must not take the answer from the others.
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await _fetch(asked)
            except Exception as exc:  # noqa: BLE001  # it is the askers' to handle
                _fail(asked, exc)
            else:
                for video_id, answer in asked.items():
                    answer.set_result(found.get(video_id))
        self._reading = None


async def _fetch(video_ids: Mapping[UUID, object]) -> dict[UUID, Record]:
    rows = await get_connection("default").execute_query_dict(RECORDS, [list(video_ids)])
    return {row.pop("key"): row for row in rows}


def _fail(asked: Mapping[UUID, asyncio.Future[Record | None]], exc: Exception) -> None:
    for answer in asked.values():
        answer.set_exception(exc)
        answer.exception()  # seen, even if all who asked have gone
