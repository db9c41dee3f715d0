"""Uploads in parts, against the real storage: all parts arrive, in any order, exactly once."""

import hashlib
import os
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from api_client import Client, faults, metadata, presign, problem, published, put
from upload_client import (
    MIB,
    PART_BYTES,
    abort_behind,
    complete,
    content,
    look,
    part_numbers,
    put_to,
    refused_completion,
    send_part,
    sign,
    start,
    started,
    stored,
)
from yarl import URL

from portal.config import Config
from portal.storage.calls import ObjectMissing
from portal.web.app import create_app
from portal.web.composition import WebContext

FILE = os.urandom(1 * MIB) * 35 + b"the end"
UNKNOWN_ID = "0" * 32
STRANGE_IDS = [UNKNOWN_ID, "%00", "%ED%A0%80"]


async def test_parts_in_any_order_become_the_file(client: Client, resources: WebContext) -> None:
    upload = await started(client, len(FILE))
    assert upload["state"] == "uploading"
    assert (upload["partSizeBytes"], upload["partCount"]) == (PART_BYTES, 3)
    assert upload["parts"] == []
    etags = {number: await send_part(client, upload, number, FILE) for number in (3, 1, 2)}
    seen = await look(client, upload)
    assert {part["partNumber"]: part["etag"] for part in seen["parts"]} == etags
    done = await complete(client, upload)
    assert done == {**upload, "state": "stored", "parts": []}
    assert await look(client, upload) == done
    assert await complete(client, upload) == done, "asked again"
    arrived = await content(resources, upload["key"])
    assert hashlib.sha256(arrived).digest() == hashlib.sha256(FILE).digest()
    created = await client.post("/api/videos", json=metadata(upload["key"]))
    assert created.status_code == 201
    assert (await created.get_json())["sizeBytes"] == len(FILE)


async def test_object_has_the_type_announced_at_presign(
    client: Client, resources: WebContext
) -> None:
    key = (await presign(client, "a.mov", "video/quicktime"))["key"]
    upload = await started(client, 3, key=key)
    await send_part(client, upload, 1, b"mov")
    await complete(client, upload)
    async with aiohttp.ClientSession() as session:
        address = URL(await resources.storage.public.presign_get(key, ttl_s=60), encoded=True)
        async with session.get(address) as response:
            assert response.headers["Content-Type"] == "video/quicktime"


async def test_starting_again_answers_what_is_stored_so_far(client: Client) -> None:
    upload = await started(client, len(FILE))
    await send_part(client, upload, 2, FILE)
    again = await start(client, upload["key"], len(FILE))
    assert again.status_code == 200
    assert again.headers["Location"] == f"/api/uploads/{upload['uploadId']}"
    answer = await again.get_json()
    assert [(part["partNumber"], part["sizeBytes"]) for part in answer["parts"]] == [
        (2, PART_BYTES)
    ]
    assert answer == await look(client, upload)


async def test_missing_parts_are_named(client: Client) -> None:
    upload = await started(client, 12 * PART_BYTES)
    await send_part(client, upload, 2, bytes(2 * PART_BYTES))
    refused = await refused_completion(client, upload, "parts_missing")
    assert refused["missingParts"] == [1, *range(3, 13)]
    assert "11 of 12 parts" in refused["detail"]
    assert (await look(client, upload))["state"] == "uploading"


async def test_storage_refuses_a_part_of_another_size(client: Client) -> None:
    upload = await started(client, len(FILE))
    address = await sign(client, upload, 1)
    for size in (0, 5, PART_BYTES - 1, PART_BYTES + 1):
        assert (await put_to(address, bytes(size)))[0] == 403, size
    assert (await put_to(address, bytes(PART_BYTES)))[0] == 200
    assert await part_numbers(client, upload) == [1]


async def test_upload_that_storage_has_lost_is_started_anew(
    client: Client, resources: WebContext
) -> None:
    upload = await started(client, len(FILE))
    await send_part(client, upload, 1, FILE)
    await abort_behind(resources, upload)
    assert (await look(client, upload))["state"] == "pending"
    await refused_completion(client, upload, "upload_gone")
    again = await start(client, upload["key"], 3)
    assert again.status_code == 201
    renewed = await again.get_json()
    await send_part(client, renewed, 1, b"new")
    await complete(client, renewed)
    assert await content(resources, upload["key"]) == b"new"


async def test_discarded_upload_leaves_nothing(client: Client) -> None:
    upload = await started(client, len(FILE))
    await send_part(client, upload, 1, FILE)
    path = f"/api/uploads/{upload['uploadId']}"
    address = await sign(client, upload, 2)
    for _ in range(2):
        response = await client.delete(path)
        assert response.status_code == 204
        assert await response.get_data() == b""
    assert (await put_to(address, bytes(PART_BYTES)))[0] == 404
    await expect_unknown(client, path)
    await problem(await start(client, upload["key"], len(FILE)), 404, "upload_not_issued")


async def test_discarding_removes_a_file_no_video_uses(
    client: Client, resources: WebContext
) -> None:
    done = await stored(client, b"abc")
    assert (await client.delete(f"/api/uploads/{done['uploadId']}")).status_code == 204
    body = metadata(done["key"])
    answer = await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    assert "discarded" in answer["detail"]
    with pytest.raises(ObjectMissing):
        await resources.storage.head(done["key"])


async def test_file_of_a_video_is_out_of_reach(client: Client, resources: WebContext) -> None:
    record = await published(client)
    path = f"/api/uploads/{record['storageKey'][7:39]}"
    await problem(await client.delete(path), 409, "key_already_used")
    await problem(await start(client, record["storageKey"], 5), 409, "key_already_used")
    await problem(await client.post(f"{path}/parts/1"), 409, "upload_not_started")
    assert (await (await client.get(path)).get_json())["state"] == "stored"
    assert (await resources.storage.head(record["storageKey"])).size_bytes == record["sizeBytes"]


async def test_video_is_not_made_of_an_unfinished_upload(
    client: Client, resources: WebContext
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    body = metadata(upload["key"])
    answer = await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    assert f"POST /api/uploads/{upload['uploadId']}/complete" in answer["detail"]
    # Not even when something else lies under the key.
    await resources.storage.put(upload["key"], b"xyz", content_type="video/mp4")
    await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    await resources.storage.delete(upload["key"])
    await complete(client, upload)
    assert (await client.post("/api/videos", json=body)).status_code == 201


async def test_video_is_not_made_of_a_file_of_another_size(
    client: Client, resources: WebContext
) -> None:
    done = await stored(client, b"abc")
    await resources.storage.put(done["key"], b"other", content_type="video/mp4")
    body = metadata(done["key"])
    answer = await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    assert "5" in answer["detail"]
    assert "3" in answer["detail"]
    await refused_completion(client, done, "upload_size_differs")


@pytest.mark.parametrize("size", [0, -1, 5 * 1024**4 + 1, 10**40])
async def test_sizes_no_storage_takes_are_refused(client: Client, size: int) -> None:
    found = await faults(await start(client, (await presign(client))["key"], size))
    assert set(found) == {"/sizeBytes"}


async def test_file_above_the_portals_limit_is_refused(config: Config) -> None:
    async with create_app(replace(config, max_source_bytes=1_000)).test_app() as app:
        client = app.test_client()
        key = (await presign(client))["key"]
        found = await faults(await start(client, key, 1_001))
        assert "1,000" in found["/sizeBytes"]
        assert (await start(client, key, 1_000)).status_code == 201


async def test_file_above_the_limit_that_was_sent_at_once_is_refused_and_removed(
    config: Config,
) -> None:
    app = create_app(replace(config, max_source_bytes=1_000))
    async with app.test_app():
        client, storage = app.test_client(), app.extensions["portal"].storage
        upload = await presign(client)
        assert await put(upload["uploadUrl"], bytes(1_001)) == 200
        found = await faults(await client.post("/api/videos", json=metadata(upload["key"])))
        assert "1,001 bytes" in found["/key"]
        with pytest.raises(ObjectMissing):
            await storage.head(upload["key"])
        # Whatever is put there afterwards becomes no video.
        assert await put(upload["uploadUrl"], bytes(10)) == 200
        answer = await client.post("/api/videos", json=metadata(upload["key"]))
        await problem(answer, 409, "upload_not_found")


async def test_bodies_are_checked(client: Client) -> None:
    key = (await presign(client))["key"]
    wrong: list[tuple[Any, set[str]]] = [
        ({}, {"/key", "/sizeBytes"}),
        ({"key": 1, "sizeBytes": "3"}, {"/key", "/sizeBytes"}),
        ({"key": key, "sizeBytes": True}, {"/sizeBytes"}),
        ({"key": "\0", "sizeBytes": 1}, {"/key"}),
        ([], {""}),
    ]
    for body, pointers in wrong:
        assert set(await faults(await client.post("/api/uploads", json=body))) == pointers, body


@pytest.mark.parametrize("name", STRANGE_IDS)
async def test_unknown_uploads_are_not_found(client: Client, name: str) -> None:
    await expect_unknown(client, f"/api/uploads/{name}")
    await problem(await client.delete(f"/api/uploads/{name}"), 404, "upload_not_issued")
    await problem(await start(client, f"videos/{name}.mp4", 1), 404, "upload_not_issued")


async def expect_unknown(client: Client, path: str) -> None:
    await problem(await client.get(path), 404, "upload_not_issued")
    for call in ("complete", "parts/1"):
        await problem(await client.post(f"{path}/{call}"), 404, "upload_not_issued")
