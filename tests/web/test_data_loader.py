"""Readings are done together when many ask at once, and every asker gets its own right answer."""

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import psycopg
import pytest
from api_client import Client, published, rows
from running_portal import until

from portal.config import Config
from portal.database.connection import Row
from portal.videos.reading import fetch_records
from portal.web.data_loader import DataLoader


@pytest.fixture
async def video_ids(client: Client) -> list[UUID]:
    """Three videos in the database of a started app."""
    return [UUID((await published(client))["id"]) for _ in range(3)]


async def test_all_who_ask_at_once_get_the_right_record_by_one_query(
    video_ids: list[UUID],
) -> None:
    queries = 0

    async def counted(wanted: Sequence[UUID]) -> dict[UUID, Row]:
        nonlocal queries
        queries += 1
        return await fetch_records(wanted)

    loader = DataLoader(counted)
    asked = [*video_ids * 30, uuid4()]
    *found, unknown = await asyncio.gather(*(loader.load(video_id) for video_id in asked))
    assert [record and record["id"] for record in found] == [str(key) for key in video_ids * 30]
    assert unknown is None
    assert queries == 1


async def test_a_read_sees_what_was_committed_before_it_was_asked_for(
    video_ids: list[UUID], config: Config
) -> None:
    loader, video_id = DataLoader(fetch_records), video_ids[0]
    async with await psycopg.AsyncConnection.connect(config.database_url) as writer:
        await writer.execute("LOCK TABLE videos IN ACCESS EXCLUSIVE MODE")
        early = asyncio.create_task(loader.load(video_id))
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        await until(lambda: rows(config.database_url, waiting), timeout_s=10)
        await writer.execute("UPDATE videos SET title = 'Renamed' WHERE id = %s", [video_id])
        await writer.commit()
        late = await loader.load(video_id)

    assert late is not None
    assert late["title"] == "Renamed"
    assert await early is not None
