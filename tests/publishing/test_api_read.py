"""Reading a record, conditional requests, and what every address under /api has in common."""

import re
from datetime import UTC, datetime

import pytest
from api_client import (
    CREATED_MEMBERS,
    UNKNOWN_VIDEO_ID,
    Client,
    answered,
    app_client,
    problem,
    published,
    run_sql,
)

from portal.config import Config
from portal.http.composition import WebContext

UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
pytestmark = pytest.mark.shared_app


async def test_retrieval_record_is_the_creation_record_and_a_playback_address_once_ready(
    client: Client, resources: WebContext
) -> None:
    created = await published(client)
    address = f"/api/videos/{created['id']}"
    record = await answered(await client.get(address))
    assert set(record) == CREATED_MEMBERS | {"playbackUrl"}
    assert record == {**created, "playbackUrl": ""}
    stream = f"{resources.config.public_url}/hls/{created['id']}/master.m3u8"
    for change, playback_url in (
        ("status = 'ready', published_attempt = 2", stream),
        ("status = 'failed', published_attempt = NULL, failure_code = 'x'", ""),
    ):
        await run_sql(resources.config.database_url, f"UPDATE versions SET {change}")
        record = await answered(await client.get(address))
        assert record["status"] in change
        assert record["playbackUrl"] == playback_url


async def test_unknown_and_malformed_ids_are_not_found(client: Client) -> None:
    created = await published(client)
    known = created["id"]
    for video_id in (UNKNOWN_VIDEO_ID, "%00" * 8, "0" * 5_000, known.upper(), f"{known}%20"):
        await problem(await client.get(f"/api/videos/{video_id}"), 404, "video_not_found")
    await problem(await client.get("/api/videos/1"), 404, "not_found")


async def test_unknown_addresses_under_api_are_problems(client: Client) -> None:
    record = f"/api/videos/{(await published(client))['id']}"
    for path in ("/api", "/api/nothing", "/api/categories/", f"{record}/", "/api/%2e%2e/x"):
        await problem(await client.get(path), 404, "not_found")
    elsewhere = await client.get("/apis")
    assert (elsewhere.status_code, elsewhere.mimetype) == (404, "text/html")


async def test_other_methods_are_refused_with_those_allowed(client: Client) -> None:
    allowed = {
        ("DELETE", "/api/categories"): {"GET", "HEAD", "OPTIONS"},
        ("DELETE", "/api/videos"): {"GET", "HEAD", "POST", "OPTIONS"},
        ("PUT", f"/api/videos/{UNKNOWN_VIDEO_ID}"): {"GET", "HEAD", "OPTIONS", "PATCH", "DELETE"},
    }
    for (method, path), methods in allowed.items():
        response = await client.open(path, method=method)
        await problem(response, 405, "method_not_allowed")
        assert set(response.headers["Allow"].split(", ")) == methods


async def test_unchanged_record_is_not_sent_again(client: Client) -> None:
    address = f"/api/videos/{(await published(client))['id']}"
    etag = (await client.get(address)).headers["ETag"]
    assert re.fullmatch(r'"[^"]+"', etag)
    for if_none_match in (etag, f'"other", W/{etag}'):
        response = await client.get(address, headers={"If-None-Match": if_none_match})
        assert response.status_code == 304, if_none_match
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
