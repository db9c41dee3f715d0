"""Multipart uploads of files to a portal's storage.

Parts are retried separately: after a failure only missing parts are sent. Memory holds a few small
chunks, whatever the size of the file.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp
from yarl import URL

from portal.client import calls
from portal.client.calls import Api, PortalFailure, PortalRefused, PortalUnreachable
from portal.concurrency import task_group
from portal.retry import retry

MIB = 1024**2
CHUNK_BYTES = 256 * 1024
PARTS_AT_ONCE = 4
# Limit on parts that are sent out of order, which some servers buffer in memory.
WINDOW_BYTES = 192 * MIB
# Lowest speed of a part; a slower request is cancelled and sent again.
SLOWEST_BYTES_PER_S = 32 * 1024
PUT_FAILURES = (aiohttp.ClientError, TimeoutError)
# Error codes after which the upload is started again with the parts that storage has then.
START_AGAIN_CODES = frozenset({"upload_gone", "upload_not_started", "parts_missing"})

# Callback with the number of bytes that have arrived, and the size of the file.
OnSent = Callable[[int, int], None]


def ignore(sent_bytes: int, size_bytes: int) -> None:
    """Do nothing: the default callback."""


async def send_file(api: Api, file: Path, key: str, *, on_sent: OnSent = ignore) -> None:
    """Send a file to a key from POST /api/videos/presign. Raises `PortalFailure`."""
    size_bytes = (await asyncio.to_thread(file.stat)).st_size
    for _ in range(calls.ATTEMPTS):
        upload = await api.call("POST", "/api/uploads", {"key": key, "sizeBytes": size_bytes})
        try:
            if upload["state"] != "stored":
                await _send_missing(api, file, upload, size_bytes, on_sent)
                await api.call("POST", f"/api/uploads/{upload['uploadId']}/complete")
        except PortalRefused as exc:
            if exc.code not in START_AGAIN_CODES:
                raise
            continue
        on_sent(size_bytes, size_bytes)
        return
    raise PortalFailure("Storage has lost uploaded parts several times. Try again later.")


async def _send_missing(
    api: Api, file: Path, upload: dict[str, Any], file_bytes: int, on_sent: OnSent
) -> None:
    """Send the parts that storage doesn't have, several at a time, in ascending order."""
    part_bytes: int = upload["partSizeBytes"]
    arrived = {part["partNumber"]: part["sizeBytes"] for part in upload["parts"]}
    missing = [number for number in range(1, upload["partCount"] + 1) if number not in arrived]
    slots = asyncio.Semaphore(PARTS_AT_ONCE)

    async def send(number: int) -> None:
        begin = (number - 1) * part_bytes
        size_bytes = min(part_bytes, file_bytes - begin)

        def count(sent_bytes: int) -> None:
            arrived[number] = sent_bytes
            on_sent(sum(arrived.values()), file_bytes)

        async def put() -> None:
            # Each attempt gets a new URL, because the last one may have expired.
            path = f"/api/uploads/{upload['uploadId']}/parts/{number}"
            address = (await api.call("POST", path))["uploadUrl"]
            await _put_part(api.session, address, file, begin, size_bytes, count)

        async with slots:
            try:
                await retry(put, on=PUT_FAILURES, backoff=calls.BACKOFF, attempts=calls.ATTEMPTS)
            except PUT_FAILURES as exc:
                failure = str(exc) or "no response in time"
                raise PortalUnreachable(
                    f"Part {number} could not be sent: {failure}. Try again."
                ) from exc

    window = max(1, WINDOW_BYTES // part_bytes)
    for first in range(0, len(missing), window):
        async with task_group() as tasks:
            for number in missing[first : first + window]:
                tasks.create_task(send(number))


async def _put_part(
    session: aiohttp.ClientSession,
    address: str,
    file: Path,
    begin: int,
    size_bytes: int,
    count: Callable[[int], None],
) -> None:
    timeout = aiohttp.ClientTimeout(total=60 + size_bytes / SLOWEST_BYTES_PER_S)
    # aiohttp doesn't close its source if the connection breaks.
    with file.open("rb") as source:
        source.seek(begin)
        async with session.put(
            URL(address, encoded=True),
            data=_read(source, size_bytes, count),
            headers={"Content-Length": str(size_bytes)},
            timeout=timeout,
        ) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                # The upload no longer exists.
                raise PortalRefused(response.status, {"code": "upload_gone"})
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise aiohttp.ClientError(f"storage responded with status {response.status}")


async def _read(
    source: BinaryIO, size_bytes: int, count: Callable[[int], None]
) -> AsyncIterator[bytes]:
    sent_bytes = 0
    while sent_bytes < size_bytes:
        chunk_bytes = min(CHUNK_BYTES, size_bytes - sent_bytes)
        chunk = await asyncio.to_thread(source.read, chunk_bytes)
        if not chunk:
            raise OSError("the file was truncated during the upload")
        yield chunk
        sent_bytes += len(chunk)
        count(sent_bytes)
