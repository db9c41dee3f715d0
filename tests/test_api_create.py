"""Creating a video: the record, safe retries, and what stands in the way."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from api_kit import (
    CREATED_MEMBERS,
    RAW_FILE,
    counts,
    faults,
    metadata,
    presign,
    problem,
    published,
    put,
    rows,
    run_sql,
    send,
    uploaded,
)
from quart.typing import TestClientProtocol

from portal.config import Config
from portal.resources import Resources

UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


async def test_creation_answers_the_record_and_where_it_is(client: TestClientProtocol) -> None:
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


async def test_timestamps_are_utc_with_z(client: TestClientProtocol) -> None:
    before = datetime.now(UTC)
    record = await published(client)
    assert UTC_TIME.fullmatch(record["createdAt"])
    assert UTC_TIME.fullmatch(record["updatedAt"])
    created = datetime.fromisoformat(record["createdAt"])
    assert before <= created <= datetime.now(UTC)


async def test_record_names_its_job(client: TestClientProtocol, config: Config) -> None:
    record = await published(client)
    query = "SELECT id::text, status::text, args FROM procrastinate_jobs"
    jobs = await rows(config.database_url, query)
    assert jobs == [(record["transcodeJobId"], "todo", {"video_id": record["id"]})]


async def test_text_is_kept_exactly_as_submitted(client: TestClientProtocol) -> None:
    texts = {
        "title": "  \u200fشريط\u202e e\u0301 \u00e9 \ufeff<b>&amp; ",
        "description": "line\r\nline\n\ttab \u2028 \U0001f3ac \u0007",
        "tags": " a,, b ,\u00a0c,",
    }
    record = await published(client, **texts)
    read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    assert {member: record[member] for member in texts} == texts
    assert {member: read[member] for member in texts} == texts


async def test_longest_texts_fit(client: TestClientProtocol) -> None:
    texts = {"title": "😀" * 200, "description": "😀" * 5_000, "tags": "😀" * 500}
    record = await published(client, **texts)
    assert {member: record[member] for member in texts} == texts




async def test_escaped_emoji_counts_as_one_character(client: TestClientProtocol) -> None:
    emoji = r"\ud83d\ude00"
    text = f'{{"fileName": "{emoji * 251}.mp4", "contentType": "video/mp4"}}'
    response = await send(client, "/api/videos/presign", text.encode())
    assert response.status_code == 200


async def test_repeated_category_ids_are_kept(client: TestClientProtocol) -> None:
    assert (await published(client, categoryIds=[3, 1, 3]))["categoryIds"] == [3, 1, 3]


async def test_same_request_again_answers_the_same_record(
    client: TestClientProtocol, config: Config
) -> None:
    body = metadata(await uploaded(client))
    first = await client.post("/api/videos", json=body)
    again = await client.post("/api/videos", json={**body, "ignored": True})
    assert (first.status_code, again.status_code) == (201, 200)
    assert await again.get_json() == await first.get_json()
    assert again.headers["Location"] == first.headers["Location"]
    assert await counts(config.database_url) == (1, 1)


async def test_retry_is_safe_even_when_the_file_is_gone(
    client: TestClientProtocol, resources: Resources
) -> None:
    record = await published(client)
    await resources.storage.delete(record["storageKey"])
    again = await client.post("/api/videos", json=metadata(record["storageKey"]))
    assert again.status_code == 200
    assert await again.get_json() == record


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another"},
        {"title": "Harbour at dawn "},
        {"description": ""},
        {"categoryIds": [3, 12]},
        {"categoryIds": [12, 3, 3]},
        {"tags": "harbour,morning"},
        {"fileName": "Harbour.mp4"},
    ],
)
async def test_same_key_with_other_metadata_is_a_conflict(
    client: TestClientProtocol, config: Config, change: dict[str, Any]
) -> None:
    record = await published(client)
    body = metadata(record["storageKey"], **change)
    response = await client.post("/api/videos", json=body)
    await problem(response, 409, "key_already_used")
    assert await counts(config.database_url) == (1, 1)
    read = await (await client.get(f"/api/videos/{record['id']}")).get_json()
    assert {member: read[member] for member in record} == record


async def test_key_without_a_file_is_a_conflict(client: TestClientProtocol, config: Config) -> None:
    upload = await presign(client)
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    await problem(response, 409, "upload_not_found")
    assert await counts(config.database_url) == (0, 0)
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    assert response.status_code == 201


async def test_empty_file_is_a_conflict(client: TestClientProtocol, config: Config) -> None:
    key = await uploaded(client, b"")
    response = await client.post("/api/videos", json=metadata(key))
    body = await problem(response, 409, "upload_not_found")
    assert "empty" in body["detail"]
    assert await counts(config.database_url) == (0, 0)


async def test_file_deleted_before_creation_is_a_conflict(
    client: TestClientProtocol, resources: Resources, config: Config
) -> None:
    key = await uploaded(client)
    await resources.storage.delete(key)
    response = await client.post("/api/videos", json=metadata(key))
    await problem(response, 409, "upload_not_found")
    assert await counts(config.database_url) == (0, 0)


@pytest.mark.parametrize(
    "key",
    [
        "videos/00000000000000000000000000000000.mp4",
        "",
        "videos/",
        "../secret",
        "hls/x/1/master.m3u8",
        "videos/\u00fc.mp4",
        "videos/\n.mp4",
        pytest.param("x" * 10_000, id="of-10000-characters"),
    ],
)
async def test_key_that_was_not_issued_is_refused(
    client: TestClientProtocol, config: Config, key: str
) -> None:
    found = await faults(await client.post("/api/videos", json=metadata(key)))
    assert list(found) == ["/key"]
    assert "not issued" in found["/key"]
    assert await counts(config.database_url) == (0, 0)


async def test_object_that_bypassed_presign_cannot_be_created(
    client: TestClientProtocol, resources: Resources
) -> None:
    key = "videos/ffffffffffffffffffffffffffffffff.mp4"
    await resources.storage.put(key, RAW_FILE, content_type="video/mp4")
    found = await faults(await client.post("/api/videos", json=metadata(key)))
    assert list(found) == ["/key"]


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800", r"\udc00\ud800"])
@pytest.mark.parametrize("member", ["title", "description", "tags", "fileName", "key"])
async def test_text_no_database_can_hold_is_refused_at_its_member(
    client: TestClientProtocol, member: str, escape: str
) -> None:
    body = {"title": "t", "description": "d", "tags": "", "fileName": "a.mp4", "key": "k"}
    parts = [f'"{name}": "{value}"' for name, value in body.items() if name != member]
    text = f'{{"{member}": "a{escape}.mp4", "categoryIds": [1], {", ".join(parts)}}}'
    found = await faults(await send(client, "/api/videos", text.encode()))
    assert "Remove the" in found[f"/{member}"]
    assert set(found) <= {f"/{member}", "/key"}


async def test_every_fault_is_listed_at_once(client: TestClientProtocol, config: Config) -> None:
    body = {"title": " ", "categoryIds": [999, 1.5, 1], "tags": 5, "fileName": "noext", "key": "k"}
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
    assert await counts(config.database_url) == (0, 0)


async def test_empty_category_list_is_refused(client: TestClientProtocol) -> None:
    body = metadata(await uploaded(client), categoryIds=[])
    assert list(await faults(await client.post("/api/videos", json=body))) == ["/categoryIds"]


@pytest.mark.parametrize(
    "number",
    ["1.0", "1e0", "1E0", "true", "null", '"1"', "0", "-1", "32768", "9" * 5_000, "-" + "9" * 5_000],
)
async def test_category_id_is_refused_unless_an_integer_of_the_table(
    client: TestClientProtocol, number: str
) -> None:
    text = '{"title": "t", "description": "", "tags": "", "fileName": "a.mp4", "key": "k", '
    text += f'"categoryIds": [1, {number}]}}'
    found = await faults(await send(client, "/api/videos", text.encode()))
    assert set(found) == {"/categoryIds/1", "/key"}


async def test_size_beyond_32_bits_is_answered_exactly(
    client: TestClientProtocol, config: Config
) -> None:
    record = await published(client)
    await run_sql(config.database_url, f"UPDATE videos SET size_bytes = {2**63 - 1}")
    response = await client.get(f"/api/videos/{record['id']}")
    assert b'"sizeBytes":9223372036854775807,' in await response.get_data()
