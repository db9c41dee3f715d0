"""Sends a file to a portal's storage.

A small file is sent to storage at once, a large one in parts that are retried one by one. What has
arrived stays arrived until the end of the run: after a failure only the missing parts are sent.
Holds a few small chunks in memory, whatever the file's size.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp
from yarl import URL

from portal.client.calls import (
    ATTEMPTS,
    BACKOFF,
    Api,
    PortalFailure,
    PortalRefused,
    PortalUnreachable,
)
from portal.concurrency import task_group
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
PUT_FAILURES = (aiohttp.ClientError, TimeoutError)
# After these the upload is started again, with what storage has of it then.
START_AGAIN_CODES = frozenset({"upload_gone", "upload_not_started", "parts_missing"})


# Is told how many bytes have arrived, of how many.
OnSent = Callable[[int, int], None]


def ignore(sent_bytes: int, size_bytes: int) -> None:
    """For who does not ask."""


@dataclass
class _Meter:
    """How much of a file has arrived."""

    size_bytes: int
    on_sent: OnSent
    sent_bytes: int = 0

    def set(self, sent_bytes: int) -> None:
        self.sent_bytes = sent_bytes
        self.on_sent(sent_bytes, self.size_bytes)

    def add(self, sent_bytes: int) -> None:
        self.set(self.sent_bytes + sent_bytes)


async def send_file(
    api: Api,
    file: Path,
    upload: dict[str, str],
    *,
    content_type: str,
    on_sent: OnSent = ignore,
) -> None:
    """Send a file to the place that POST /api/videos/presign named. Raises `PortalFailure`."""
    meter = _Meter((await asyncio.to_thread(file.stat)).st_size, on_sent)
    if meter.size_bytes <= WHOLE_FILE_BYTES:
        await _send_whole(api, file, upload["uploadUrl"], content_type, meter)
    else:
        await _send_in_parts(api, file, upload["key"], meter)


async def _send_whole(
    api: Api, file: Path, upload_url: str, content_type: str, meter: _Meter
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        async for chunk in _read(source, meter.size_bytes):
            yield chunk
            meter.add(len(chunk))

    headers = {"Content-Type": content_type, "Content-Length": str(meter.size_bytes)}
    try:
        with file.open("rb") as source:
            async with api.session.put(
                upload_url, data=chunks(), headers=headers, timeout=WHOLE_FILE_TIMEOUT
            ) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    raise PortalFailure(f"Storage refused the file ({response.status}).")
    except PUT_FAILURES as exc:
        raise PortalUnreachable(f"The upload broke off: {exc}. Try again.") from exc


async def _send_in_parts(api: Api, file: Path, key: str, meter: _Meter) -> None:
    wanted = {"key": key, "sizeBytes": meter.size_bytes}
    for _ in range(ATTEMPTS):
        upload = await api.call("POST", "/api/uploads", wanted)
        try:
            if upload["state"] != "stored":
                await _send_missing(api, file, upload, meter)
                await api.call("POST", f"/api/uploads/{upload['uploadId']}/complete")
        except PortalRefused as exc:
            if exc.code not in START_AGAIN_CODES:
                raise
            continue
        meter.set(meter.size_bytes)
        return
    raise PortalFailure("Storage keeps losing what is uploaded. Try again later.")


async def _send_missing(api: Api, file: Path, upload: dict[str, Any], meter: _Meter) -> None:
    """Send the parts that storage doesn't have, several at once, lower numbers first."""
    part_bytes: int = upload["partSizeBytes"]
    there = {part["partNumber"]: part["sizeBytes"] for part in upload["parts"]}
    meter.set(sum(there.values()))
    missing = [number for number in range(1, upload["partCount"] + 1) if number not in there]
    slots = asyncio.Semaphore(PARTS_AT_ONCE)

    async def send(number: int) -> None:
        begin = (number - 1) * part_bytes
        size_bytes = min(part_bytes, meter.size_bytes - begin)

        async def put() -> None:
            # A new address each time: the old one may have expired.
            path = f"/api/uploads/{upload['uploadId']}/parts/{number}"
            address = (await api.call("POST", path))["uploadUrl"]
            await _put_part(api.session, address, file, begin, size_bytes)

        async with slots:
            try:
                await retry(put, on=PUT_FAILURES, backoff=BACKOFF, attempts=ATTEMPTS)
            except PUT_FAILURES as exc:
                failure = str(exc) or "no answer in time"
                words = f"Part {number} could not be sent: {failure}. Try again."
                raise PortalUnreachable(words) from exc
        meter.add(size_bytes)

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
                raise PortalRefused(response.status, {"code": "upload_gone"})
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise aiohttp.ClientError(f"storage answered {response.status}")


async def _read(source: BinaryIO, size_bytes: int) -> AsyncIterator[bytes]:
    while size_bytes > 0:
        chunk = await asyncio.to_thread(source.read, min(CHUNK_BYTES, size_bytes))
        if not chunk:
            raise OSError("the file became shorter while it was sent")
        size_bytes -= len(chunk)
        yield chunk
