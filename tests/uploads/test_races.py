"""Uploads in parts when calls coincide, answers get lost, or database and storage are away."""

import asyncio
from dataclasses import replace

from api_client import Client, metadata, presign, problem, rows, run_sql
from quart import Quart
from running_portal import until
from stored_objects import unreachable
from upload_client import (
    complete,
    content,
    look,
    multipart_id,
    multipart_uploads,
    send_part,
    start,
    started,
    stored,
)

from portal.config import Config
from portal.storage.bucket import open_storage
from portal.web.composition import WebContext


async def test_simultaneous_starts_with_different_sizes_agree_on_one(
    client: Client, resources: WebContext
) -> None:
    key = (await presign(client))["key"]
    answers = await asyncio.gather(*(start(client, key, size) for size in range(1, 9)))
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]
    (winner,) = [await answer.get_json() for answer in answers if answer.status_code == 201]
    assert await look(client, {"key": key}) == winner
    assert await multipart_uploads(resources, key) == [await multipart_id(resources, key)]


async def test_completion_whose_answer_was_lost_may_be_repeated(
    client: Client, resources: WebContext
) -> None:
    """Storage has made the file, and the portal died before it knew."""
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    name = await multipart_id(resources, upload["key"])
    assert name
    parts = await resources.storage.multiparts.list_parts(upload["key"], name)
    await resources.storage.multiparts.complete(upload["key"], name, parts)
    assert (await look(client, upload))["state"] == "stored"
    assert (await start(client, upload["key"], 3)).status_code == 200
    assert (await complete(client, upload))["state"] == "stored"
    assert (await client.post("/api/videos", json=metadata(upload["key"]))).status_code == 201


async def test_discarding_waits_for_a_creation_under_way_and_then_refuses(
    client: Client, config: Config, resources: WebContext
) -> None:
    done = await stored(client, b"abc")
    # Holds the creation up after it has locked the upload, before it commits.
    await run_sql(
        config.database_url,
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;"
        "CREATE TRIGGER trap BEFORE INSERT ON videos FOR EACH ROW EXECUTE FUNCTION linger()",
    )
    creation = asyncio.create_task(client.post("/api/videos", json=metadata(done["key"])))
    await lock_is_held(config, done["key"])
    refused = await client.delete(f"/api/uploads/{done['uploadId']}")
    await problem(refused, 409, "key_already_used")
    assert (await creation).status_code == 201
    assert await content(resources, done["key"]) == b"abc"


async def lock_is_held(config: Config, key: str) -> None:
    """Wait until a transaction has locked the upload."""
    query = "SELECT key FROM uploads WHERE key = %s FOR UPDATE SKIP LOCKED"

    async def is_locked() -> bool:
        return not await rows(config.database_url, query, key)

    await until(is_locked, timeout_s=12, interval_s=0.02)


async def test_discarding_goes_on_where_an_outage_of_storage_broke_it_off(
    app: Quart, client: Client, resources: WebContext
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    path = f"/api/uploads/{upload['uploadId']}"
    async with open_storage(unreachable(resources.config)) as nowhere:
        app.extensions["portal"] = replace(resources, storage=nowhere)
        await problem(await client.delete(path), 503, "storage_unavailable")
    app.extensions["portal"] = resources
    # Given up already, though its parts are still there.
    await problem(await client.post(f"{path}/parts/1"), 404, "upload_not_issued")
    await problem(await client.post(f"{path}/complete"), 404, "upload_not_issued")
    assert len(await multipart_uploads(resources, upload["key"])) == 1
    assert (await client.delete(path)).status_code == 204
    assert await multipart_uploads(resources, upload["key"]) == []
