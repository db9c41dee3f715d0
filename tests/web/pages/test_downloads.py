"""The original file: only where the operator allows it, and under the name it came with."""

from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from api_client import RAW_FILE, Client, answered, metadata, presign, published, put
from quart import Quart
from signed_in import configure

pytestmark = pytest.mark.shared_app(downloads=True)


async def test_original_is_offered_only_if_downloads_are_enabled(
    app: Quart, client: Client
) -> None:
    configure(app, downloads=False)
    record = await published(client)
    assert (await client.get(f"/videos/{record['id']}/original")).status_code == 404
    page = str(await (await client.get(f"/videos/{record['id']}")).get_data(as_text=True))
    assert "Download original" not in page


async def test_storage_serves_the_original_under_its_file_name(client: Client) -> None:
    file_name = '日本 "🎬".mov'
    upload = await presign(client)
    # Other headers of the upload are not passed on.
    headers = {"Cache-Control": "public, max-age=86400", "Content-Disposition": "inline"}
    assert await put(upload["uploadUrl"], RAW_FILE, **headers) == 200
    body = metadata(upload["key"], fileName=file_name)
    record = await answered(await client.post("/api/videos", json=body), 201)
    path = f"/videos/{record['id']}/original"
    page = await client.get(f"/videos/{record['id']}")
    assert f'href="{path}"' in str(await page.get_data(as_text=True))
    response = await client.get(path)
    address = response.headers["Location"]
    assert response.status_code == 302
    assert response.headers["Cache-Control"] == "no-store"
    # Public videos may become private soon.
    assert parse_qs(urlsplit(address).query)["X-Amz-Expires"] == ["300"]
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        assert answer.status == 200
        assert await answer.read() == RAW_FILE
        assert answer.headers["Cache-Control"] == "private, max-age=300"
        assert answer.content_disposition is not None
        assert answer.content_disposition.type == "attachment"
        assert answer.content_disposition.filename == file_name
        assert 'filename="__ ___.mov"' in answer.headers["Content-Disposition"]
