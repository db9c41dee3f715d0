"""A small client of the portal's public JSON API: `portal publish`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import click

CHUNK_BYTES = 256 * 1024
POLL_INTERVAL_S = 1.0
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30)
# An upload takes as long as it takes, but may not stand still.
UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
ATTEMPTS = 5
CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
}


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is said of the video. Categories are names or ids, as typed."""

    title: str
    description: str
    categories: tuple[str, ...]
    tags: str


async def publish_file(file: Path, metadata: Metadata, *, portal_url: str, wait: bool) -> None:
    """Publish a file and print its playback address, or its id when not waiting.

    Raises `click.ClickException` with the portal's own words for what went wrong.
    """
    content_type = CONTENT_TYPES.get(file.suffix.lower())
    if content_type is None:
        known = ", ".join(CONTENT_TYPES)
        raise click.ClickException(f"{file.name}: only {known} files can be published.")
    async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
        api = _Api(session, portal_url)
        category_ids = await _category_ids(api, metadata.categories)
        upload = await api.call(
            "POST", "/api/videos/presign", {"fileName": file.name, "contentType": content_type}
        )
        await _put(session, file, upload["uploadUrl"], content_type)
        video = await api.call(
            "POST",
            "/api/videos",
            {
                "title": metadata.title,
                "description": metadata.description,
                "categoryIds": category_ids,
                "tags": metadata.tags,
                "fileName": file.name,
                "key": upload["key"],
            },
        )
        click.echo(f"Created {portal_url}/videos/{video['id']}", err=True)
        click.echo(await _playback_url(api, video["id"]) if wait else video["id"])


class _Api:
    """The portal's JSON endpoints, with retries: every one of them may safely be repeated."""

    def __init__(self, session: aiohttp.ClientSession, portal_url: str) -> None:
        self._session = session
        self._portal_url = portal_url

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._call(method, path, body)
            except (aiohttp.ClientConnectionError, TimeoutError, _TryLater) as exc:
                if attempt == ATTEMPTS:
                    raise click.ClickException(f"{self._portal_url}: {exc}") from exc
            await asyncio.sleep(2 ** (attempt - 1))
        raise AssertionError("unreachable")

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        async with self._session.request(method, self._portal_url + path, json=body) as response:
            answer = await _json_of(response)
            if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
                raise _TryLater(answer.get("detail", "temporarily unavailable"))
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise click.ClickException(_explanation(response.status, answer))
            return answer


class _TryLater(Exception):
    """The portal asks to try again later."""


async def _json_of(response: aiohttp.ClientResponse) -> Any:
    with suppress(aiohttp.ContentTypeError, ValueError):
        return await response.json(content_type=None)
    return {}


def _explanation(status: int, problem: dict[str, Any]) -> str:
    lines = [problem.get("detail", f"The portal answered with status {status}.")]
    lines += [f"  {fault['pointer']}: {fault['message']}" for fault in problem.get("errors", [])]
    return "\n".join(lines)


async def _category_ids(api: _Api, wanted: tuple[str, ...]) -> list[int]:
    known = (await api.call("GET", "/api/categories"))["categories"]
    by_name = {category["name"].casefold(): category["id"] for category in known}
    by_id = {str(category["id"]): category["id"] for category in known}
    ids = []
    for name in wanted:
        found = by_id.get(name) or by_name.get(name.casefold())
        if found is None:
            names = "\n".join(f"  {category['id']:>3}  {category['name']}" for category in known)
            raise click.ClickException(f"There is no category {name!r}. Choose one of:\n{names}")
        ids.append(found)
    return ids


async def _put(
    session: aiohttp.ClientSession, file: Path, upload_url: str, content_type: str
) -> None:
    size_bytes = (await asyncio.to_thread(file.stat)).st_size
    with click.progressbar(length=size_bytes, label="Uploading", file=sys.stderr) as bar:

        async def chunks() -> AsyncIterator[bytes]:
            with file.open("rb") as source:
                while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                    yield chunk
                    bar.update(len(chunk))

        headers = {"Content-Type": content_type, "Content-Length": str(size_bytes)}
        try:
            async with session.put(
                upload_url, data=chunks(), headers=headers, timeout=UPLOAD_TIMEOUT
            ) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise click.ClickException(f"Storage refused the file ({response.status}).")
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise click.ClickException(f"The upload broke off: {exc}. Try again.") from exc


async def _playback_url(api: _Api, video_id: str) -> str:
    click.echo("Converting…", err=True)
    while True:
        video = await api.call("GET", f"/api/videos/{video_id}")
        if video["status"] == "ready":
            address: str = video["playbackUrl"]
            return address
        if video["status"] == "failed":
            raise click.ClickException("The video could not be converted; its page says why.")
        await asyncio.sleep(POLL_INTERVAL_S)
