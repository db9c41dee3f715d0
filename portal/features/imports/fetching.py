"""Fetching an import's file from another server into storage, part by part.

A fetch that broke off resumes after the last whole part, if the server still has the same version
of the file and answers ranges of it; otherwise it starts over. While a fetch waits, it checks every
`BEAT_S` whether it may go on: it ends when its import was cancelled or taken over by another run,
and when the server is too slow. A slow fetch gives its slot to other imports that wait.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from http import HTTPStatus
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urljoin

import aiohttp

from portal import __version__, errors
from portal.config import Config
from portal.database.connection import server_time
from portal.database.models import Upload
from portal.database.work_models import Import
from portal.events.outgoing import RequestFailed, address_fault, failure_words, open_session
from portal.locale.messages import Message, numeral
from portal.queue.jobs import RunAgain
from portal.queue.priorities import slow_import_priority
from portal.retry import Backoff
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, StorageCondition
from portal.storage.objects import MAX_FILE_BYTES, MAX_UNKNOWN_BYTES, part_size_bytes, size_of_part
from portal.uploads import service as uploads
from portal.uploads.quotas import Quota
from portal.videos import metadata

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

TIMEOUT_S = 6 * 3600
IDLE_S = 30
# Average rate below which a server is too slow, once its patience is used up: `PATIENCE_S` without
# a byte, longer for a server that sends some. Bytes earn patience back.
LEAST_BYTES_PER_S = 32_000
PATIENCE_S = 60.0
# A fetch that has used up this much of its patience gives way to imports that wait.
GIVE_WAY_AFTER_S = 3.0
BEAT_S = 1.0
MAX_REDIRECTS = 5
# Failures in a row, without a whole part in between.
TRIES = 5
BACKOFF = Backoff(first_s=1.0, cap_s=30.0)
# Raised for an overloaded server, an answer that ends too early, and addresses and headers that
# are not valid.
BROKEN_OFF = (RequestFailed, aiohttp.ClientError, OSError, EOFError, ValueError)
# Raised when storage has lost the parts, as the embedded server does at a restart.
LOST = (StorageCondition, errors.UploadGone, errors.UploadNotStarted, errors.PartsMissing)
# Box types that an MP4 or QuickTime file may begin with; four bytes of size stand before them.
FIRST_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"})
TYPES = {
    extension: content_type
    for content_type, extensions in metadata.EXTENSIONS.items()
    for extension in extensions
}
OTHER_NAME = "video.mp4"


class Superseded(Exception):
    """The import was cancelled, or another run of its job goes on with it."""


class GivesWay(RunAgain):
    """The fetch is slow, and other imports wait for its slot. It resumes after them."""

    def next_priority(self, priority: int) -> int:
        """Return a priority behind imports that did not prove slow."""
        return slow_import_priority(priority)


class ImportUnreachable(errors.PortalError, status=422, code="import_unreachable"):
    """The file could not be fetched from its address. Check the address, then import it again."""


class ImportTooSlow(errors.PortalError, status=422, code="import_too_slow"):
    """The server sends the file too slowly. Import it from a faster server, or upload it."""


class ImportNotVideo(errors.PortalError, status=422, code="import_not_video"):
    """The address doesn't lead to an MP4 or QuickTime file."""


class ImportTooLarge(errors.PortalError, status=422, code="import_too_large"):
    """The file is larger than this portal takes. Import a smaller one."""


async def record(row: Import, **values: Any) -> None:
    """Write column values to the database and to `row`.

    Raises `Superseded`, and changes neither, if the import was cancelled or another job runs it.
    """
    values["active_at"] = await server_time()
    if not await Import.filter(id=row.id, active_at=row.active_at).update(**values):
        raise Superseded
    row.update_from_dict(values)


class Fetch:
    """Run of an import's fetch. `is_overtaken` tells whether other imports wait for its slot.

    `run` raises `Superseded`, `GivesWay`, or an error that ends the import.
    """

    def __init__(
        self,
        row: Import,
        *,
        config: Config,
        storage: Storage,
        is_overtaken: Callable[[], Awaitable[bool]],
    ) -> None:
        self._row = row
        self._config = config
        self._storage = storage
        self._is_overtaken = is_overtaken
        self._patience_s = PATIENCE_S
        self._next_beat = monotonic() + BEAT_S

    async def run(self) -> None:
        """Fetch the missing parts and complete the upload; a broken connection is tried again."""
        failures = 0
        while True:
            before = self._row.received_bytes
            try:
                if self._row.received_bytes != self._row.whole_bytes:
                    await self._connect_and_receive()
                completion = uploads.complete(
                    self._row.upload_id, storage=self._storage, size_bytes=self._row.whole_bytes
                )
                await self._wait(completion)
                return
            except (*BROKEN_OFF, *LOST) as exc:
                words: str = Message("Storage lost the parts that had arrived.")
                if isinstance(exc, LOST):
                    await record(self._row, received_bytes=0)
                else:
                    words = failure_words(exc)
                failures = 1 if self._row.received_bytes > before else failures + 1
                if failures == TRIES:
                    raise ImportUnreachable(
                        Message("The file could not be fetched. %(reason)s", reason=words)
                    ) from exc
            await self._wait(asyncio.sleep(BACKOFF.pause_s(failures)))

    async def _connect_and_receive(self) -> None:
        now = await server_time()
        spent_s = (now - (self._row.started_at or now)).total_seconds()
        if spent_s >= TIMEOUT_S:
            raise ImportUnreachable(
                Message("The file did not arrive within %(hours)s hours.", hours=TIMEOUT_S // 3600)
            )
        async with (
            open_session(
                networks=self._config.outgoing_networks,
                timeout_s=TIMEOUT_S - spent_s,
                idle_s=IDLE_S,
            ) as session,
            await self._wait(self._open(session), arrived=bytearray()) as response,
        ):
            await self._receive(response)

    async def _open(self, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
        """Return the answer that redirects lead to; each address is checked as the first one."""
        headers = {"Accept-Encoding": "identity", "User-Agent": f"portal/{__version__}"}
        if self._row.received_bytes and self._row.validator and self._row.whole_bytes:
            headers |= {
                "Range": f"bytes={self._row.received_bytes}-",
                "If-Range": self._row.validator,
            }
        url = self._row.url
        for _ in range(MAX_REDIRECTS + 1):
            if fault := address_fault(url, self._config):
                raise ImportUnreachable(
                    Message(
                        "The address leads to %(address)s. %(fault)s",
                        address=url[:100],
                        fault=fault,
                    )
                )
            response = await session.get(url, headers=headers, allow_redirects=False)
            status = response.status
            if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                return response
            response.release()
            if status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS:
                raise RequestFailed(_status_words(status))
            location = response.headers.get("Location")
            if not 300 <= status < 400 or location is None:
                raise ImportUnreachable(_status_words(status))
            url = urljoin(url, location)
        raise ImportUnreachable(
            Message("There are more than %(limit)s redirects.", limit=MAX_REDIRECTS)
        )

    async def _receive(self, response: aiohttp.ClientResponse) -> None:
        """Store the body of an answer, part by part."""
        if response.status == HTTPStatus.OK:
            await self._start_over(response)
        whole_bytes = self._row.whole_bytes or MAX_UNKNOWN_BYTES + 1
        content_range = f"bytes {self._row.received_bytes}-{whole_bytes - 1}/{whole_bytes}"
        is_answered = response.headers.get("Content-Range") == content_range
        if response.status != HTTPStatus.OK and not is_answered:
            raise ImportUnreachable(
                Message("The server sent another part of the file than was requested.")
            )
        upload = await Upload.get_or_none(id=self._row.upload_id)
        if upload is None or upload.multipart_id is None:
            raise MultipartMissing(self._row.upload.key)
        while self._row.received_bytes < whole_bytes:
            number = self._row.received_bytes // part_size_bytes(whole_bytes) + 1
            part_bytes = size_of_part(number, whole_bytes)
            part = await self._read_part(response, part_bytes)
            if number == 1 and part[4:8] not in FIRST_BOXES:
                raise ImportNotVideo
            received_bytes = self._row.received_bytes + len(part)
            if len(part) < part_bytes:
                whole_bytes = received_bytes
            if not self._row.whole_bytes:
                await self._grow(received_bytes)
            if part:
                put = self._storage.multiparts.put_part
                await self._wait(put(self._row.upload.key, upload.multipart_id, number, part))
            await record(self._row, received_bytes=received_bytes)
        await record(self._row, whole_bytes=whole_bytes)

    async def _read_part(self, response: aiohttp.ClientResponse, size_bytes: int) -> bytes:
        """Return the next part of a body; less of it at the end of one of unknown size."""
        arrived = bytearray()

        async def read() -> None:
            while len(arrived) < size_bytes:
                chunk = await response.content.read(size_bytes - len(arrived))
                if not chunk:
                    return
                arrived.extend(chunk)

        await self._wait(read(), arrived=arrived)
        if len(arrived) < size_bytes and self._row.whole_bytes:
            raise EOFError
        return bytes(arrived)

    async def _start_over(self, response: aiohttp.ClientResponse) -> None:
        """Start the upload again, for the whole file."""
        size_bytes = response.content_length
        if size_bytes is None and response.headers.get("Transfer-Encoding") != "chunked":
            raise ImportUnreachable(
                Message("The server doesn't tell the file's size (Content-Length).")
            )
        require_size(size_bytes or 1, MAX_FILE_BYTES, self._config)
        validator = response.headers.get("ETag", "")
        # Parts can't be put together by a weak one (RFC 9110, section 13.1.5).
        if not validator.startswith('"'):
            validator = response.headers.get("Last-Modified", "")
        await record(self._row, validator=validator, whole_bytes=size_bytes, received_bytes=0)
        await uploads.remove_parts(self._row.upload_id, storage=self._storage)
        await uploads.start(
            self._row.upload_id,
            size_bytes,
            storage=self._storage,
            quota=Quota.of(self._config),
        )
        disposition = response.content_disposition
        names = [disposition.filename if disposition else None, self._row.upload.file_name]
        self._row.upload.file_name = file_name_of(names)
        await self._row.upload.save(update_fields=["file_name"])

    async def _grow(self, received_bytes: int) -> None:
        """Announce the size so far of a file whose whole size is unknown."""
        require_size(received_bytes, MAX_UNKNOWN_BYTES, self._config)
        upload = self._row.upload
        quota = Quota.of(self._config)
        await uploads.grow(upload.id, received_bytes, owner_id=upload.owner_id, quota=quota)

    async def _wait(
        self, work: Coroutine[Any, Any, Result], *, arrived: bytearray | None = None
    ) -> Result:
        """Return the result of work, and beat meanwhile; the work ends when a beat fails.

        Work that waits for the server uses up patience, and bytes in `arrived` earn it back.
        """
        # No task group: a failure of the work would cancel a beat that may be updating the row.
        task = asyncio.create_task(work)
        counted_bytes = 0
        try:
            while not task.done():
                begun = monotonic()
                await asyncio.wait({task}, timeout=max(0.0, self._next_beat - begun))
                if arrived is not None:
                    earned_s = (len(arrived) - counted_bytes) / LEAST_BYTES_PER_S
                    counted_bytes = len(arrived)
                    left_s = self._patience_s - (monotonic() - begun) + earned_s
                    self._patience_s = min(PATIENCE_S, left_s)
                if monotonic() >= self._next_beat:
                    await self._beat()
            return await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _beat(self) -> None:
        """Record that the fetch is under way, and end it if it may not go on."""
        self._next_beat = monotonic() + BEAT_S
        await record(self._row)
        if self._patience_s <= 0:
            raise ImportTooSlow(
                Message(
                    "The server sent less than %(rate)s kB a second. "
                    "Import the file from a faster server, or upload it.",
                    rate=LEAST_BYTES_PER_S // 1000,
                )
            )
        is_slow = self._patience_s < PATIENCE_S - GIVE_WAY_AFTER_S
        if is_slow and await self._is_overtaken():
            raise GivesWay


def _status_words(status: int) -> Message:
    return Message("The server answered with the status %(status)s.", status=status)


def require_size(size_bytes: int, max_bytes: int, config: Config) -> None:
    """Raise `ImportTooLarge` for a file of more than `max_bytes`, or than the portal takes."""
    limit = min(config.max_source_bytes or max_bytes, max_bytes)
    if size_bytes > limit:
        raise ImportTooLarge(
            Message(
                "The file has %(size)s bytes; this portal takes %(limit)s.",
                size=numeral(size_bytes),
                limit=numeral(limit),
            )
        )


def extension_of(name: str) -> str:
    """Return the part of a file name after its last dot, in lower case."""
    return name.rpartition(".")[2].lower()


def file_name_of(names: Iterable[str | None]) -> str:
    """Return the first of these names that a video's file may have."""
    for name in names:
        if not name or len(name) > metadata.MAX_FILE_NAME_LENGTH or extension_of(name) not in TYPES:
            continue
        if not (metadata.file_name_fault(name) or metadata.text_fault(name)):
            return name
    return OTHER_NAME
