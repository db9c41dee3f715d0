"""Readings are done together when many ask at once, and every asker gets its own right answer."""

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import psycopg
import pytest
from api_client import Client, published, rows, run_sql
from running_portal import until
from tortoise.exceptions import OperationalError

from portal.config import Config
from portal.database.connection import Row
from portal.videos.rows import fetch_records
from portal.web.data_loader import DataLoader


@pytest.fixture
async def video_ids(client: Client) -> list[UUID]:
    """Three videos in the database of a started app."""
    return [UUID((await published(client))["id"]) for _ in range(3)]


async def test_everyone_who_asks_at_once_gets_the_right_record(video_ids: list[UUID]) -> None:
    loader = DataLoader(fetch_records)
    asked = [*video_ids * 30, uuid4()]

    answers = await asyncio.gather(*(loader.load(video_id) for video_id in asked))

    *found, unknown = answers
    assert [record and record["id"] for record in found] == [str(key) for key in video_ids * 30]
    assert unknown is None


async def test_a_hundred_who_ask_at_once_cost_one_query(video_ids: list[UUID]) -> None:
    queries = 0

    async def counted(wanted: Sequence[UUID]) -> dict[UUID, Row]:
        nonlocal queries
        queries += 1
        return await fetch_records(wanted)

    loader = DataLoader(counted)

    await asyncio.gather(*(loader.load(video_ids[n % 3]) for n in range(100)))

    assert queries == 1


async def test_an_asker_that_goes_away_takes_nothing_from_the_others(video_ids: list[UUID]) -> None:
    loader = DataLoader(fetch_records)
    leaving, staying = (asyncio.create_task(loader.load(video_ids[0])) for _ in range(2))
    await asyncio.sleep(0)

    leaving.cancel()

    record = await staying
    assert record is not None
    assert record["id"] == str(video_ids[0])
    with pytest.raises(asyncio.CancelledError):
        await leaving


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


async def test_a_failed_query_is_told_to_all_who_asked_and_forgotten(
    video_ids: list[UUID], config: Config
) -> None:
    loader = DataLoader(fetch_records)
    await run_sql(config.database_url, "ALTER TABLE videos RENAME TO hidden")

    answers = await asyncio.gather(
        *(loader.load(video_id) for video_id in video_ids), return_exceptions=True
    )

    assert [type(answer) for answer in answers] == [OperationalError] * 3
    await run_sql(config.database_url, "ALTER TABLE hidden RENAME TO videos")
    assert await loader.load(video_ids[0]) is not None
