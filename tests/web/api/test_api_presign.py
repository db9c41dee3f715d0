"""The category table, and the addresses that files are uploaded to."""

import re
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from api_client import RAW_FILE, Client, faults, presign, put, rows

from portal.storage.calls import ObjectMissing
from portal.web.composition import WebContext

pytestmark = pytest.mark.shared_app


async def test_categories_are_a_fixed_table(client: Client) -> None:
    response = await client.get("/api/categories")
    assert response.status_code == 200
    assert response.content_type == "application/json"
    body = await response.get_json()
    assert set(body) == {"categories"}
    categories = body["categories"]
    assert len(categories) >= 15
    assert all(set(category) == {"id", "name"} for category in categories)
    assert all(type(category["id"]) is int for category in categories)
    assert all(1 <= category["id"] <= 32767 for category in categories)
    assert categories[:2] == [{"id": 1, "name": "Film & Animation"}, {"id": 2, "name": "Music"}]
    assert len({category["name"] for category in categories}) == len(categories)


async def test_presign_answers_a_key_and_an_address(client: Client, resources: WebContext) -> None:
    upload = await presign(client, "Some clip.MOV", "video/quicktime")
    assert set(upload) == {"uploadUrl", "key"}
    assert re.fullmatch(r"videos/[0-9a-f]{32}\.mov", upload["key"])
    address = urlsplit(upload["uploadUrl"])
    assert f"{address.scheme}://{address.netloc}" == resources.config.s3_public_endpoint_url
    assert address.path == f"/{resources.config.s3_bucket}/{upload['key']}"


async def test_upload_address_is_signed_in_the_query_for_an_hour(client: Client) -> None:
    query = parse_qs(urlsplit((await presign(client))["uploadUrl"]).query)
    assert query["X-Amz-Expires"] == ["3600"]
    assert "content-type" in query["X-Amz-SignedHeaders"][0].split(";")
    assert query["X-Amz-Signature"][0]


@pytest.mark.parametrize("content_type", ["video/mp4", "video/quicktime"])
async def test_raw_bytes_go_straight_to_storage(
    client: Client, resources: WebContext, content_type: str
) -> None:
    upload = await presign(client, content_type=content_type)
    assert await put(upload["uploadUrl"], RAW_FILE, content_type=content_type) == 200
    assert await resources.storage.get(upload["key"]) == RAW_FILE


async def test_storage_refuses_another_content_type_than_the_signed_one(
    client: Client, resources: WebContext
) -> None:
    upload = await presign(client, content_type="video/mp4")
    assert await put(upload["uploadUrl"], RAW_FILE, content_type="video/quicktime") == 403
    assert await put(upload["uploadUrl"], RAW_FILE, content_type="text/html") == 403
    with pytest.raises(ObjectMissing):
        await resources.storage.head(upload["key"])


async def test_upload_address_opens_no_other_key(client: Client, resources: WebContext) -> None:
    upload, other = await presign(client), await presign(client)
    url = upload["uploadUrl"].replace(upload["key"], other["key"])
    assert url != upload["uploadUrl"]
    assert await put(url, RAW_FILE) == 403
    with pytest.raises(ObjectMissing):
        await resources.storage.head(other["key"])


async def test_upload_address_opens_nothing_but_a_put(client: Client) -> None:
    upload = await presign(client)
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "DELETE"):
            async with session.request(method, upload["uploadUrl"]) as response:
                assert response.status == 403


async def test_storage_takes_no_unsigned_upload(client: Client) -> None:
    upload = await presign(client)
    assert await put(upload["uploadUrl"].partition("?")[0], RAW_FILE) in (400, 401, 403)


async def test_key_ends_with_the_lower_cased_extension(client: Client) -> None:
    extensions = {"a.MP4": "mp4", "a b.mOv": "mov", "..mp4": "mp4", "été.1.M4V": "m4v"}
    for file_name, extension in extensions.items():
        key = (await presign(client, file_name))["key"]
        assert re.fullmatch(rf"videos/[0-9a-f]{{32}}\.{extension}", key)


async def test_faulty_presign_names_every_fault_and_issues_no_key(
    client: Client, resources: WebContext
) -> None:
    response = await client.post(
        "/api/videos/presign", json={"fileName": "a/b.mp4", "contentType": "video/webm"}
    )
    assert set(await faults(response)) == {"/fileName", "/contentType"}
    assert await rows(resources.config.database_url, "SELECT key FROM uploads") == []


async def test_members_go_by_their_documented_names_alone(client: Client) -> None:
    body = {"file_name": "a.mp4", "content_type": "video/mp4"}
    found = await faults(await client.post("/api/videos/presign", json=body))
    assert set(found) == {"/fileName", "/contentType"}
