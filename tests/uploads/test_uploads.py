"""Uploads in parts to the real storage."""

import asyncio
import hashlib
import os
from contextvars import copy_context
from dataclasses import replace
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from api_client import (
    Client,
    answered,
    faults,
    metadata,
    presign,
    problem,
    published,
    put,
    run_sql,
    until_found,
)
from hypothesis import given
from hypothesis import strategies as st
from page_rows import make_row
from quart import Quart, Response
from signed_in import WAITING, configure
from stored_objects import unreachable
from tortoise.exceptions import IntegrityError
from upload_client import (
    MIB,
    PART_BYTES,
    abort_behind,
    complete,
    look,
    multipart_id,
    multipart_uploads,
    put_to,
    send_part,
    sign,
    start,
    started,
    stored,
)
from yarl import URL

from portal.database.connection import transaction
from portal.database.models import Upload
from portal.http.composition import WebContext
from portal.storage.bucket import open_storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import (
    MAX_FILE_BYTES,
    MAX_PARTS,
    StoredPart,
    missing_parts,
    part_count,
    part_size_bytes,
    size_of_part,
    whole_parts,
)
from portal.uploads import service as uploads

pytestmark = pytest.mark.shared_app

FILE = os.urandom(1 * MIB) * 35 + b"the end"


async def send_completion(client: Client, upload: dict[str, Any]) -> Response:
    return await client.post(f"/api/uploads/{upload['key'][7:39]}/complete")


async def test_parts_in_any_order_become_the_file(client: Client, resources: WebContext) -> None:
    key = (await presign(client, "a.mov", "video/quicktime"))["key"]
    upload = await started(client, len(FILE), key=key)
    assert upload["state"] == "uploading"
    assert (upload["partSizeBytes"], upload["partCount"]) == (PART_BYTES, 3)
    assert upload["parts"] == []
    etags = {number: await send_part(client, upload, number, FILE) for number in (3, 1, 2)}
    uploading = await look(client, upload)
    assert {part["partNumber"]: part["etag"] for part in uploading["parts"]} == etags
    completions = await asyncio.gather(*(complete(client, upload) for _ in range(4)))
    assert completions == [{**upload, "state": "stored", "parts": []}] * 4
    assert await look(client, upload) == await complete(client, upload) == completions[0]
    address = URL(await resources.storage.public.presign_get(key, ttl_s=60), encoded=True)
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        assert response.headers["Content-Type"] == "video/quicktime"
        assert hashlib.sha256(await response.read()).digest() == hashlib.sha256(FILE).digest()


async def test_upload_is_resumed_and_takes_only_parts_of_their_size(client: Client) -> None:
    upload = await started(client, 12 * PART_BYTES)
    address = await sign(client, upload, 2)
    for size in (0, PART_BYTES - 1, PART_BYTES + 1):
        assert (await put_to(address, bytes(size)))[0] == 403, size
    assert (await put_to(address, bytes(PART_BYTES)))[0] == 200
    again = await start(client, upload["key"], 12 * PART_BYTES)
    assert again.status_code == 200
    assert again.headers["Location"] == f"/api/uploads/{upload['uploadId']}"
    resumed = await again.get_json()
    [part] = resumed["parts"]
    assert (part["partNumber"], part["sizeBytes"]) == (2, PART_BYTES)
    assert resumed == await look(client, upload)
    refused = await problem(await send_completion(client, upload), 409, "parts_missing")
    assert refused["missingParts"] == [1, *range(3, 13)]
    assert await look(client, upload) == resumed


async def test_file_of_unknown_size_is_sent_part_by_part(
    client: Client, resources: WebContext
) -> None:
    upload = await answered(await start(client, (await presign(client))["key"], None), 201)
    assert (upload["sizeBytes"], upload["partCount"], upload["isGrowing"]) == (None, None, True)
    assert upload["partSizeBytes"] == PART_BYTES
    path = f"/api/uploads/{upload['uploadId']}"

    async def send(number: int, data: bytes) -> None:
        signed = await client.post(f"{path}/parts/{number}?sizeBytes={len(data)}")
        assert (await put_to((await answered(signed))["uploadUrl"], data))[0] == 200

    await send(3, FILE[2 * PART_BYTES :])
    await send(1, FILE[:PART_BYTES])
    resumed = await answered(await start(client, upload["key"], None))
    sizes = {part["partNumber"]: part["sizeBytes"] for part in resumed["parts"]}
    assert sizes == {1: PART_BYTES, 3: len(FILE) - 2 * PART_BYTES}
    await problem(await client.post(f"{path}/parts/2"), 409, "upload_size_needed")
    too_long = await client.post(f"{path}/parts/2?sizeBytes={PART_BYTES + 1}")
    await problem(too_long, 409, "upload_size_needed")
    await problem(await start(client, upload["key"], 5), 409, "upload_already_started")
    await problem(await send_completion(client, upload), 409, "upload_size_needed")
    end = f"{path}/complete?sizeBytes={len(FILE)}"
    missing = await problem(await client.post(end), 409, "parts_missing")
    assert missing["missingParts"] == [2]
    # The refused completion recorded the size of the file, from which that of each part follows.
    await send_part(client, upload, 2, FILE)
    assert (await answered(await client.post(end)))["state"] == "stored"
    await problem(await client.post(f"{end}0"), 409, "upload_size_differs")
    assert await resources.storage.get(upload["key"]) == FILE


async def test_growing_upload_stays_below_the_limits(app: Quart, client: Client) -> None:
    configure(app, max_source_bytes=20 * MIB)
    upload = await answered(await start(client, (await presign(client))["key"], None), 201)
    path = f"/api/uploads/{upload['uploadId']}/parts"
    await answered(await client.post(f"{path}/2?sizeBytes={4 * MIB}"))
    too_large = await client.post(f"{path}/2?sizeBytes={4 * MIB + 1}")
    assert str(20 * MIB) in (await faults(too_large))["/sizeBytes"].replace(",", "")


async def test_upload_that_storage_has_lost_is_started_again(
    client: Client, resources: WebContext
) -> None:
    upload = await started(client, 5)
    await send_part(client, upload, 1, b"lost!")
    await abort_behind(resources, upload)
    assert (await look(client, upload))["state"] == "pending"
    await problem(await send_completion(client, upload), 409, "upload_gone")
    again = await start(client, upload["key"], 3)
    assert again.status_code == 201
    renewed = await again.get_json()
    await send_part(client, renewed, 1, b"new")
    await complete(client, renewed)
    assert await resources.storage.get(upload["key"]) == b"new"


async def test_discarded_upload_leaves_nothing(client: Client, resources: WebContext) -> None:
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
    # A completed upload is discarded with its file.
    completed = await stored(client, b"abc")
    assert (await client.delete(f"/api/uploads/{completed['uploadId']}")).status_code == 204
    body = metadata(completed["key"])
    await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    with pytest.raises(ObjectMissing):
        await resources.storage.head(completed["key"])


async def test_file_of_a_video_cannot_be_changed(client: Client, resources: WebContext) -> None:
    record = await published(client)
    path = f"/api/uploads/{record['storageKey'][7:39]}"
    await problem(await client.delete(path), 409, "key_already_used")
    await problem(await start(client, record["storageKey"], 5), 409, "key_already_used")
    await problem(await client.post(f"{path}/parts/1"), 409, "upload_not_started")
    assert (await (await client.get(path)).get_json())["state"] == "stored"
    assert (await resources.storage.head(record["storageKey"])).size_bytes == record["sizeBytes"]


async def test_video_needs_the_completed_file(client: Client, resources: WebContext) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    body = metadata(upload["key"])
    storage = resources.storage
    answer = await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    assert f"POST /api/uploads/{upload['uploadId']}/complete" in answer["detail"]
    # Another object under the key is not the file.
    await storage.put(upload["key"], b"xyz", content_type="video/mp4")
    await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    await storage.delete(upload["key"])
    await complete(client, upload)
    await storage.put(upload["key"], b"other", content_type="video/mp4")
    await problem(await client.post("/api/videos", json=body), 409, "upload_not_found")
    await problem(await send_completion(client, upload), 409, "upload_size_differs")
    await storage.put(upload["key"], b"abc", content_type="video/mp4")
    assert (await client.post("/api/videos", json=body)).status_code == 201


async def test_file_above_the_portals_limit_is_refused_and_removed(
    app: Quart, client: Client
) -> None:
    configure(app, max_source_bytes=1_000)
    key = (await presign(client))["key"]
    assert "1,000" in (await faults(await start(client, key, 1_001)))["/sizeBytes"]
    assert (await start(client, key, 1_000)).status_code == 201
    # A file in one part is measured when its video is created.
    upload = await presign(client)
    assert await put(upload["uploadUrl"], bytes(1_001)) == 200
    refused = await faults(await client.post("/api/videos", json=metadata(upload["key"])))
    assert "1,001 bytes" in refused["/key"]
    # A later file under the key becomes no video either.
    assert await put(upload["uploadUrl"], bytes(10)) == 200
    answer = await client.post("/api/videos", json=metadata(upload["key"]))
    await problem(answer, 409, "upload_not_found")


async def test_bodies_are_checked(client: Client) -> None:
    key = (await presign(client))["key"]
    wrong: list[tuple[Any, set[str]]] = [
        ({}, {"/key", "/sizeBytes"}),
        ({"key": 1, "sizeBytes": "3"}, {"/key", "/sizeBytes"}),
        ({"key": "\0", "sizeBytes": 1}, {"/key"}),
        ([], {""}),
        *(
            ({"key": key, "sizeBytes": size}, {"/sizeBytes"})
            for size in (0, MAX_FILE_BYTES + 1, True)
        ),
    ]
    for body, pointers in wrong:
        assert set(await faults(await client.post("/api/uploads", json=body))) == pointers, body


@pytest.mark.parametrize("name", ["0" * 32, "%00", "%ED%A0%80"])
async def test_unknown_uploads_are_not_found(client: Client, name: str) -> None:
    await expect_unknown(client, f"/api/uploads/{name}")
    await problem(await client.delete(f"/api/uploads/{name}"), 404, "upload_not_issued")
    await problem(await start(client, f"videos/{name}.mp4", 1), 404, "upload_not_issued")


async def expect_unknown(client: Client, path: str) -> None:
    await problem(await client.get(path), 404, "upload_not_issued")
    for call in ("complete", "parts/1"):
        await problem(await client.post(f"{path}/{call}"), 404, "upload_not_issued")


@given(st.integers(1, MAX_FILE_BYTES))
def test_parts_make_up_the_file(size_bytes: int) -> None:
    each = part_size_bytes(size_bytes)
    count = part_count(size_bytes)
    assert each % MIB == 0
    assert 1 <= count <= MAX_PARTS
    assert each * (count - 1) + size_of_part(count, size_bytes) == size_bytes
    assert 1 <= size_of_part(count, size_bytes) <= each
    assert all(size_of_part(number, size_bytes) == each for number in (1, count - 1)[: count - 1])


@given(
    st.integers(1, 200 * 16 * MIB),
    st.lists(st.tuples(st.integers(-5, 300), st.integers(0, 17 * MIB) | st.just(16 * MIB))),
)
def test_every_part_is_stored_or_missing(size_bytes: int, sizes: list[tuple[int, int]]) -> None:
    parts = [StoredPart(number, size, "e") for number, size in dict(sizes).items()]
    whole = {part.number for part in whole_parts(parts, size_bytes)}
    missing = missing_parts(parts, size_bytes)
    assert sorted(whole | set(missing)) == list(range(1, part_count(size_bytes) + 1))
    assert not whole & set(missing)


async def test_simultaneous_starts_with_different_sizes_agree_on_one(
    client: Client, resources: WebContext
) -> None:
    key = (await presign(client))["key"]
    answers = await asyncio.gather(*(start(client, key, size) for size in range(1, 9)))
    assert sorted(answer.status_code for answer in answers) == [201, *[409] * 7]
    (winner,) = [await answer.get_json() for answer in answers if answer.status_code == 201]
    assert await look(client, {"key": key}) == winner
    assert await multipart_uploads(resources, key) == [await multipart_id(resources, key)]


async def test_start_that_cannot_be_recorded_leaves_nothing_in_storage(
    client: Client, resources: WebContext
) -> None:
    key = (await presign(client))["key"]
    url = resources.config.database_url
    await run_sql(url, "ALTER TABLE uploads ADD CONSTRAINT trap CHECK (multipart_id IS NULL)")
    upload = await Upload.get(key=key)
    with pytest.raises(IntegrityError):
        await uploads.start(upload.id, 3, storage=resources.storage)
    await run_sql(url, "ALTER TABLE uploads DROP CONSTRAINT trap")
    assert await multipart_uploads(resources, key) == []


async def test_completion_whose_response_was_lost_can_be_repeated(
    client: Client, resources: WebContext
) -> None:
    """Storage has assembled the file, and the portal was killed before it recorded that."""
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


async def test_discarding_waits_for_a_creation_and_is_then_refused(
    client: Client, resources: WebContext
) -> None:
    done = await stored(client, b"abc")
    path = f"/api/uploads/{done['uploadId']}"
    # A task that is created inside the transaction would be part of it.
    outside = copy_context()
    async with transaction():
        # Publishing locks the upload first, too.
        await uploads.lock(UUID(done["uploadId"]))
        discarding = asyncio.create_task(client.delete(path), context=outside)
        await until_found(resources.config.database_url, WAITING)
        await make_row(storage_key=done["key"])
    await problem(await discarding, 409, "key_already_used")
    assert await resources.storage.get(done["key"]) == b"abc"


async def test_discarding_can_be_repeated_after_an_outage_of_storage(
    app: Quart, client: Client, resources: WebContext
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    path = f"/api/uploads/{upload['uploadId']}"
    async with open_storage(unreachable(resources.config)) as nowhere:
        app.extensions["portal"] = replace(resources, storage=nowhere)
        await problem(await client.delete(path), 503, "storage_unavailable")
    app.extensions["portal"] = resources
    # The upload is discarded already, although storage still has its parts.
    await problem(await client.post(f"{path}/parts/1"), 404, "upload_not_issued")
    await problem(await client.post(f"{path}/complete"), 404, "upload_not_issued")
    assert len(await multipart_uploads(resources, upload["key"])) == 1
    assert (await client.delete(path)).status_code == 204
    assert await multipart_uploads(resources, upload["key"]) == []
