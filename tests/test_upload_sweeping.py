"""Uploads that nobody goes on with do not stay in storage for ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from api_kit import Client, metadata, presign, problem, put, run_sql
from portal_kit import free_port, process, until
from upload_kit import (
    content,
    look,
    multipart_id,
    multipart_uploads,
    send_part,
    started,
    stored,
)

from portal.config import Config
from portal.errors import ObjectMissing, StorageUnavailable
from portal.resources import Resources
from portal.storage import open_storage
from portal.upload_sweeping import sweep_uploads, sweeping

WEEK_AGO = "UPDATE uploads SET created_at = now() - interval '7 days 1 minute'"


async def test_abandoned_parts_are_removed_after_a_week(
    client: Client, config: Config, resources: Resources
) -> None:
    old = await started(client, 3)
    await send_part(client, old, 1, b"abc")
    await run_sql(config.database_url, WEEK_AGO)
    young = await started(client, 3)
    assert await sweep_uploads(resources.storage) == 1
    assert await multipart_uploads(resources, old["key"]) == []
    await problem(await client.get(f"/api/uploads/{old['uploadId']}"), 404, "upload_not_issued")
    assert (await look(client, young))["state"] == "uploading"
    assert await sweep_uploads(resources.storage) == 0


async def test_files_that_arrived_whole_are_kept(
    client: Client, config: Config, resources: Resources
) -> None:
    in_parts = await stored(client, b"abc")
    at_once = await presign(client)
    assert await put(at_once["uploadUrl"], b"abc") == 200
    await run_sql(config.database_url, WEEK_AGO)
    assert await sweep_uploads(resources.storage) == 0
    for key in (in_parts["key"], at_once["key"]):
        assert (await client.post("/api/videos", json=metadata(key))).status_code == 201


async def test_removal_that_broke_off_is_finished(
    client: Client, config: Config, resources: Resources
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    await run_sql(config.database_url, "UPDATE uploads SET is_discarded = true")
    assert await sweep_uploads(resources.storage) == 1
    assert await multipart_uploads(resources, upload["key"]) == []
    assert await multipart_id(resources, upload["key"]) is None


async def test_file_completed_without_the_portals_knowledge_goes_too(
    client: Client, config: Config, resources: Resources
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    name = await multipart_id(resources, upload["key"])
    assert name
    parts = await resources.storage.list_parts(upload["key"], name)
    await resources.storage.complete_multipart(upload["key"], name, parts)
    await run_sql(config.database_url, WEEK_AGO)
    assert await sweep_uploads(resources.storage) == 1
    with pytest.raises(ObjectMissing):
        await resources.storage.head(upload["key"])


async def test_sweep_goes_on_after_an_outage_of_storage(
    client: Client, config: Config, resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    upload = await started(client, 3)
    await run_sql(config.database_url, WEEK_AGO)
    async with open_storage(
        replace(config, s3_endpoint_url=f"http://127.0.0.1:{free_port()}")
    ) as away:
        with pytest.raises(StorageUnavailable):
            await sweep_uploads(away)
        async with sweeping(replace(resources, storage=away)):
            await until(lambda: _has_logged(caplog, "Sweep failed"), timeout_s=10)
    assert await sweep_uploads(resources.storage) == 1
    assert await multipart_uploads(resources, upload["key"]) == []


async def _has_logged(caplog: pytest.LogCaptureFixture, message: str) -> bool:
    return any(record.getMessage() == message for record in caplog.records)


async def test_upload_completed_during_the_sweep_is_whole_or_gone(
    client: Client, config: Config, resources: Resources
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    await run_sql(config.database_url, WEEK_AGO)
    path = f"/api/uploads/{upload['uploadId']}/complete"
    await asyncio.gather(sweep_uploads(resources.storage), client.post(path))
    created = await client.post("/api/videos", json=metadata(upload["key"]))
    if created.status_code == 201:
        assert await content(resources, upload["key"]) == b"abc"
    else:
        await problem(created, 409, "upload_not_found")
        with pytest.raises(ObjectMissing):
            await resources.storage.head(upload["key"])


async def test_worker_sweeps(
    client: Client, config: Config, environ: dict[str, str], resources: Resources
) -> None:
    upload = await started(client, 3)
    await run_sql(config.database_url, WEEK_AGO)

    async def is_swept() -> bool:
        return await multipart_uploads(resources, upload["key"]) == []

    async with process("worker", environ):
        await until(is_swept, timeout_s=20)
