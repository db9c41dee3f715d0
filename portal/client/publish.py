"""Publishes a file by the portal's public JSON API: `portal publish`.

A small file is sent to storage at once, a large one in parts that are retried one by one. What has
arrived stays arrived until the end of the run: after a failure only the missing parts are sent.
Holds a few small chunks in memory, whatever the file's size.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp
import click
from yarl import URL

from portal.client.calls import ATTEMPTS, BACKOFF, REQUEST_TIMEOUT, Api, Refused
from portal.concurrency import task_group
from portal.retry import retry

POLL_INTERVAL_S = 1.0
MIB = 1024**2
CHUNK_BYTES = 256 * 1024
# Larger files go in parts.
WHOLE_FILE_BYTES = 64 * MIB
PARTS_AT_ONCE = 4
# Some servers keep parts in memory that come before an earlier one; they take no more than this.
WINDOW_BYTES = 192 * MIB
# A file sent at once takes as long as it takes; a part may be given up and sent again.
WHOLE_FILE_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=300)
SLOWEST_BYTES_PER_S = 32 * 1024
# After these the upload is started again, with what storage has of it then.
START_AGAIN_CODES = frozenset({"upload_gone", "upload_not_started", "parts_missing"})
CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
}


async def publish_file(
    file: Path,
    texts: Mapping[str, str],
    *,
    categories: Sequence[str],
    portal_url: str,
    token: str = "",
    wait: bool,
) -> None:
    """Publish a file and print its playback address, or its id when not waiting.

    `texts` are the video's title, description and tags; `categories` names or ids, as typed.
    `token` is an API token, for a portal with accounts.
    Raises `click.ClickException` with the portal's own words for what went wrong.
    """
    content_type = CONTENT_TYPES.get(file.suffix.lower())
    if content_type is None:
        known = ", ".join(CONTENT_TYPES)
        raise click.ClickException(f"{file.name}: only {known} files can be published.")
    async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
        api = Api(session, portal_url, token=token)
        category_ids = await _category_ids(api, categories)
        wanted = {"fileName": file.name, "contentType": content_type}
        upload = await api.call("POST", "/api/videos/presign", wanted)
        await send_file(api, file, upload, content_type=content_type)
        named = {"categoryIds": category_ids, "fileName": file.name, "key": upload["key"]}
        video = await api.call("POST", "/api/videos", {**texts, **named})
        click.echo(f"Created {api.shown_url}/videos/{video['id']}", err=True)
        click.echo(await _playback_url(api, video["id"]) if wait else video["id"])


async def _category_ids(api: Api, wanted: Sequence[str]) -> list[int]:
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


async def _playback_url(api: Api, video_id: str) -> str:
    click.echo("Converting…", err=True)
    while True:
        video = await api.call("GET", f"/api/videos/{video_id}")
        if video["status"] == "ready":
            return str(video["playbackUrl"])
        if video["status"] == "failed":
            raise click.ClickException("The video could not be converted; its page says why.")
        await asyncio.sleep(POLL_INTERVAL_S)


async def send_file(api: Api, file: Path, upload: dict[str, str], *, content_type: str) -> None:
    """Send a file to the place that POST /api/videos/presign named."""
    size_bytes = (await asyncio.to_thread(file.stat)).st_size
    with click.progressbar(length=size_bytes, label="Uploading", file=sys.stderr) as bar:
        if size_bytes <= WHOLE_FILE_BYTES:
            await _send_whole(api, file, upload["uploadUrl"], content_type, bar)
        else:
            await _send_in_parts(api, file, upload["key"], size_bytes, bar)


async def _send_whole(api: Api, file: Path, upload_url: str, content_type: str, bar: Any) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in _read(source, bar.length):
            yield chunk
            bar.update(len(chunk))

    headers = {"Content-Type": content_type, "Content-Length": str(bar.length)}
    try:
        with file.open("rb") as source:
            async with api.session.put(
                upload_url, data=chunks(), headers=headers, timeout=WHOLE_FILE_TIMEOUT
            ) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise click.ClickException(f"Storage refused the file ({response.status}).")
    except (aiohttp.ClientError, TimeoutError) as exc:
        raise click.ClickException(f"The upload broke off: {exc}. Try again.") from exc


async def _send_in_parts(api: Api, file: Path, key: str, size_bytes: int, bar: Any) -> None:
    for _ in range(ATTEMPTS):
        upload = await api.call("POST", "/api/uploads", {"key": key, "sizeBytes": size_bytes})
        try:
            if upload["state"] != "stored":
                await _send_missing(api, file, upload, bar)
                await api.call("POST", f"/api/uploads/{upload['uploadId']}/complete")
        except Refused as exc:
            if exc.code not in START_AGAIN_CODES:
                raise
            continue
        bar.update(size_bytes - bar.pos)
        return
    raise click.ClickException("Storage keeps losing what is uploaded. Try again later.")


class _NotStored(Exception):
    """Storage refused a part."""


_PUT_FAILURES = (aiohttp.ClientError, TimeoutError, _NotStored)


async def _send_missing(api: Api, file: Path, upload: dict[str, Any], bar: Any) -> None:
    """Send the parts that storage doesn't have, several at once, lower numbers first."""
    part_bytes: int = upload["partSizeBytes"]
    there = {part["partNumber"]: part["sizeBytes"] for part in upload["parts"]}
    bar.update(sum(there.values()) - bar.pos)
    missing = [number for number in range(1, upload["partCount"] + 1) if number not in there]
    slots = asyncio.Semaphore(PARTS_AT_ONCE)

    async def send(number: int) -> None:
        begin = (number - 1) * part_bytes
        size_bytes = min(part_bytes, bar.length - begin)

        async def put() -> None:
            # A new address each time: the old one may have expired.
            path = f"/api/uploads/{upload['uploadId']}/parts/{number}"
            address = (await api.call("POST", path))["uploadUrl"]
            await _put_part(api.session, address, file, begin, size_bytes)

        async with slots:
            try:
                await retry(put, on=_PUT_FAILURES, backoff=BACKOFF, attempts=ATTEMPTS)
            except _PUT_FAILURES as exc:
                failure = str(exc) or "no answer in time"
                words = f"Part {number} could not be sent: {failure}. Try again."
                raise click.ClickException(words) from exc
        bar.update(size_bytes)

    window = max(1, WINDOW_BYTES // part_bytes)
    for first in range(0, len(missing), window):
        async with task_group() as tasks:
            for number in missing[first : first + window]:
                tasks.create_task(send(number))


async def _put_part(
    session: aiohttp.ClientSession, address: str, file: Path, begin: int, size_bytes: int
) -> None:
    timeout = aiohttp.ClientTimeout(total=60 + size_bytes / SLOWEST_BYTES_PER_S)
    # Opened here: what aiohttp reads from is not closed by it when the line breaks.
    with file.open("rb") as source:
        source.seek(begin)
        async with session.put(
            URL(address, encoded=True),
            data=_read(source, size_bytes),
            headers={"Content-Length": str(size_bytes)},
            timeout=timeout,
        ) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                # Storage no longer knows the upload.
                raise Refused(response.status, {"code": "upload_gone"})
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise _NotStored(f"storage answered {response.status}")


async def _read(source: BinaryIO, size_bytes: int) -> AsyncIterator[bytes]:
    while size_bytes > 0:
        chunk = await asyncio.to_thread(source.read, min(CHUNK_BYTES, size_bytes))
        if not chunk:
            raise OSError("the file became shorter while it was sent")
        size_bytes -= len(chunk)
        yield chunk
