"""Many viewers and editors at once: errors, delays, and the memory of each component.

Database, storage, web and worker run on this machine, started and stopped here, with their
default settings except the number of web processes; the crowd runs in this process. Viewers poll
as often as the pages do, until their video is done, and go on to another. Editors publish a film
of ten seconds at once, and then again and again, each time sending 20 MB over two minutes.

    python tests/benchmarks/load.py [--viewers 2000] [--editors 50] [--minutes 5] [--nginx 1]

With `--nginx 1` the crowd connects through nginx, with the shipped settings except TLS. Delays and
memory are measured once everyone is connected; errors count from the start. Exits with 1 on errors.
"""

import argparse
import asyncio
import json
import os
import random
import re
import struct
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from subprocess import run
from time import monotonic
from urllib.parse import urlsplit

import psutil
from benchmark_portal import measured_portal, options_of
from running_portal import free_port, make_video

from portal.web.serve import raise_descriptor_limit

# An editor uploads with about 1.3 Mbit/s.
FILE_BYTES = 20_000_000
UPLOAD_S = 120
AIM_P99_S = 0.25
NGINX = Path(__file__).parents[2] / "docs/deploy/nginx.conf"
# Time limit of htmx in base.html.
TIMEOUT_S = 10
# Interval in which editors check their videos.
EDITOR_POLL_S = 5.0
# Maximum number of processing cards that a page of the library polls.
CARDS = 12
# Name, page, polled address, interval, and share of a hundred viewers: as in
# templates/watching/_status.html, library/_poll.html and watching/_embed_stage.html.
PAGES = (
    ("status", "/videos/{id}", "/videos/{id}/status", 2.0, 45),
    ("library", "/", "/library/progress?{cards}", 2.0, 25),
    ("embed", "/embed/{id}", "/embed/{id}/stage", 3.0, 25),
    ("record", "/api/videos/{id}", "/api/videos/{id}", 1.0, 5),
)
POLLS = tuple(f"poll {name}" for name, *_ in PAGES)
# Component by a part of its command line.
PARTS = {"portal web": "web", "portal worker": "worker", "postgres": "database", "rclone": "store"}


@dataclass
class Crowd:
    """State that viewers and editors share: the portal, its processing videos, and results."""

    portal_url: str
    file: bytes
    durations_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    published: int = 0
    # Processing videos, the newest last, and the newest of all videos.
    at_work: list[str] = field(default_factory=list)
    latest: str = ""
    begun: asyncio.Event = field(default_factory=asyncio.Event)


class Line:
    """Connection of one client to one server, reopened when the server closes it.

    It implements a minimum of HTTP/1.1, so that one busy core can run thousands of clients.
    `number` determines its address in the loopback network: limits apply to client addresses.
    """

    def __init__(self, url: str, crowd: Crowd, number: int = 0) -> None:
        parts = urlsplit(url)
        self._own_address = (str(IPv4Address("127.1.0.1") + number), 0)
        self._address = (parts.hostname or "", parts.port or 80)
        self._crowd = crowd
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, kind: str, target: str, body: bytes = b"", *, method: str = "GET", bytes_s: int = 0
    ) -> tuple[int, bytes]:
        """Send a request; return status and body of the response, (0, b"") without one.

        A body is sent at this rate, or at full speed.
        """
        lines = [f"{method} {target} HTTP/1.1", "Host: {}:{}".format(*self._address)]
        if body:
            is_json = body.startswith(b"{")
            lines.append(f"Content-Type: {'application/json' if is_json else 'video/mp4'}")
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([*lines, "", ""]).encode()
        begun_at = monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S + (len(body) / bytes_s if bytes_s else 0)):
                status, answer = await self._exchange(head, body, bytes_s or len(body))
        except (OSError, EOFError, TimeoutError) as exc:
            self.close()
            self._crowd.errors[f"{kind}: {type(exc).__name__}"] += 1
            return 0, b""
        self._crowd.durations_s[kind].append(monotonic() - begun_at)
        if status >= 400:
            self._crowd.errors[f"{kind}: {status} {answer[:240].decode(errors='replace')}"] += 1
        return status, answer

    async def _exchange(self, head: bytes, body: bytes, bytes_s: int) -> tuple[int, bytes]:
        if self._ends is None or self._ends[0].at_eof():
            self.close()
            self._ends = await asyncio.open_connection(*self._address, local_addr=self._own_address)
        reader, writer = self._ends
        writer.write(head + body[:bytes_s])
        for begin in range(bytes_s, len(body), bytes_s or 1):
            await asyncio.sleep(1)
            writer.write(body[begin : begin + bytes_s])
            await writer.drain()
        header = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)\r\n", header, re.IGNORECASE)
        answer = await reader.readexactly(int(length[1])) if length else b""
        return int(header.split(b" ", 2)[1]), answer

    def close(self) -> None:
        if self._ends is not None:
            self._ends[1].transport.abort()
            self._ends = None


async def view(crowd: Crowd, seed: int, *, delay_s: float) -> None:
    """Open a page, poll as it does until its video is done, and open another."""
    chance = random.Random(seed)  # noqa: S311  # not secret
    [(name, page, poll, interval_s, _)] = chance.choices(PAGES, [share for *_, share in PAGES])
    line = Line(crowd.portal_url, crowd, 1000 + seed)  # editors come before
    await asyncio.sleep(delay_s)
    while True:
        is_awaited = bool(crowd.at_work)
        video_id = chance.choice(crowd.at_work) if is_awaited else crowd.latest
        cards = "&".join(f"id={card}" for card in crowd.at_work[-CARDS:] or [video_id])
        await line.ask(f"open {name}", page.format(id=video_id))
        due_at = monotonic()
        # Without a processing video a viewer stays for a while.
        for _ in count() if is_awaited else range(chance.randint(10, 30)):
            due_at = max(due_at + interval_s, monotonic())
            await asyncio.sleep(due_at - monotonic())
            await line.ask(f"poll {name}", poll.format(id=video_id, cards=cards))
            if is_awaited and video_id not in crowd.at_work:
                break


async def edit(crowd: Crowd, number: int) -> None:
    """Publish the file at full speed once, and then repeatedly over a slow line."""
    line = Line(crowd.portal_url, crowd, number)
    bytes_s = 0
    async with asyncio.TaskGroup() as watching:
        while True:
            if video_id := await _publish(crowd, line, bytes_s):
                watching.create_task(_await_ready(crowd, video_id, number))
            bytes_s = len(crowd.file) // UPLOAD_S


async def _publish(crowd: Crowd, line: Line, bytes_s: int) -> str:
    """Publish the file, and return the id of the video, or an empty text."""
    body: dict[str, object] = {"fileName": "load.mp4", "contentType": "video/mp4"}
    request = json.dumps(body).encode()
    status, answer = await line.ask("presign", "/api/videos/presign", request, method="POST")
    if status != 200:
        await asyncio.sleep(EDITOR_POLL_S)
        return ""
    upload = json.loads(answer)
    parts = urlsplit(upload["uploadUrl"])
    storage = Line(upload["uploadUrl"], crowd)
    target = f"{parts.path}?{parts.query}"
    await storage.ask("put", target, crowd.file, method="PUT", bytes_s=bytes_s)
    storage.close()
    text = {"title": "Load", "description": "", "categoryIds": [1], "tags": "load"}
    body = {**text, "fileName": "load.mp4", "key": upload["key"]}
    status, answer = await line.ask(
        "create", "/api/videos", json.dumps(body).encode(), method="POST"
    )
    return str(json.loads(answer)["id"]) if status == 201 else ""


async def _await_ready(crowd: Crowd, video_id: str, number: int) -> None:
    line = Line(crowd.portal_url, crowd, number)
    state = "processing"
    crowd.at_work.append(video_id)
    crowd.latest = video_id
    crowd.begun.set()
    while state == "processing":
        await asyncio.sleep(EDITOR_POLL_S)
        status, answer = await line.ask("poll record", f"/api/videos/{video_id}")
        if status == 200:
            state = json.loads(answer)["status"]
    line.close()
    crowd.at_work.remove(video_id)
    crowd.published += state == "ready"
    if state != "ready":
        crowd.errors[f"video: {state}"] += 1


async def main() -> int:
    """Run everything, print the tables, and return the exit code."""
    options = options_of(__doc__, viewers=2000, editors=50, arrival=30.0, minutes=5.0, nginx=0)
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="portal-load-") as folder:
        film = make_video(Path(folder) / "load.mp4", seconds=10, size="640x360").read_bytes()
        # An empty box after the film makes the file large but quick to transcode.
        box_bytes = FILE_BYTES - len(film)
        film += struct.pack(">I4s", box_bytes, b"free") + bytes(box_bytes - 8)
        settings = {"WORK_DIR": f"{folder}/work", "WEB_WORKERS": str(os.cpu_count() or 1)}
        if not options.nginx:
            async with measured_portal(Path(folder), worker=True, **settings) as portal:
                return await _measure(Crowd(portal.base_url, film), options)
        url = f"http://127.0.0.1:{free_port()}"
        settings |= {"PUBLIC_URL": url, "TRUSTED_PROXIES": "127.0.0.1"}
        async with measured_portal(Path(folder), worker=True, **settings) as portal:
            with nginx(Path(folder), url, portal.base_url):
                return await _measure(Crowd(url, film), options)


@contextmanager
def nginx(folder: Path, url: str, portal_url: str) -> Iterator[None]:
    """Run the shipped nginx in front of a portal, with plain HTTP and without a password."""
    maps, _, servers = NGINX.read_text().partition("server {")
    site = "server {" + servers.split("server {")[1].partition("# Uploads and segments")[0]
    site = re.sub(r"    listen .*\n    listen .*", f"    listen {urlsplit(url).netloc};", site)
    site = re.sub(r"    (ssl_certificate|auth_basic|access_log|error_log).*\n", "", site)
    site = site.replace("videos.example.org", "127.0.0.1")
    site = site.replace("http://127.0.0.1:8000", portal_url)
    main = f"user root; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
    cache = maps.replace("/var/cache/nginx", str(folder))
    text = f"{main} events {{ worker_connections 8192; }} http {{ access_log off;\n{cache}{site}}}"
    (folder / "nginx.conf").write_text(text)
    command = ["nginx", "-c", f"{folder}/nginx.conf"]
    run(command, check=True)  # returns once nginx listens
    try:
        yield
    finally:
        run([*command, "-s", "stop"], check=True)


async def _measure(crowd: Crowd, options: argparse.Namespace) -> int:
    """Start the editors, then the viewers one after the other, and print the results."""
    memory: dict[str, list[float]] = defaultdict(list)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(edit(crowd, number)) for number in range(options.editors)]
        await crowd.begun.wait()
        for seed in range(options.viewers):
            delay_s = options.arrival * seed / options.viewers
            tasks.append(group.create_task(view(crowd, seed, delay_s=delay_s)))
        await asyncio.sleep(options.arrival)
        crowd.durations_s.clear()
        begun_at = monotonic()
        while (took_s := monotonic() - begun_at) < options.minutes * 60:
            for name, used_mb in (await asyncio.to_thread(_memory_mb)).items():
                memory[name].append(used_mb)
            await asyncio.sleep(1)
        # Requests that are cancelled here are no errors.
        errors = dict(crowd.errors)
        for task in tasks:
            task.cancel()
    _print_requests(crowd, took_s)
    print(f"{'':16} {'begin MB':>9} {'end MB':>8} {'most MB':>8}")
    for name, samples in memory.items():
        print(f"{name:16} {samples[0]:9.1f} {samples[-1]:8.1f} {max(samples):8.1f}")
    print(f"videos published: {crowd.published}; errors: {errors or 'none'}")
    return 1 if errors else 0


def _memory_mb() -> dict[str, float]:
    """Return the memory of all processes of each component."""
    used_mb: dict[str, float] = defaultdict(float)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            # Several web processes are children of one.
            commands = [" ".join(ancestor.cmdline()) for ancestor in (process, *process.parents())]
            names = (PARTS[words] for text in commands for words in PARTS if words in text)
            if name := next(names, None):
                usage = process.memory_info()
                # Shared pages are PostgreSQL's buffers, which all of its processes report.
                used_mb[name] += (usage.rss - usage.shared) / 1e6
    return used_mb


def _print_requests(crowd: Crowd, took_s: float) -> None:
    print(f"{'':16} {'number':>8} {'/s':>7} {'p50':>9} {'p99':>9} {'most':>9}")
    polls = [duration_s for name in POLLS for duration_s in crowd.durations_s[name]]
    for kind, durations_s in [*sorted(crowd.durations_s.items()), ("all polls", polls)]:
        ordered = sorted(durations_s) or [0.0]
        cuts = [
            f"{ordered[int(share * (len(ordered) - 1))] * 1000:.1f} ms" for share in (0.5, 0.99, 1)
        ]
        rate = len(durations_s) / took_s
        print(
            f"{kind:16} {len(durations_s):8} {rate:7.1f} " + " ".join(f"{cut:>9}" for cut in cuts)
        )
    p99_s = sorted(polls)[int(0.99 * (len(polls) - 1))] if polls else 0.0
    verdict = "reached" if p99_s < AIM_P99_S else "missed"
    print(f"aim for polls at p99: {AIM_P99_S * 1000:.0f} ms, {verdict}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
