"""Categories, addresses for uploads, and the creation and retrieval of records."""

import asyncio
import gzip
import re
from datetime import UTC, datetime
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from api_client import (
    CREATED_MEMBERS,
    RAW_FILE,
    UNKNOWN_VIDEO_ID,
    Client,
    answered,
    app_client,
    counts,
    faults,
    metadata,
    presign,
    problem,
    published,
    put,
    rows,
    run_sql,
    uploaded,
)

from portal.config import Config
from portal.http.composition import WebContext
from portal.storage.calls import ObjectMissing
from portal.videos import publishing

pytestmark = pytest.mark.shared_app


async def test_categories_are_a_fixed_table(client: Client) -> None:
    body = await answered(await client.get("/api/categories"))
    assert set(body) == {"categories"}
    assert body["categories"][0] == {"id": 1, "name": "Film & Animation"}


async def test_presign_returns_a_key_and_an_address_that_is_signed_for_an_hour(
    client: Client, resources: WebContext
) -> None:
    upload = await presign(client, "Some clip.MOV", "video/quicktime")
    assert set(upload) == {"uploadUrl", "key"}
    assert re.fullmatch(r"videos/[0-9a-f]{32}\.mov", upload["key"])
    address = urlsplit(upload["uploadUrl"])
    assert f"{address.scheme}://{address.netloc}" == resources.config.s3_public_endpoint_url
    assert address.path == f"/{resources.config.s3_bucket}/{upload['key']}"
    query = parse_qs(address.query)
    assert query["X-Amz-Expires"] == ["3600"]
    assert "content-type" in query["X-Amz-SignedHeaders"][0].split(";")
    assert query["X-Amz-Signature"][0]
    extensions = {"a b.mOv": "mov", "..mp4": "mp4", "été.1.M4V": "m4v", "a.webm": "mp4"}
    for file_name, extension in extensions.items():
        key = (await presign(client, file_name))["key"]
        assert re.fullmatch(rf"videos/[0-9a-f]{{32}}\.{extension}", key), file_name


async def test_address_takes_one_file_of_its_type_under_its_key(
    client: Client, resources: WebContext
) -> None:
    upload = await presign(client)
    other = await presign(client)
    url = upload["uploadUrl"]
    assert await put(url, RAW_FILE, content_type="video/quicktime") == 403
    assert await put(url.partition("?")[0], RAW_FILE) in (400, 401, 403)
    assert await put(url.replace(upload["key"], other["key"]), RAW_FILE) == 403
    for key in (upload["key"], other["key"]):
        with pytest.raises(ObjectMissing):
            await resources.storage.head(key)
    assert await put(url, RAW_FILE) == 200
    assert await resources.storage.get(upload["key"]) == RAW_FILE
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "DELETE"):
            async with session.request(method, url) as response:
                assert response.status == 403


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


UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


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
    existing_id = created["id"]
    for video_id in (
        UNKNOWN_VIDEO_ID,
        "%00" * 8,
        "0" * 5_000,
        existing_id.upper(),
        f"{existing_id}%20",
    ):
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
