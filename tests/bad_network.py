"""A bad network on demand: a TCP proxy between browsers and storage that breaks things.

It reads along just enough HTTP/1.1 to count what was sent: requests with a Content-Length, as
browsers and S3 clients send them. Storage behind it must be told this address as its public one,
since signatures cover the host.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

CHUNK_BYTES = 64 * 1024
HEAD_LIMIT_BYTES = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Sent:
    """One request that began to pass."""

    method: str
    target: str
    length_bytes: int
    body_bytes: int = 0
    status: int = 0
    """The answer's, or 0 if none came back."""

    @property
    def part(self) -> int | None:
        """Number of the part that a multipart PUT carries."""
        numbers = parse_qs(urlsplit(self.target).query).get("partNumber")
        return int(numbers[0]) if numbers else None

    @property
    def key(self) -> str:
        return urlsplit(self.target).path.split("/", 2)[-1]


class _Reader:
    """Follows the requests on one connection."""

    def __init__(self, log: list[Sent]) -> None:
        self._log = log
        self._head = b""
        self._left_bytes = 0
        self._unanswered: list[Sent] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._unanswered)

    def request_bytes(self, data: bytes) -> int:
        """Take note of what a client sends; answers how much of it is a PUT's body."""
        body_bytes = 0
        while data:
            if self._left_bytes:
                taken = data[: self._left_bytes]
                self._left_bytes -= len(taken)
                sent = self._log_entry
                sent.body_bytes += len(taken)
                body_bytes += len(taken) if sent.method == "PUT" else 0
                data = data[len(taken) :]
                continue
            head, end, rest = (self._head + data).partition(b"\r\n\r\n")
            self._head = b"" if end else head
            if not end or len(head) > HEAD_LIMIT_BYTES:
                break
            self._begin(head)
            data = rest
        return body_bytes

    def answer_bytes(self, data: bytes) -> None:
        """Take note of an answer's status; bodies that look like one do not occur in tests."""
        is_final = data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100")
        if is_final and self._unanswered:
            self._unanswered.pop(0).status = int(data[9:12])

    def _begin(self, head: bytes) -> None:
        method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        length = _LENGTH.search(head)
        self._left_bytes = int(length[1]) if length else 0
        self._log_entry = Sent(method, target, self._left_bytes)
        self._unanswered.append(self._log_entry)
        self._log.append(self._log_entry)


@dataclass
class Network:
    """The way to one server. All faults begin at once and hit every connection."""

    host: str
    port: int
    log: list[Sent] = field(default_factory=list)
    uploaded_bytes: int = 0
    """Bytes of PUT bodies that got through, sent again or not."""
    cuts: int = 0
    limit_bps: int = 0
    """Bytes a second for all uploads together; 0 is no limit."""
    own_port: int = 0
    on_upload: Callable[[int], None] | None = None
    """Told of `uploaded_bytes` as they pass."""

    def __post_init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self._readers: set[_Reader] = set()
        self._cut_marks: list[int] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    @property
    def idle(self) -> bool:
        """Whether no PUT is under way on any open connection."""
        return not any(reader.is_busy for reader in self._readers)

    def puts(self, *, part: int | None = None) -> list[Sent]:
        """The PUTs that passed, of one part or of all."""
        found = [sent for sent in self.log if sent.method == "PUT"]
        return [sent for sent in found if part is None or sent.part == part]

    def cut(self) -> None:
        """Reset all connections."""
        self.cuts += 1
        for writer in list(self._writers):
            writer.transport.abort()

    def cut_at(self, marks: Iterable[int]) -> None:
        """Reset all connections each time so many more bytes have been uploaded from now on."""
        self._cut_marks = sorted(self.uploaded_bytes + mark for mark in marks)

    def cut_at_random(self, count: int, *, within_bytes: int, seed: int) -> None:
        """As `cut_at`, at random places, the same for the same seed."""
        choose = random.Random(seed)  # noqa: S311  # no secret
        self.cut_at(choose.sample(range(within_bytes), count))

    def stall(self) -> None:
        """Let nothing pass, without closing anything."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    async def up(self) -> None:
        """Take connections, always on the same port."""
        if self._server is not None:
            return
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.own_port)
        self.own_port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Refuse connections and reset those there are."""
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(ConnectionError):
                await self._pass_on(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(self.host, self.port)
        requests = _Reader(self.log)
        self._readers.add(requests)
        ways = (
            asyncio.create_task(self._forth(reader, server_writer, requests)),
            asyncio.create_task(self._back(server_reader, writer, requests)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._readers.discard(requests)
            server_writer.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _forth(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: _Reader
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._flowing.wait()
            body_bytes = requests.request_bytes(data)
            self.uploaded_bytes += body_bytes
            if self.on_upload is not None:
                self.on_upload(self.uploaded_bytes)
            if self._cut_marks and self.uploaded_bytes >= self._cut_marks[0]:
                self._cut_marks = [mark for mark in self._cut_marks if mark > self.uploaded_bytes]
                self.cut()
                return
            writer.write(data)
            await writer.drain()
            if self.limit_bps:
                await asyncio.sleep(body_bytes / self.limit_bps * max(1, len(self._writers)))

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: _Reader
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await self._flowing.wait()
            requests.answer_bytes(data)
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def network_to(address: str) -> AsyncIterator[Network]:
    """A proxy to the server at this http address."""
    parts = urlsplit(address)
    network = Network(parts.hostname or "127.0.0.1", parts.port or 80)
    await network.up()
    try:
        yield network
    finally:
        network.flow()
        await network.down()
