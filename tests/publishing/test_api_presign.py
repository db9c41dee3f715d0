"""The category table, and the addresses that files are uploaded to."""

import re
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from api_client import RAW_FILE, Client, answered, faults, presign, put, rows

from portal.http.composition import WebContext
from portal.storage.calls import ObjectMissing

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


async def test_faulty_presign_names_every_fault_and_issues_no_key(
    client: Client, resources: WebContext
) -> None:
    bodies = (
        {"fileName": "a/b.mp4", "contentType": "video/webm"},
        # Members go by their documented names alone.
        {"file_name": "a.mp4", "content_type": "video/mp4"},
    )
    for body in bodies:
        messages = await faults(await client.post("/api/videos/presign", json=body))
        assert messages.keys() >= {"/fileName", "/contentType"}
    assert await rows(resources.config.database_url, "SELECT key FROM uploads") == []
