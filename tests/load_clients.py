"""A crowd in front of a portal: viewers whose pages poll, and editors who publish.

One connection and one address of the loopback network each, and the pages' own intervals. The
client is written for thousands of them in one process on a core that is busy with the portal: it
knows just enough of HTTP/1.1.
"""

import asyncio
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import count
from time import monotonic
from urllib.parse import urlsplit

# As htmx is told in base.html; whoever waits longer has given up.
TIMEOUT_S = 10
SAID_BYTES = 240
FIRST_ADDRESS = IPv4Address("127.1.0.1")
# Those before it are editors'.
FIRST_VIEWER = 1000
PUT_TRIES = 3
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
PRESIGN = json.dumps({"fileName": "load.mp4", "contentType": "video/mp4"}).encode()
# How often this test looks whether a video is done.
EDITOR_POLL_S = 5.0
# What an editor's line takes at once while it is throttled.
PIECE_S = 1.0
# Every page of the library with something to tell asks for the cards that are at work on it.
CARDS = 12


@dataclass
class Record:
    """What happened to the requests of a crowd, by kind."""

    durations_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    # What storage answered to uploads that were then sent again.
    put_again: Counter[str] = field(default_factory=Counter)
    published: int = 0

    def percentile_s(self, share: float, *kinds: str) -> float:
        """How long at most this share of requests of these kinds took."""
        found = sorted(it for kind in kinds for it in self.durations_s[kind])
        return found[min(len(found) - 1, int(share * len(found)))] if found else 0.0


@dataclass
class Crowd:
    """What viewers and editors share: the portal, what is being processed, and the record."""

    portal_url: str
    file: bytes
    # Of an editor's line; 0 for as fast as it gets.
    upload_bytes_s: int = 0
    record: Record = field(default_factory=Record)
    # Processed at the moment, the newest last; and the newest of all.
    at_work: list[str] = field(default_factory=list)
    latest: str = ""
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def pick(self, chance: random.Random) -> str:
        """The id of a video to look at."""
        return chance.choice(self.at_work) if self.at_work else self.latest


class Line:
    """One client's connection to one server; opened again when the server has ended it.

    `number` tells its address: limits are of a client's address, and a crowd has many.
    """

    def __init__(self, url: str, record: Record, number: int = 0) -> None:
        parts = urlsplit(url)
        self._own_address = (str(FIRST_ADDRESS + number), 0)
        self._address = (parts.hostname or "", parts.port or 80)
        self._host = parts.netloc
        self._record = record
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self,
        kind: str,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        content_type: str = "application/json",
        bytes_s: int = 0,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; (0, b"") and an error in the record if there is none.

        The body goes out at this speed, or as fast as it gets.
        """
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._host}"]
        if body:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        head = "\r\n".join([*lines, "", ""]).encode()
        begun_at = monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S + (len(body) / bytes_s if bytes_s else 0)):
                status, answer = await self._exchange(head, body, bytes_s)
        except (OSError, EOFError, TimeoutError) as exc:
            self.close()
            self._record.errors[f"{kind}: {type(exc).__name__}"] += 1
            return 0, b""
        self._record.durations_s[kind].append(monotonic() - begun_at)
        if status >= 400:
            # With what was said, the beginning of it: one of thousands is hard to get again.
            self._record.errors[
                f"{kind}: {status} {answer[:SAID_BYTES].decode(errors='replace')}"
            ] += 1
        return status, answer

    async def _exchange(self, asked: bytes, body: bytes, bytes_s: int) -> tuple[int, bytes]:
        if self._ends is None or self._ends[0].at_eof():
            self.close()
            self._ends = await asyncio.open_connection(*self._address, local_addr=self._own_address)
        reader, writer = self._ends
        piece_bytes = round(bytes_s * PIECE_S) or len(body)
        writer.write(asked + body[:piece_bytes])
        await writer.drain()
        for begin in range(piece_bytes, len(body), piece_bytes or 1):
            await asyncio.sleep(PIECE_S)
            writer.write(body[begin : begin + piece_bytes])
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        status, length = STATUS.match(head), LENGTH.search(head)
        answer = await reader.readexactly(int(length[1])) if length else b""
        return int(status[1]) if status else 0, answer

    def close(self) -> None:
        if self._ends is not None:
            self._ends[1].transport.abort()
            self._ends = None


@dataclass(frozen=True, slots=True)
class PageKind:
    """A page that polls: its name in the record, its address, what it polls, and how often."""

    name: str
    page: str
    poll: str
    interval_s: float


# As in templates/videos/_status.html, library/_poll.html and embed/_stage.html.
PAGES = (
    PageKind("status", "/videos/{id}", "/videos/{id}/status", 2.0),
    PageKind("library", "/", "/library/progress?{cards}", 2.0),
    PageKind("embed", "/embed/{id}", "/embed/{id}/stage", 3.0),
    PageKind("record", "/api/videos/{id}", "/api/videos/{id}", 1.0),
)
# Of a hundred viewers.
SHARES = (45, 25, 25, 5)
POLLS = tuple(f"poll {page.name}" for page in PAGES)


async def view(crowd: Crowd, seed: int, *, delay_s: float) -> None:
    """One viewer: opens a page, which polls until its video is done, and goes on to another."""
    chance = random.Random(seed)  # noqa: S311  # nothing secret
    [page] = chance.choices(PAGES, SHARES)
    line = Line(crowd.portal_url, crowd.record, FIRST_VIEWER + seed)
    try:
        await asyncio.sleep(delay_s)
        while True:
            await _watch(crowd, line, page, chance)
    finally:
        line.close()


async def _watch(crowd: Crowd, line: Line, page: PageKind, chance: random.Random) -> None:
    video_id = crowd.pick(chance)
    cards = "&".join(f"id={it}" for it in crowd.at_work[-CARDS:] or [video_id])
    await line.ask(f"open {page.name}", "GET", page.page.format(id=video_id))
    poll = page.poll.format(id=video_id, cards=cards)
    due_at = monotonic()
    is_awaited = bool(crowd.at_work)
    # If there is nothing to wait for, someone looks for a while all the same.
    for _ in count() if is_awaited else range(chance.randint(10, 30)):
        due_at = max(due_at + page.interval_s, monotonic())
        await asyncio.sleep(due_at - monotonic())
        await line.ask(f"poll {page.name}", "GET", poll)
        if is_awaited and video_id not in crowd.at_work:
            break


async def edit(crowd: Crowd, number: int) -> None:
    """One editor: publishes the file at once, and then again and again over a slow line."""
    line = Line(crowd.portal_url, crowd.record, number)
    async with asyncio.TaskGroup() as watching:
        try:
            bytes_s = 0
            while True:
                if video_id := await _publish(crowd, line, number, bytes_s):
                    watching.create_task(_await_ready(crowd, video_id, number))
                bytes_s = crowd.upload_bytes_s
        finally:
            line.close()


async def _publish(crowd: Crowd, line: Line, number: int, bytes_s: int) -> str:
    """The id of the new video, or nothing."""
    status, answer = await line.ask("presign", "POST", "/api/videos/presign", body=PRESIGN)
    if status != 200:
        await asyncio.sleep(EDITOR_POLL_S)
        return ""
    upload = json.loads(answer)
    await _put(crowd, upload["uploadUrl"], bytes_s)
    body = {
        "title": f"Load {number}",
        "description": "Published by the load test.",
        "categoryIds": [1 + number % 16],
        "tags": "load",
        "fileName": "load.mp4",
        "key": upload["key"],
    }
    status, answer = await line.ask("create", "POST", "/api/videos", body=json.dumps(body).encode())
    return str(json.loads(answer)["id"]) if status == 201 else ""


async def _put(crowd: Crowd, upload_url: str, bytes_s: int) -> None:
    parts = urlsplit(upload_url)
    target = f"{parts.path}?{parts.query}"
    for number in range(1, PUT_TRIES + 1):
        tried = Record()
        line = Line(f"{parts.scheme}://{parts.netloc}", tried)
        status, _ = await line.ask(
            *("put", "PUT", target), body=crowd.file, content_type="video/mp4", bytes_s=bytes_s
        )
        line.close()
        crowd.record.durations_s["put"] += tried.durations_s["put"]
        # What is sent again, as the upload page does, is told apart: it is storage's, not ours.
        is_last = status < 500 or number == PUT_TRIES
        (crowd.record.errors if is_last else crowd.record.put_again).update(tried.errors)
        if is_last:
            break


async def _await_ready(crowd: Crowd, video_id: str, number: int) -> None:
    line = Line(crowd.portal_url, crowd.record, number)
    crowd.at_work.append(video_id)
    crowd.latest = video_id
    crowd.begun.set()
    state = "processing"
    try:
        while state == "processing":
            await asyncio.sleep(EDITOR_POLL_S)
            status, answer = await line.ask("poll record", "GET", f"/api/videos/{video_id}")
            if status == 200:
                state = json.loads(answer)["status"]
    finally:
        line.close()
    crowd.at_work.remove(video_id)
    if state == "ready":
        crowd.record.published += 1
    else:
        crowd.record.errors[f"video: {state}"] += 1


@asynccontextmanager
async def gathered(
    crowd: Crowd, *, viewers: int, editors: int, arrival_s: float
) -> AsyncIterator[Record]:
    """Let them in, editors first, viewers spread over this time; send them home at the end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(edit(crowd, number)) for number in range(editors)]
        await crowd.begun.wait()
        for seed in range(viewers):
            delay_s = arrival_s * seed / viewers
            tasks.append(group.create_task(view(crowd, seed, delay_s=delay_s)))
        try:
            await asyncio.sleep(arrival_s)
            yield crowd.record
        finally:
            for task in tasks:
                task.cancel()
