"""Creation of videos: the record, safe retries, and refusals."""

import asyncio
import gzip
from datetime import UTC, datetime
from typing import Any
from unittest.mock import AsyncMock

import pytest
from api_client import (
    CREATED_MEMBERS,
    RAW_FILE,
    Client,
    answered,
    counts,
    faults,
    metadata,
    presign,
    problem,
    put,
    rows,
    uploaded,
)

from portal.http.composition import WebContext
from portal.videos import publishing

pytestmark = pytest.mark.shared_app

OTHER_METADATA: list[dict[str, Any]] = [
    {"title": "Harbour at dawn "},
    {"description": ""},
    {"categoryIds": [3, 12]},
    {"tags": "harbour,morning"},
    {"fileName": "Harbour.mp4"},
]
FOREIGN_KEYS = [
    "",
    "videos/00000000000000000000000000000000.mp4",
    "../secret",
    "hls/x/1/master.m3u8",
    "videos/\n.mp4",
    "x" * 10_000,
]


async def test_time_of_creation_is_by_the_database_clock(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr(publishing, "server_time", AsyncMock(return_value=now))
    record = await answered(
        await client.post("/api/videos", json=metadata(await uploaded(client))), 201
    )
    assert datetime.fromisoformat(record["createdAt"]) == now


async def test_creation_returns_the_record_and_its_location(
    client: Client, resources: WebContext
) -> None:
    """Texts are kept exactly as they were sent."""
    texts = {
        "title": "  \u200fشريط\u202e e\u0301 \u00e9 \ufeff<b>&amp; ",
        "description": "line\r\nline\n\ttab \u2028 \U0001f3ac \u0007",
        "tags": " a,, b ,\u00a0c,",
    }
    body = metadata(await uploaded(client), **texts)
    response = await client.post("/api/videos", json=body)
    record = await answered(response, 201)
    assert set(record) == CREATED_MEMBERS
    assert response.headers["Location"] == f"/api/videos/{record['id']}"
    key = body.pop("key")
    assert {member: record[member] for member in body} == body
    assert record["storageKey"] == key
    assert (record["status"], record["sizeBytes"]) == ("processing", len(RAW_FILE))
    assert isinstance(record["id"], str)
    assert isinstance(record["transcodeJobId"], str)
    read = await answered(await client.get(f"/api/videos/{record['id']}"))
    assert {member: read[member] for member in body} == body
    query = "SELECT id::text, status::text, args FROM procrastinate_jobs"
    [(job_id, status, arguments)] = await rows(resources.config.database_url, query)
    assert (job_id, status) == (record["transcodeJobId"], "todo")
    assert arguments["version_id"] == record["id"]
    assert arguments["cause"].keys() == {"request_id"}


async def test_unknown_and_doubled_parameters_are_named(client: Client) -> None:
    """Refused before the body is read: the portal would ignore their meaning."""
    response = await client.post("/api/videos?visiblity=private&a/b=&visibility=private", data="no")
    unknown = "This parameter is not known here."
    misspelt = f"{unknown} Did you mean `visibility`?"
    assert await faults(response) == {"/visiblity": misspelt, "/a~1b": unknown}
    response = await client.post("/api/videos?visibility=public&visibility=private", data="no")
    assert await faults(response) == {"/visibility": "Choose 'public', 'unlisted' or 'private'."}


async def test_key_is_for_one_uncompressed_file(client: Client, resources: WebContext) -> None:
    upload = await presign(client)
    url = upload["uploadUrl"]
    body = metadata(upload["key"])
    for words in ("No uploaded file", "empty"):
        details = await problem(
            await client.post("/api/videos", json=body), 409, "upload_not_found"
        )
        assert words in details["detail"]
        assert await put(url, b"") == 200
    encoding = {"Content-Encoding": "gzip"}
    assert await put(url, gzip.compress(RAW_FILE), **encoding) == 200
    messages = await faults(await client.post("/api/videos", json=body))
    assert "Content-Encoding: gzip" in messages["/key"]
    assert await counts(resources.config.database_url) == (0, 0)
    assert await put(url, RAW_FILE) == 200
    assert (await client.post("/api/videos", json=body)).status_code == 201


async def test_same_request_returns_the_same_record_and_another_is_a_conflict(
    client: Client, resources: WebContext
) -> None:
    """Repetitions may be simultaneous, and the file may be gone."""
    body = metadata(await uploaded(client))
    answers = await asyncio.gather(*(client.post("/api/videos", json=body) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len({(await answer.get_data()) for answer in answers}) == 1
    await resources.storage.delete(body["key"])
    again = await client.post("/api/videos", json=body)
    record = await answered(again, 200)
    assert record == await answers[0].get_json()
    assert again.headers["Location"] == f"/api/videos/{record['id']}"
    for change in OTHER_METADATA:
        other = await client.post("/api/videos", json={**body, **change})
        await problem(other, 409, "key_already_used")
    assert await counts(resources.config.database_url) == (1, 1)
    read = await answered(await client.get(f"/api/videos/{record['id']}"))
    assert {member: read[member] for member in record} == record


async def test_repetition_with_another_visibility_is_a_conflict(client: Client) -> None:
    body = metadata(await uploaded(client))
    created = await answered(await client.post("/api/videos", json=body), 201)
    again = await client.post("/api/videos?visibility=private", json=body)
    document = await problem(again, 409, "visibility_differs")
    present = {"id": created["id"], "title": created["title"], "visibility": "public"}
    assert document["present"] == present
    for query in ("", "?visibility=public"):
        assert await answered(await client.post(f"/api/videos{query}", json=body)) == created


async def test_key_that_was_not_issued_is_refused(client: Client, resources: WebContext) -> None:
    await resources.storage.put(FOREIGN_KEYS[1], RAW_FILE, content_type="video/mp4")
    for key in FOREIGN_KEYS:
        messages = await faults(await client.post("/api/videos", json=metadata(key)))
        assert list(messages) == ["/key"], key
        assert "not issued" in messages["/key"]
    assert await counts(resources.config.database_url) == (0, 0)


async def test_every_fault_is_listed_at_once(client: Client, resources: WebContext) -> None:
    body = {"title": " ", "categoryIds": [999, 1.5, 1], "tags": 5, "fileName": "noext", "key": 7}
    messages = await faults(await client.post("/api/videos", json=body))
    faulty = "/title /description /categoryIds/0 /categoryIds/1 /tags /fileName /key"
    assert set(messages) == set(faulty.split())
    assert messages["/description"] == "This member is required."
    assert await counts(resources.config.database_url) == (0, 0)
