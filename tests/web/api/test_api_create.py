"""Creating a video: the record, safe retries, and what stands in the way."""

import asyncio
import gzip
from typing import Any

import pytest
from api_client import (
    CREATED_MEMBERS,
    RAW_FILE,
    Client,
    counts,
    faults,
    metadata,
    presign,
    problem,
    published,
    put,
    rows,
    uploaded,
)

from portal.web.composition import WebContext

pytestmark = pytest.mark.shared_app

OTHER_METADATA: list[dict[str, Any]] = [
    {"title": "Another"},
    {"title": "Harbour at dawn "},
    {"description": ""},
    {"categoryIds": [3, 12]},
    {"categoryIds": [12, 3, 3]},
    {"tags": "harbour,morning"},
    {"fileName": "Harbour.mp4"},
]
FOREIGN_KEYS = [
    "",
    "videos/00000000000000000000000000000000.mp4",
    "videos/",
    "../secret",
    "hls/x/1/master.m3u8",
    "videos/\u00fc.mp4",
    "videos/\n.mp4",
    "x" * 10_000,
    f"videos/{'0' * 32}.{'x' * 10_000}",
]


async def test_creation_answers_the_record_and_where_it_is(client: Client) -> None:
    body = metadata(await uploaded(client))
    response = await client.post("/api/videos", json=body)
    assert response.status_code == 201
    record = await response.get_json()
    assert set(record) == CREATED_MEMBERS
    assert response.headers["Location"] == f"/api/videos/{record['id']}"
    key = body.pop("key")
    assert {member: record[member] for member in body} == body
    assert record["storageKey"] == key
    assert record["status"] == "processing"
    assert record["sizeBytes"] == len(RAW_FILE)
    assert isinstance(record["id"], str)
    assert isinstance(record["transcodeJobId"], str)


async def test_unknown_parameters_are_named_beside_those_there_are(client: Client) -> None:
    """Before the body is looked at; what was meant by them would not be done."""
    words = "There is no such parameter. The address takes visibility."
    response = await client.post("/api/videos?visiblity=private&a/b=&visibility=private", data="no")
    assert await faults(response) == {"/visiblity": words, "/a~1b": words}
    response = await client.post("/api/videos?visibility=public&visibility=private", data="no")
    assert await faults(response) == {"/visibility": "Choose 'public', 'unlisted' or 'private'."}


async def test_compressed_file_is_refused_until_the_video_itself_is_sent(client: Client) -> None:
    upload = await presign(client)
    encoding = {"Content-Encoding": "gzip"}
    assert await put(upload["uploadUrl"], gzip.compress(RAW_FILE), **encoding) == 200
    body = metadata(upload["key"])
    found = await faults(await client.post("/api/videos", json=body))
    assert list(found) == ["/key"]
    assert "Content-Encoding: gzip" in found["/key"]
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    assert (await client.post("/api/videos", json=body)).status_code == 201


async def test_record_names_its_job(client: Client, resources: WebContext) -> None:
    record = await published(client)
    query = "SELECT id::text, status::text, args FROM procrastinate_jobs"
    jobs = await rows(resources.config.database_url, query)
    [(job_id, status, arguments)] = jobs
    assert (job_id, status) == (record["transcodeJobId"], "todo")
    assert arguments == {"video_id": record["id"], "cause": arguments["cause"]}
    assert arguments["cause"].keys() == {"request_id"}


async def test_text_is_kept_exactly_as_submitted(client: Client) -> None:
    texts = {
        "title": "  \u200fشريط\u202e e\u0301 \u00e9 \ufeff<b>&amp; ",
        "description": "line\r\nline\n\ttab \u2028 \U0001f3ac \u0007",
        "tags": " a,, b ,\u00a0c,",
    }
    record = await published(client, **texts)
    read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    assert {member: record[member] for member in texts} == texts
    assert {member: read[member] for member in texts} == texts


async def test_same_request_again_answers_the_same_record(
    client: Client, resources: WebContext
) -> None:
    body = metadata(await uploaded(client))
    first = await client.post("/api/videos", json=body)
    again = await client.post("/api/videos", json={**body, "ignored": True})
    assert (first.status_code, again.status_code) == (201, 200)
    assert await again.get_json() == await first.get_json()
    assert again.headers["Location"] == first.headers["Location"]
    assert await counts(resources.config.database_url) == (1, 1)


async def test_of_equal_requests_at_once_one_makes_the_record_and_its_job(
    client: Client, resources: WebContext
) -> None:
    body = metadata(await uploaded(client))
    answers = await asyncio.gather(*(client.post("/api/videos", json=body) for _ in range(20)))
    assert sorted(it.status_code for it in answers) == [200] * 19 + [201]
    assert len({(await it.get_data()) for it in answers}) == 1
    assert await counts(resources.config.database_url) == (1, 1)


async def test_retry_is_safe_even_when_the_file_is_gone(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    await resources.storage.delete(record["storageKey"])
    again = await client.post("/api/videos", json=metadata(record["storageKey"]))
    assert again.status_code == 200
    assert await again.get_json() == record


async def test_same_key_with_other_metadata_is_a_conflict(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    for change in OTHER_METADATA:
        body = metadata(record["storageKey"], **change)
        response = await client.post("/api/videos", json=body)
        await problem(response, 409, "key_already_used")
    assert await counts(resources.config.database_url) == (1, 1)
    read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    assert {member: read[member] for member in record} == record


async def test_key_without_a_file_is_a_conflict(client: Client, resources: WebContext) -> None:
    upload = await presign(client)
    for words in ("No uploaded file", "empty"):
        response = await client.post("/api/videos", json=metadata(upload["key"]))
        assert words in (await problem(response, 409, "upload_not_found"))["detail"]
        assert await put(upload["uploadUrl"], b"") == 200
    assert await counts(resources.config.database_url) == (0, 0)
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    assert response.status_code == 201


async def test_key_that_was_not_issued_is_refused(client: Client, resources: WebContext) -> None:
    await resources.storage.put(FOREIGN_KEYS[1], RAW_FILE, content_type="video/mp4")
    for key in FOREIGN_KEYS:
        found = await faults(await client.post("/api/videos", json=metadata(key)))
        assert list(found) == ["/key"], key
        assert "not issued" in found["/key"]
    assert await counts(resources.config.database_url) == (0, 0)


async def test_every_fault_is_listed_at_once(client: Client, resources: WebContext) -> None:
    body = {"title": " ", "categoryIds": [999, 1.5, 1], "tags": 5, "fileName": "noext", "key": 7}
    found = await faults(await client.post("/api/videos", json=body))
    assert set(found) == {
        "/title",
        "/description",
        "/categoryIds/0",
        "/categoryIds/1",
        "/tags",
        "/fileName",
        "/key",
    }
    assert found["/description"] == "This member is required."
    assert await counts(resources.config.database_url) == (0, 0)
