"""Calls of an integrator, and checks of the API's responses."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import psycopg
from quart import Response
from quart.typing import TestClientProtocol as Client
from running_portal import until

from portal.config import Config
from portal.web.app import create_app

RAW_FILE = b"the raw bytes of a video"
# An id that no video has.
UNKNOWN_VIDEO_ID = "5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b"
CREATED_MEMBERS = {
    "id",
    "title",
    "description",
    "categoryIds",
    "tags",
    "fileName",
    "storageKey",
    "transcodeJobId",
    "status",
    "sizeBytes",
    "createdAt",
    "updatedAt",
}


@asynccontextmanager
async def app_client(config: Config, **changes: Any) -> AsyncIterator[Client]:
    """Start a separate app with some settings changed, and yield its client."""
    app = create_app(replace(config, **changes))
    async with app.test_app():
        yield app.test_client()


def metadata(key: str, **changes: Any) -> dict[str, Any]:
    """Return the body of a creation: valid, with these changes."""
    return {
        "title": "Harbour at dawn",
        "description": "Filmed from the old crane.",
        "categoryIds": [12, 3],
        "tags": "harbour, morning",
        "fileName": "harbour.mp4",
        "key": key,
        **changes,
    }


async def answered(response: Response, status: int = 200) -> dict[str, Any]:
    """Check the status of a response, and return its JSON."""
    assert response.status_code == status, await response.get_data()
    return await response.get_json()


async def presign(
    client: Client, file_name: str = "harbour.mp4", content_type: str = "video/mp4"
) -> dict[str, str]:
    body = {"fileName": file_name, "contentType": content_type}
    return await answered(await client.post("/api/videos/presign", json=body))


async def put(url: str, data: bytes, *, content_type: str = "video/mp4", **extra: str) -> int:
    """PUT to storage with these additional headers, and return the status."""
    headers = {"Content-Type": content_type, **extra}
    async with (
        aiohttp.ClientSession() as session,
        session.put(url, data=io.BytesIO(data), headers=headers) as response,
    ):
        return response.status


async def uploaded(client: Client, data: bytes = RAW_FILE) -> str:
    """Upload a file, and return its key."""
    upload = await presign(client)
    assert await put(upload["uploadUrl"], data) == 200
    return upload["key"]


async def published(client: Client, **changes: Any) -> dict[str, Any]:
    """Publish a video, and return its creation record."""
    body = metadata(await uploaded(client), **changes)
    return await answered(await client.post("/api/videos", json=body), 201)


async def problem(response: Response, status: int, code: str) -> dict[str, Any]:
    """Check that the response is this problem document, and return it."""
    text = (await response.get_data()).decode()
    assert response.status_code == status, text
    assert response.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(text)
    assert {"type", "title", "status", "detail", "code"} <= set(body)
    assert (body["status"], body["code"]) == (status, code)
    assert body["title"]
    assert body["detail"]
    assert "Traceback" not in text
    return body


async def faults(response: Response) -> dict[str, str]:
    """Return the message for each pointer of a validation problem."""
    body = await problem(response, 422, "validation_failed")
    assert all(set(fault) == {"pointer", "message"} for fault in body["errors"])
    return {fault["pointer"]: fault["message"] for fault in body["errors"]}


async def rows(database_url: str, query: str, *values: Any) -> list[Any]:
    """Return the rows of a query in the test's database."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        return await (await connection.execute(query, values)).fetchall()


async def until_found(database_url: str, query: str, timeout_s: float = 30) -> None:
    """Wait until a query has rows in the test's database."""
    await until(lambda: rows(database_url, query), timeout_s=timeout_s, interval_s=0.05)


async def run_sql(database_url: str, statements: str) -> None:
    """Change the test's database behind the portal's back."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(statements)


async def counts(database_url: str) -> tuple[int, int]:
    """Return the number of videos, and the number of jobs."""
    query = "SELECT (SELECT count(*) FROM videos), (SELECT count(*) FROM procrastinate_jobs)"
    videos, jobs = (await rows(database_url, query))[0]
    return videos, jobs
