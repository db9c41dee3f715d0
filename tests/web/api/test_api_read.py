"""Reading a record, conditional requests, and what every address under /api has in common."""

import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from api_client import (
    CREATED_MEMBERS,
    UTC_TIME,
    Client,
    app_client,
    problem,
    published,
    run_sql,
)

from portal.config import Config
from portal.web.composition import WebContext

pytestmark = pytest.mark.shared_app


async def test_retrieval_record_is_the_creation_record_and_a_playback_address(
    client: Client,
) -> None:
    created = await published(client)
    response = await client.get(f"/api/videos/{created['id']}")
    assert response.status_code == 200
    assert response.content_type == "application/json"
    record = await response.get_json()
    assert set(record) == CREATED_MEMBERS | {"playbackUrl"}
    assert record.pop("playbackUrl") == ""
    assert record == created


async def test_playback_address_is_filled_exactly_when_ready(
    client: Client, resources: WebContext
) -> None:
    created = await published(client)
    ready = "status = 'ready', published_attempt = 2"
    failed = "status = 'failed', published_attempt = NULL, failure_code = 'x'"
    addresses = {
        "processing": "",
        ready: f"{resources.config.public_url}/hls/{created['id']}/2/master.m3u8",
        failed: "",
    }
    for change, address in addresses.items():
        if "=" in change:
            await run_sql(resources.config.database_url, f"UPDATE videos SET {change}")
        record = await (await client.get(f"/api/videos/{created['id']}")).get_json()
        assert record["status"] in change
        assert record["playbackUrl"] == address


async def test_unknown_and_malformed_ids_are_not_found(client: Client) -> None:
    created = await published(client)
    known = created["id"]
    ids = [str(uuid4()), "%00" * 8, "%ff" * 8, "0" * 5_000, known.upper()]
    ids += [known.replace("-", ""), f"{{{known}}}", f"urn:uuid:{known}", f"{known}%20"]
    for video_id in ids:
        await problem(await client.get(f"/api/videos/{video_id}"), 404, "video_not_found")
    await problem(await client.get("/api/videos/1"), 404, "not_found")


async def test_unknown_addresses_under_api_are_problems(client: Client) -> None:
    created = await published(client)
    record = f"/api/videos/{created['id']}"
    paths = ["/api", "/api/", "/api/nothing", "/api/categories/", "/api/videos/", f"{record}/"]
    for path in [*paths, f"{record}/x", "/api/videos/../../etc", "/api/%2e%2e/x"]:
        await problem(await client.get(path), 404, "not_found")
    elsewhere = await client.get("/apis")
    assert elsewhere.status_code == 404
    assert elsewhere.mimetype == "text/html"


async def test_other_methods_are_refused_with_those_allowed(client: Client) -> None:
    record = f"/api/videos/{uuid4()}"
    allowed = {
        ("DELETE", "/api/categories"): {"GET", "HEAD", "OPTIONS"},
        ("POST", "/api/categories"): {"GET", "HEAD", "OPTIONS"},
        ("GET", "/api/videos"): {"POST", "OPTIONS"},
        ("PUT", "/api/videos"): {"POST", "OPTIONS"},
        ("DELETE", record): {"GET", "HEAD", "OPTIONS"},
        ("PATCH", record): {"GET", "HEAD", "OPTIONS"},
        ("POST", "/api/openapi.json"): {"GET", "HEAD", "OPTIONS"},
    }
    for (method, path), methods in allowed.items():
        response = await client.open(path, method=method)
        await problem(response, 405, "method_not_allowed")
        assert set(response.headers["Allow"].split(", ")) == methods


async def test_head_answers_the_headers_alone(client: Client) -> None:
    created = await published(client)
    for path in ("/api/categories", f"/api/videos/{created['id']}"):
        full, head = await client.get(path), await client.head(path)
        assert head.status_code == 200
        for name in ("Content-Type", "Content-Length", "ETag"):
            assert head.headers.get(name) == full.headers.get(name)


async def test_unchanged_record_is_not_sent_again(client: Client) -> None:
    address = f"/api/videos/{(await published(client))['id']}"
    etag = (await client.get(address)).headers["ETag"]
    assert re.fullmatch(r'"[^"]+"', etag)
    for given in (etag, f"W/{etag}", "*", f'"other", {etag}', f'"a",W/{etag},"b"'):
        response = await client.get(address, headers={"If-None-Match": given})
        assert response.status_code == 304, given
        assert await response.get_data() == b""
        assert response.headers["ETag"] == etag
        assert response.headers["Cache-Control"] == "no-cache"


async def test_timestamps_are_utc_whatever_the_time_zone_of_the_database(config: Config) -> None:
    far_east = f"{config.database_url}&options=-c%20timezone%3DAsia/Kolkata"
    async with app_client(config, database_url=far_east) as client:
        before = datetime.now(UTC)
        record = await published(client)
        read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    for member in ("createdAt", "updatedAt"):
        assert read[member] == record[member]
        assert UTC_TIME.fullmatch(read[member])
        assert before <= datetime.fromisoformat(read[member]) <= datetime.now(UTC)
