"""Every change has its event, delivered to webhooks and readers, while processes are killed.

Integrators change videos, and repeat each request with its Idempotency-Key until it succeeds. A
receiver takes webhooks, and a mirror follows the events. Web, worker, database and receiver are
killed meanwhile. At the end changes and events correspond, and receiver and mirror have all of
them. `PORTAL_FAULT_SEED=7` repeats the choices, not the timing.

`LOST`, `DUE` and `chaos.DEAD` shorten waits that take minutes otherwise.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import aiohttp
import chaos
import psycopg
import pytest
from api_client import RAW_FILE, metadata, put, run_sql
from running_portal import LOOPBACK, answers, free_port, until
from webhook_receiver import Receiver, receiving

from portal.bundled.data_folder import open_data_folder
from portal.bundled.postgres import release_socket_folder
from portal.bundled.up import start_embedded
from portal.client import Portal, PortalRefused, PortalUnreachable, calls, portal
from portal.client.calls import Api
from portal.config import Config
from portal.database.schema import migrate
from portal.events.log import EventType
from portal.processes.supervisor import Children, running_children
from portal.retry import Backoff, retry

INTEGRATORS = 6
# Killed in turn. A new worker begins by recovering lost work, so it comes last.
TARGETS = ("web", "database", "receiver", "worker")
TIMEOUT_S = 30
PAUSES = Backoff(0.1, 0.5)
OUTGOING = {"OUTGOING_ALLOW_HTTP": "on", "OUTGOING_NETWORKS": "127.0.0.0/8"}
SUBSCRIBED = [kind.value for kind in EventType if kind is not EventType.RENDITION_ADDED]
# Frees the key of a request whose process or database connection was killed.
LOST = """
UPDATE idempotency_keys SET began_at = now() - interval '61 s' WHERE status IS NULL AND key = '{}'
"""
# Makes waiting tries due, and lets jobs without a recorded beginning or end count as too long.
DUE = """
UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo';
UPDATE webhook_deliveries SET next_at = now() WHERE next_at > now();
UPDATE procrastinate_events SET at = now() - interval '2 minutes'
WHERE type = 'started' AND at BETWEEN now() - interval '2 minutes' AND now() - interval '10 s'
"""


@dataclass
class Run:
    """A portal whose processes are restarted, and the changes that it confirmed."""

    children: Children
    address: str
    database_url: str
    receiver: Receiver = field(default_factory=Receiver)
    receiver_killed: asyncio.Event = field(default_factory=asyncio.Event)
    # Numbers of the changes to make.
    changes: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    # Confirmed titles by video, and confirmed deletions.
    titles: dict[str, list[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    mirror: dict[str, Any] = field(default_factory=dict)
    mirrored: str = ""

    async def sql(self, statements: str) -> None:
        """Change the database once it is available."""
        work = partial(run_sql, self.database_url, statements)
        await retry(work, on=(psycopg.OperationalError,), backoff=PAUSES, give_up_after_s=TIMEOUT_S)


@pytest.mark.parametrize(("kills", "changes"), [(2, 50), (1000, 5000)])
@pytest.mark.soak
async def test_changes_and_events_correspond_whatever_is_killed(
    data: Path,
    short_video: Path,
    tmp_path: Path,
    rng: Random,
    kills: int,
    changes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "BACKOFF", PAUSES)
    monkeypatch.setattr(portal, "POLL_INTERVAL_S", 0.1)
    content = short_video.read_bytes()
    async with coming_back(data, tmp_path) as run, aiohttp.ClientSession() as session:
        api = Api(session, run.address)
        tasks = [asyncio.create_task(keep_receiving(run, rng))]
        await until(lambda: run.receiver.url, timeout_s=TIMEOUT_S)
        await api.call("POST", "/api/webhooks", {"url": run.receiver.url, "events": SUBSCRIBED})
        work = [integrate(run, api, content, rng) for _ in range(INTEGRATORS)]
        tasks += [*map(asyncio.create_task, (keep_mirror(run), *work))]
        numbers = iter(range(changes))
        for number in range(kills):
            for change in islice(numbers, changes // kills):
                run.changes.put_nowait(change)
            await until(partial(is_begun, run, tasks), timeout_s=TIMEOUT_S, interval_s=0.01)
            await asyncio.sleep(rng.uniform(0, 0.2))
            await kill(run, TARGETS[number % 4], rng)
            sys.stderr.write(f"{number + 1} kills\n" if number % 20 == 19 else "")
        await until(partial(is_over, run, tasks, changes), timeout_s=TIMEOUT_S, interval_s=0.3)
        events: list[Any] = []
        async with Portal(run.address) as client:
            newest = await client.newest()
            async for event in client.events(after=""):
                events.append(event)
                if event["id"] == newest:
                    break
            await until(lambda: run.mirrored == newest, timeout_s=TIMEOUT_S)
            videos = {video["id"]: video async for video in client.videos(include="passthrough")}
        for task in tasks:
            task.cancel()
    audit(run, events, videos)


def audit(run: Run, events: list[Any], videos: dict[str, Any]) -> None:
    """Check that changes and events correspond exactly."""
    of_videos: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        of_videos.setdefault(event["data"]["id"], []).append(event)
    assert of_videos.keys() == run.titles.keys(), "a video for each creation"
    for video_id, video_events in of_videos.items():
        if video_id in run.deleted:
            # A deleted video keeps no other event.
            assert [event["type"] for event in video_events] == ["video.deleted"], video_events
            continue
        types = Counter(event["type"] for event in video_events)
        sequence = [event["sequence"] for event in video_events]
        assert sequence == [*range(1, len(video_events) + 1)], video_events
        assert video_events[0]["type"] == "video.created", video_events
        assert types["video.created"] == 1, video_events
        updates = [event for event in video_events if event["type"] == "video.updated"]
        edits = [event["data"]["title"] for event in updates]
        assert edits == run.titles[video_id]
        assert types["video.ready"] + types["video.failed"] == 1, video_events
    assert videos == run.mirror
    assert videos.keys() == run.titles.keys() - run.deleted
    # Details are read when an event is delivered, so they may differ.
    received = [
        (headers["webhook-id"], {**json.loads(body), "details": None})
        for headers, body in run.receiver.requests
    ]
    delivered = dict(received)
    assert all(event == delivered[event_id] for event_id, event in received)
    listed = {
        event["id"]: {**event, "details": None} for event in events if event["type"] in SUBSCRIBED
    }
    assert listed.keys() <= delivered.keys()
    of_kept = {
        event_id: event
        for event_id, event in delivered.items()
        if event["data"]["id"] not in run.deleted or event["type"] == "video.deleted"
    }
    assert of_kept == listed


async def integrate(run: Run, api: Api, video: bytes, rng: Random) -> None:
    """Change the integrator's own videos, one change at a time."""
    own: list[str] = []
    while True:
        number = await run.changes.get()
        if not own or rng.random() < 0.1:
            body = {"fileName": "harbour.mp4", "contentType": "video/mp4"}
            upload = await insist(run, api, "POST", "/api/videos/presign", body)
            # Few files are videos, because each takes a second or two to transcode.
            file = video if rng.random() < 0.1 else RAW_FILE
            assert await put(upload["uploadUrl"], file) == 200
            created = await insist(run, api, "POST", "/api/videos", metadata(upload["key"]))
            own.append(created["id"])
            run.titles[own[-1]] = []
        elif rng.random() < 0.05:
            video_id = own.pop(0)
            await insist(run, api, "DELETE", f"/api/videos/{video_id}")
            run.deleted.add(video_id)
        else:
            video_id = rng.choice(own)
            title = f"Change {number}"
            await insist(run, api, "PATCH", f"/api/videos/{video_id}", {"title": title})
            run.titles[video_id].append(title)
        run.changes.task_done()


async def insist(run: Run, api: Api, method: str, path: str, body: Any = None) -> Any:
    """Repeat a request until it succeeds."""
    key = uuid4().hex
    while True:
        try:
            return await api.call(method, path, body, key=key)
        except PortalUnreachable:
            continue
        except PortalRefused as exc:
            # The response to an earlier deletion was lost.
            if method == "DELETE" and exc.code == "video_not_found":
                return None
            if exc.code != "request_in_progress":
                raise
            await run.sql(LOST.format(key))


async def keep_mirror(run: Run) -> None:
    """Keep a copy of all videos, as docs/api.md describes."""
    while True:
        with suppress(PortalUnreachable):
            async with Portal(run.address) as client:
                if not run.mirrored:
                    run.mirrored = await client.newest()
                async for event in client.events(after=run.mirrored):
                    if event["type"] == "video.deleted":
                        run.mirror.pop(event["data"]["id"], None)
                    else:
                        run.mirror[event["data"]["id"]] = event["data"]
                    run.mirrored = event["id"]


async def keep_receiving(run: Run, rng: Random) -> None:
    """Receive webhooks, with a pause after each kill."""
    while True:
        # The former port may still be in use at first.
        with suppress(OSError):
            async with receiving(run.receiver):
                await run.receiver_killed.wait()
        run.receiver_killed.clear()
        await asyncio.sleep(rng.uniform(0.1, 1))


async def kill(run: Run, name: str, rng: Random) -> None:
    """Kill the process with this name, or sometimes ask it to end."""
    if name == "receiver":
        run.receiver_killed.set()
        return
    await chaos.kill(run.children, name, at_once=rng.random() < 0.8)
    if name == "worker":
        await run.sql(chaos.DEAD)


def is_begun(run: Run, tasks: list[asyncio.Task[None]]) -> bool:
    """Return whether all changes have begun."""
    for task in tasks:
        assert not task.done(), task.result()
    return run.changes.empty()


async def is_over(run: Run, tasks: list[asyncio.Task[None]], changes: int) -> bool:
    """Make waiting work due, and return whether no work or delivery is left."""
    is_begun(run, tasks)
    await run.sql(DUE)
    done = len(run.titles) + sum(map(len, run.titles.values())) + len(run.deleted)
    return done == changes and await chaos.is_settled(run.database_url)


@asynccontextmanager
async def coming_back(data: Path, tmp_path: Path) -> AsyncIterator[Run]:
    """Run a portal as `portal up` does, with immediate restarts after any number of kills."""
    folder = open_data_folder(data)
    port = free_port()
    address = f"http://{LOOPBACK}:{port}"
    try:
        async with running_children(policy=chaos.SOON) as children:
            services = await start_embedded(
                children, folder, host=LOOPBACK, storage_port=free_port(), database=True
            )
            environ = {**services, "PORT": str(port), "PUBLIC_URL": address, **OUTGOING}
            await migrate(Config.from_env(environ))
            commands = {name: ("-m", "portal", name) for name in ("web", "worker")}
            async with chaos.restarted(children, environ, tmp_path, **commands):
                await until(partial(answers, f"{address}/healthz"), timeout_s=TIMEOUT_S)
                yield Run(children, address, environ["DATABASE_URL"])
    finally:
        release_socket_folder(folder)
