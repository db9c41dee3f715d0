"""Processes die at random moments while people upload and videos are transcoded.

Whatever the order: every accepted video ends up ready and plays, and nothing is lost, doubled or
left. A seed repeats the choices, not the timing: `PORTAL_FAULT_SEED=7 pytest -m slow tests/faults`.
"""

import asyncio
import signal
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import aiohttp
import click
import psutil
import psycopg
import pytest
from api_client import metadata, rows
from audit import audit, is_settled, processes_of
from running_portal import make_video, until
from running_up import Portal, running

from portal.bundled.data_folder import load_environment
from portal.client.calls import REQUEST_TIMEOUT, Api, Refused
from portal.client.publish import MIB, send_file
from portal.retry import Backoff, retry

FAULTS, VIDEOS = 8, 4
PAUSE_S = (0.1, 2.5)
# Less than a lease, and more than a pause for breath.
FREEZE_S = (0.5, 3.0)
TIMEOUT_S = 180.0
# Pauses after failures, and a machine busy with other tests.
SETTLE_TIMEOUT_S = 300.0
# What makes a video take another attempt.
COSTLY = {"worker", "ffmpeg", "probe", "database", "everything"}
# Whether an attempt, or the try of a rendition, more would fail a video: that is promised, too.
AT_RISK = """
SELECT 1 FROM videos
WHERE status = 'processing' AND (
  SELECT count(*) FROM attempts
  WHERE video_id = videos.id AND (outcome = 'failed' OR outcome IS NULL)) >= 3
UNION ALL SELECT 1 FROM renditions WHERE state = 'planned' AND tries >= 3
"""


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    """A data folder, and nothing left running in it."""
    # Outside pytest's own folder, which each run closes to the database's account.
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
        _, left = psutil.wait_procs(processes_of(Path(folder)), timeout=60)
        assert not left, f"left running after the end: {[it.cmdline() for it in left]}"


@pytest.fixture
def sources(tmp_path: Path) -> list[tuple[Path, float]]:
    """What people publish, with its duration: sent whole, completed later, sent in parts."""
    long = make_video(tmp_path / "long.mp4", seconds=90, size="640x360", rate=2)
    large, padding = make_video(tmp_path / "large.mp4"), 65 * MIB
    with large.open("ab") as file:
        file.write(struct.pack(">I4s", padding, b"free"))
        file.truncate(file.tell() + padding - 8)
    return [(make_video(tmp_path / "short.mp4"), 2.0), (long, 90.0), (large, 2.0)]


async def test_nothing_is_lost_doubled_or_left(
    data: Path, sources: list[tuple[Path, float]], rng: Random
) -> None:
    accepted: dict[str, tuple[str, float]] = {}

    async def publish_later(file: Path, duration_s: float, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        video_id, key = await published_by_a_client(portal.address, file)
        accepted[video_id] = (key, duration_s)

    async with running(data) as portal:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(VIDEOS):
                    source = sources[number % len(sources)]
                    group.create_task(publish_later(*source, rng.uniform(0, FAULTS)))
                group.create_task(hurt(portal, data, rng))
            await until(partial(is_settled, data), timeout_s=SETTLE_TIMEOUT_S, interval_s=0.3)
            assert len(accepted) == VIDEOS, "one video was confirmed for two files"
            await audit(data, accepted)
        finally:
            portal.look()
            sys.stderr.write(portal.said[-20_000:])


async def published_by_a_client(address: str, file: Path) -> tuple[str, str]:
    """Id and key of a video that a person publishes, who tries again whatever went wrong."""
    insist = partial(retry, backoff=Backoff(0.5, 2.0), give_up_after_s=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
        api = Api(session, address)

        async def upload() -> str:
            wanted = {"fileName": file.name, "contentType": "video/mp4"}
            upload = await api.call("POST", "/api/videos/presign", wanted)
            await send_file(api, file, upload, content_type="video/mp4")
            return str(upload["key"])

        key = await insist(upload, on=(click.ClickException,))
        create = partial(api.call, "POST", "/api/videos", metadata(key, fileName=file.name))
        video = await insist(
            create, on=lambda it: isinstance(it, click.ClickException) and type(it) is not Refused
        )
    return video["id"], key


async def hurt(portal: Portal, data: Path, rng: Random) -> None:
    """Hurt a running portal at random moments."""
    done: list[str] = []
    while len(done) < FAULTS:
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        targets = targets_of(portal)
        name = rng.choice(sorted(targets))
        action = rng.choice(["kill", "stop", *(["freeze"] if name == "worker" else [])])
        if action != "freeze" and name in COSTLY and await is_risky(data):
            continue
        for process in targets[name]:
            with suppress(psutil.NoSuchProcess):
                if action == "freeze":
                    process.suspend()
                    await asyncio.sleep(rng.uniform(*FREEZE_S))
                    process.resume()
                elif action == "kill" or name == "everything":
                    process.kill()
                else:
                    # SIGTERM asks a database to wait until its clients have left.
                    process.send_signal(signal.SIGINT if name == "database" else signal.SIGTERM)
        done.append(f"{action} {name}")
    sys.stderr.write(f"{done}\n")


def targets_of(portal: Portal) -> dict[str, list[psutil.Process]]:
    """What runs at this moment, by name; `everything` is what a power cut ends."""
    found = {name: [process] for name, process in portal.children().items()}
    found["everything"] = psutil.Process(portal.process.pid).children(recursive=True)
    for process in found["everything"]:
        with suppress(psutil.NoSuchProcess):
            if "ffmpeg" in process.name():
                found["ffmpeg"] = [process]
            if "portal.transcoding.probing" in process.cmdline():
                found["probe"] = [process]
    return found


async def is_risky(data: Path) -> bool:
    try:
        return bool(await rows(load_environment(data)["DATABASE_URL"], AT_RISK))
    except psycopg.OperationalError:
        return True  # the database is down already, and nobody knows
