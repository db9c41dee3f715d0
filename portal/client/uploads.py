"""Sends a file to storage: small ones at once, large ones in parts that are retried one by one.

Holds a few small chunks in memory, whatever the file's size. What has arrived stays arrived until
the end of the run: after a failure only the missing parts are sent.
"""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp
import click
from yarl import URL

from portal.client.calls import ATTEMPTS, BACKOFF, Api, Refused
from portal.retry import retry

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
                await _PartSender(api, file, upload, bar).send_missing()
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


@dataclass(frozen=True, slots=True)
class _Part:
    number: int
    offset_bytes: int
    size_bytes: int


class _PartSender:
    """Sends what is missing of one upload, several parts at once, lower numbers first."""

    def __init__(self, api: Api, file: Path, upload: dict[str, Any], bar: Any) -> None:
        self._api = api
        self._file = file
        self._upload_id: str = upload["uploadId"]
        self._bar = bar
        part_bytes: int = upload["partSizeBytes"]
        there = {part["partNumber"]: part["sizeBytes"] for part in upload["parts"]}
        self._waiting = deque(
            _Part(number, begin, min(part_bytes, bar.length - begin))
            for number, begin in enumerate(range(0, bar.length, part_bytes), start=1)
            if number not in there
        )
        self._under_way: set[int] = set()
        self._window = max(1, WINDOW_BYTES // part_bytes)
        self._changed = asyncio.Condition()
        bar.update(sum(there.values()) - bar.pos)

    async def send_missing(self) -> None:
        """Send all parts, or raise what became of the first that cannot be sent."""
        senders = [asyncio.create_task(self._send_some()) for _ in range(PARTS_AT_ONCE)]
        try:
            await asyncio.gather(*senders)
        finally:
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)

    async def _send_some(self) -> None:
        while (part := await self._next()) is not None:
            await self._send(part)
            self._bar.update(part.size_bytes)
            async with self._changed:
                self._under_way.discard(part.number)
                self._changed.notify_all()

    async def _next(self) -> _Part | None:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._waiting or self._fits_window())
            if not self._waiting:
                return None
            part = self._waiting.popleft()
            self._under_way.add(part.number)
            return part

    def _fits_window(self) -> bool:
        number = self._waiting[0].number
        return number - min(self._under_way, default=number) < self._window

    async def _send(self, part: _Part) -> None:
        send = partial(self._try_to_send, part)
        try:
            await retry(send, on=_PUT_FAILURES, backoff=BACKOFF, attempts=ATTEMPTS)
        except _PUT_FAILURES as exc:
            failure = str(exc) or "no answer in time"
            raise click.ClickException(
                f"Part {part.number} could not be sent: {failure}. Try again."
            ) from exc

    async def _try_to_send(self, part: _Part) -> None:
        path = f"/api/uploads/{self._upload_id}/parts/{part.number}"
        # A new address each time: the old one may have expired.
        address = (await self._api.call("POST", path))["uploadUrl"]
        status = await self._put(part, address)
        if status == HTTPStatus.NOT_FOUND:
            # Storage no longer knows the upload.
            raise Refused(status, {"code": "upload_gone"})
        if status >= HTTPStatus.BAD_REQUEST:
            raise _NotStored(f"storage answered {status}")

    async def _put(self, part: _Part, address: str) -> int:
        timeout = aiohttp.ClientTimeout(total=60 + part.size_bytes / SLOWEST_BYTES_PER_S)
        # Opened here: what aiohttp reads from is not closed by it when the line breaks.
        with self._file.open("rb") as source:
            source.seek(part.offset_bytes)
            async with self._api.session.put(
                URL(address, encoded=True),
                data=_read(source, part.size_bytes),
                headers={"Content-Length": str(part.size_bytes)},
                timeout=timeout,
            ) as response:
                return response.status


async def _read(source: BinaryIO, size_bytes: int) -> AsyncIterator[bytes]:
    while size_bytes > 0:
        chunk = await asyncio.to_thread(source.read, min(CHUNK_BYTES, size_bytes))
        if not chunk:
            raise OSError("the file became shorter while it was sent")
        size_bytes -= len(chunk)
        yield chunk
