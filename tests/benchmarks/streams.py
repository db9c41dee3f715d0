"""Open streams: their memory in a web process, and the delay of changes.

Most follow one video each, as pages and integrators do; some follow all videos. One webhook
receives all changes. The delay is from the commit, by the database's clock, until a reader or
receiver on the same machine has the message.

    python tests/benchmarks/streams.py [--streams 2000] [--all 20] [--seconds 10] [--rate 50]
"""

import argparse
import asyncio
import os
import re
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from benchmark_portal import measured_portal, options_of
from page_rows import make_row
from running_portal import LivePortal, call, until
from webhook_receiver import Receiver, receiving

from portal.config import Config
from portal.database.connection import open_database, transaction
from portal.database.models import Video
from portal.events.log import EventType, record_outcome
from portal.web.serve import raise_descriptor_limit

VIDEOS = 50
OPENED_AT_ONCE = 50
MEMORY_AIM_MB = 60
P99_AIM_MS = 250
WEBHOOK_P99_AIM_MS = 1000
SENT = re.compile(rb'"type":"video.updated","timestamp":"([^"]+)"')


class Reader(asyncio.Protocol):
    """Reader of a stream that adds the delay of each change to `delays_s`."""

    def __init__(self, request: bytes, delays_s: list[float]) -> None:
        self._request = request
        self._delays_s = delays_s
        self.has_begun = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        arrived_at = time.time()
        self.has_begun.set()
        for sent_at in SENT.findall(data):
            moment = datetime.fromisoformat(sent_at.decode()).timestamp()
            self._delays_s.append(arrived_at - moment)


async def main() -> None:
    options = options_of(__doc__, streams=2000, all=20, seconds=10, rate=50)
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        settings = {"OUTGOING_ALLOW_HTTP": "on", "OUTGOING_NETWORKS": "127.0.0.0/8"}
        settings["WORK_DIR"] = f"{folder}/work"
        async with (
            measured_portal(Path(folder), worker=True, **settings) as portal,
            open_database(Config.from_env({**os.environ, **portal.environ})),
            receiving() as receiver,
        ):
            body = {"url": receiver.url, "events": ["video.updated"]}
            address = f"{portal.base_url}/api/webhooks"
            webhook = await call("POST", address, status=201, json=body)
            await call("POST", f"{address}/{webhook['id']}/test", status=202)
            # The worker has started once the test arrives.
            await until(lambda: len(receiver.requests) == 1, timeout_s=60)
            receiver.requests = []
            receiver.arrived_at = []
            await _measure(portal, receiver, options)


async def _measure(portal: LivePortal, receiver: Receiver, options: argparse.Namespace) -> None:
    videos = [await make_row(number) for number in range(VIDEOS)]
    delays_s: list[float] = []
    paths = ["/api/events/stream"] * options.all
    paths += [f"/api/videos/{video.id}/events" for video in videos] * (options.streams // VIDEOS)
    # The first requests load modules and open database connections, which are not counted.
    for reader in await _open(portal, paths[-OPENED_AT_ONCE:], delays_s):
        reader.transport.close()
    await _open(portal, paths[: options.all], delays_s)
    before = _memory_bytes(portal)
    video_paths = paths[options.all : options.streams]
    for first in range(0, len(video_paths), OPENED_AT_ONCE):
        await _open(portal, video_paths[first : first + OPENED_AT_ONCE], delays_s)
    used_bytes = _memory_bytes(portal) - before
    print(
        f"{len(video_paths)} streams: {used_bytes / 1e6:.1f} MB (aim: {MEMORY_AIM_MB}), "
        f"{used_bytes / len(video_paths) / 1e3:.1f} kB each"
    )
    await _change(videos, options)
    readers = options.all + len(video_paths) / VIDEOS
    expected = int(options.seconds * options.rate * readers)
    await until(lambda: len(delays_s) >= 0.99 * expected, timeout_s=3)
    print(f"{options.rate} changes/s, {len(delays_s) / options.seconds:.0f} messages/s")
    _print_delays("streams", delays_s, P99_AIM_MS)
    changes = options.seconds * options.rate
    await until(lambda: len(receiver.requests) >= changes, timeout_s=30)
    sent_at = [datetime.fromisoformat(event["timestamp"]).timestamp() for event in receiver.events]
    pairs = zip(receiver.arrived_at, sent_at, strict=True)
    on_way_s = [arrival - departure for arrival, departure in pairs]
    _print_delays("webhook", on_way_s, WEBHOOK_P99_AIM_MS)
    print(f"the process afterwards: {(_memory_bytes(portal) - before) / 1e6:.1f} MB more")


def _print_delays(name: str, delays_s: list[float], aim_ms: int) -> None:
    p50 = statistics.median(delays_s)
    p99 = statistics.quantiles(delays_s, n=100)[98]
    longest = f"longest {max(delays_s) * 1e3:.0f} ms"
    print(f"{name}: p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms (aim: {aim_ms}), {longest}")


def _memory_bytes(portal: LivePortal) -> int:
    memory: int = psutil.Process(portal.web_pid).memory_info().rss
    return memory


async def _open(portal: LivePortal, paths: list[str], delays_s: list[float]) -> list[Reader]:
    parts = urlsplit(portal.base_url)
    readers = []
    for path in paths:
        request = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
        reader = Reader(request, delays_s)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda protocol=reader: protocol, parts.hostname, parts.port)
        readers.append(reader)
    await asyncio.gather(*(reader.has_begun.wait() for reader in readers))
    return readers


async def _change(videos: list[Video], options: argparse.Namespace) -> None:
    begun_at = time.monotonic()
    for number in range(options.seconds * options.rate):
        await asyncio.sleep(max(0.0, begun_at + number / options.rate - time.monotonic()))
        async with transaction():
            await record_outcome(EventType.UPDATED, videos[number % VIDEOS].id)


if __name__ == "__main__":
    asyncio.run(main())
