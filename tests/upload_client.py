"""Calls of a client that uploads in parts, for tests."""

import io
from typing import Any

import aiohttp
from api_client import Client, answered, presign, rows
from quart import Response
from yarl import URL

from portal.http.composition import WebContext
from portal.retry import Backoff, retry

MIB = 1024**2
PART_BYTES = 16 * MIB


async def start(client: Client, key: str, size_bytes: int | None) -> Response:
    return await client.post("/api/uploads", json={"key": key, "sizeBytes": size_bytes})


async def started(client: Client, size_bytes: int, *, key: str | None = None) -> dict[str, Any]:
    """Start a new upload in parts."""
    response = await start(client, key or (await presign(client))["key"], size_bytes)
    upload = await answered(response, 201)
    assert response.headers["Location"] == f"/api/uploads/{upload['uploadId']}"
    assert upload["key"].startswith(f"videos/{upload['uploadId']}.")
    return upload


async def sign(client: Client, upload: dict[str, Any], number: int) -> str:
    """Return the address to PUT a part to."""
    path = f"/api/uploads/{upload['uploadId']}/parts/{number}"
    answer = await answered(await client.post(path))
    assert set(answer) == {"uploadUrl"}
    return str(answer["uploadUrl"])


async def send_part(client: Client, upload: dict[str, Any], number: int, data: bytes) -> str:
    """PUT a part of this file to storage, and return its ETag."""
    begin = (number - 1) * upload["partSizeBytes"]
    part = data[begin : begin + upload["partSizeBytes"]]
    status, etag = await put_to(await sign(client, upload, number), part)
    assert status == 200
    return etag


async def put_to(address: str, data: bytes) -> tuple[int, str]:
    """PUT to a signed address, and return the status and the ETag."""

    async def send() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.put(URL(address, encoded=True), data=io.BytesIO(data)) as response,
        ):
            return response.status, response.headers.get("ETag", "").strip('"')

    # A server that refuses closes the connection before it has read the whole body.
    return await retry(send, on=(aiohttp.ClientOSError,), backoff=Backoff(first_s=0.1), attempts=3)


async def look(client: Client, upload: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an upload, by its key."""
    return await answered(await client.get(f"/api/uploads/{upload['key'][7:39]}"))


async def complete(client: Client, upload: dict[str, Any]) -> dict[str, Any]:
    return await answered(await client.post(f"/api/uploads/{upload['key'][7:39]}/complete"))


async def stored(client: Client, data: bytes) -> dict[str, Any]:
    """Complete an upload of a small file."""
    upload = await started(client, len(data))
    await send_part(client, upload, 1, data)
    return await complete(client, upload)


async def multipart_id(resources: WebContext, key: str) -> str | None:
    """Return the id of the multipart upload that the portal has recorded."""
    query = "SELECT multipart_id FROM uploads WHERE key = %s"
    ((recorded,),) = await rows(resources.config.database_url, query, key)
    return recorded


async def multipart_uploads(resources: WebContext, key: str) -> list[str]:
    """Return the ids of the multipart uploads that storage has for a key."""
    storage = resources.storage
    answer = await storage._client.list_multipart_uploads(Bucket=storage.bucket)
    return [upload["UploadId"] for upload in answer.get("Uploads", []) if upload["Key"] == key]


async def abort_behind(resources: WebContext, upload: dict[str, Any]) -> None:
    """Abort an upload in storage without the portal's knowledge."""
    name = await multipart_id(resources, upload["key"])
    assert name is not None
    await resources.storage.multiparts.abort(upload["key"], name)
