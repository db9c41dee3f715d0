"""The API as served: over HTTP, by a process of its own, with many clients at once."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from api_client import RAW_FILE, counts, metadata
from running_portal import LivePortal, fresh_portal

CLIENTS = 50
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
async def web(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal without a worker, so that jobs stay where they were put."""
    async with fresh_portal(services) as portal:
        yield portal


@pytest.fixture
async def http(web: LivePortal) -> AsyncIterator[aiohttp.ClientSession]:
    """Clients of that portal, as many at once as it takes."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(web.base_url, connector=connector) as session:
        yield session


async def uploaded(http: aiohttp.ClientSession) -> str:
    status, _, upload = await ask(http, "/api/videos/presign", data=GOOD, headers=JSON)
    assert status == 200
    headers = {"Content-Type": "video/mp4"}
    async with http.put(upload["uploadUrl"], data=RAW_FILE, headers=headers) as response:
        assert response.status == 200
    return str(upload["key"])


async def create(
    http: aiohttp.ClientSession, body: dict[str, Any]
) -> tuple[int, str | None, dict[str, Any]]:
    return await ask(http, "/api/videos", json=body)


async def ask(
    http: aiohttp.ClientSession, path: str, **options: Any
) -> tuple[int, str | None, dict[str, Any]]:
    """Status, Location and body of a POST, made again while a busy portal answers 503."""
    while True:
        async with http.post(path, **options) as response:
            answer = await response.json(content_type=None)
            if response.status != 503:
                return response.status, response.headers.get("Location"), answer
        await asyncio.sleep(1)


async def test_fifty_equal_creations_at_once_keep_one_record_and_one_job(
    web: LivePortal, http: aiohttp.ClientSession
) -> None:
    database_url = web.environ["DATABASE_URL"]
    videos, jobs = await counts(database_url)
    body = metadata(await uploaded(http))
    answers = await asyncio.gather(*(create(http, body) for _ in range(CLIENTS)))
    assert Counter(status for status, _, _ in answers) == {201: 1, 200: CLIENTS - 1}
    assert len({location for _, location, _ in answers}) == 1
    assert len({json.dumps(record) for _, _, record in answers}) == 1
    assert await counts(database_url) == (videos + 1, jobs + 1)


async def test_fifty_creations_of_fifty_keys_at_once_all_succeed(
    web: LivePortal, http: aiohttp.ClientSession
) -> None:
    database_url = web.environ["DATABASE_URL"]
    videos, jobs = await counts(database_url)
    keys = await asyncio.gather(*(uploaded(http) for _ in range(CLIENTS)))
    answers = await asyncio.gather(*(create(http, metadata(key)) for key in keys))
    assert {status for status, _, _ in answers} == {201}
    assert len({record["transcodeJobId"] for _, _, record in answers}) == CLIENTS
    assert await counts(database_url) == (videos + CLIENTS, jobs + CLIENTS)


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 10_000):
        yield body[start : start + 10_000]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size_bytes", "status"), [(65_536, 200), (65_537, 413), (900_000, 413)])
async def test_body_is_limited_to_64_kib_on_the_wire(
    http: aiohttp.ClientSession, size_bytes: int, status: int, chunked: bool
) -> None:
    body = GOOD.ljust(size_bytes)
    data = in_pieces(body) if chunked else body
    async with http.post("/api/videos/presign", data=data, headers=JSON) as response:
        assert response.status == status
        answer = await response.json(content_type=None)
    assert status == 200 or answer["code"] == "request_entity_too_large"


async def test_head_sends_no_body(http: aiohttp.ClientSession) -> None:
    for path in ("/api/categories", "/api/docs", f"/api/videos/{uuid4()}"):
        async with http.head(path) as response:
            assert await response.read() == b""
            assert int(response.headers["Content-Length"]) > 0
