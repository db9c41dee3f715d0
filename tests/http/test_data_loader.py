"""Readings that are done together are never older than the question."""

import asyncio
from uuid import UUID

import psycopg
from api_client import Client, published, rows
from running_portal import until

from portal.config import Config
from portal.http.composition import DataLoader
from portal.videos.reading import fetch_records


async def test_a_read_sees_what_was_committed_before_it_was_asked_for(
    client: Client, config: Config
) -> None:
    """This includes reads that are requested while a query is running."""
    loader = DataLoader(fetch_records)
    video_id = UUID((await published(client))["id"])
    async with await psycopg.AsyncConnection.connect(config.database_url) as writer:
        await writer.execute("LOCK TABLE publications IN ACCESS EXCLUSIVE MODE")
        early = asyncio.create_task(loader.load(video_id))
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        await until(lambda: rows(config.database_url, waiting), timeout_s=10)
        await writer.execute("UPDATE publications SET title = 'Renamed' WHERE id = %s", [video_id])
        await writer.commit()
        late = await loader.load(video_id)

    assert late is not None
    assert late["title"] == "Renamed"
    assert await early is not None
