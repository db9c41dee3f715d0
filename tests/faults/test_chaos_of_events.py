"""Programs are told of everything while what tells them is killed again and again.

Integrators change videos, and repeat each request with its Idempotency-Key until it is answered.
A receiver gets webhooks, and a mirror follows the events. Web, worker, database and receiver die in
the midst of it. In the end there is an event of every change, and a change of every event, and
receiver and mirror know all. `PORTAL_FAULT_SEED=7` repeats the choices, not the timing.

What a portal waits minutes for is due at once here: `DEAD`, `LOST` and `DUE`.
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
import psutil
import psycopg
import pytest
from api_client import RAW_FILE, metadata, put, rows, run_sql
from running_portal import LOOPBACK, answers, free_port, until
from running_up import environment
from test_chaos import LEFT_TO_DO, end
from webhook_receiver import Receiver, receiving

from portal.bundled.data_folder import open_data_folder
from portal.bundled.postgres import release_socket_folder
from portal.bundled.up import start_embedded
from portal.client import Portal, PortalRefused, PortalUnreachable, calls, portal
from portal.client.calls import Api
from portal.config import Config
from portal.database.schema import migrate
from portal.events.log import EventType
from portal.processes.output import LogFile
from portal.processes.supervisor import Children, ChildSpec, RestartPolicy, running_children
from portal.retry import Backoff, retry

INTEGRATORS = 6
# In turn. Another worker begins by recovering what is lost, so it is the last.
TARGETS = ("web", "database", "receiver", "worker")
TIMEOUT_S = 30
PAUSES = Backoff(0.1, 0.5)
OUTGOING = {"OUTGOING_ALLOW_HTTP": "on", "OUTGOING_NETWORKS": "127.0.0.0/8"}
SUBSCRIBED = [it.value for it in EventType if it is not EventType.RENDITION_ADDED]
# A worker that was killed shows no sign of life for long enough.
DEAD = """
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute';
UPDATE attempts SET lease_expires_at = now() WHERE outcome IS NULL
"""
# The process that had a request is gone, or its database was: the key is free again.
LOST = """
UPDATE idempotency_keys SET began_at = now() - interval '61 s' WHERE status IS NULL AND key = '{}'
"""
# Tries that wait are due; a job whose end, or beginning, nobody could record has taken too long.
DUE = """
UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo';
UPDATE webhook_deliveries SET next_at = now() WHERE next_at > now();
UPDATE procrastinate_events SET at = now() - interval '2 minutes'
WHERE type = 'started' AND at BETWEEN now() - interval '2 minutes' AND now() - interval '10 s'
"""


@dataclass
class Run:
    """A portal whose parts come back, and what becomes of it."""

    children: Children
    address: str
    database_url: str
    receiver: Receiver = field(default_factory=Receiver)
    receiver_killed: asyncio.Event = field(default_factory=asyncio.Event)
    # Numbers of changes that are to be made.
    changes: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    # What was confirmed: the titles of each video, and whose deletion.
    titles: dict[str, list[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    mirror: dict[str, Any] = field(default_factory=dict)
    mirrored: str = ""

    def pid(self, name: str) -> int | None:
        """The number of a child's process, while it runs."""
        running = self.children._running()
        return next((it.pid for it, spec in running if spec.name == name), None)

    async def sql(self, statements: str) -> None:
        """Change the database, once it is there."""
        work = partial(run_sql, self.database_url, statements)
        await retry(work, on=(psycopg.OperationalError,), backoff=PAUSES, give_up_after_s=TIMEOUT_S)


@pytest.mark.parametrize(
    ("kills", "changes"), [(12, 300), pytest.param(1000, 5000, marks=pytest.mark.soak)]
)
async def test_every_change_is_told_whatever_dies(
    data: Path,
    short_video: Path,
    rng: Random,
    kills: int,
    changes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "BACKOFF", PAUSES)
    monkeypatch.setattr(portal, "POLL_INTERVAL_S", 0.1)
    video = short_video.read_bytes()
    async with coming_back(data) as run, aiohttp.ClientSession() as session:
        api = Api(session, run.address)
        tasks = [asyncio.create_task(keep_receiving(run, rng))]
        await until(lambda: run.receiver.url, timeout_s=TIMEOUT_S)
        await api.call("POST", "/api/webhooks", {"url": run.receiver.url, "events": SUBSCRIBED})
        work = [integrate(run, api, video, rng) for _ in range(INTEGRATORS)]
        tasks += [*map(asyncio.create_task, (keep_mirror(run), *work))]
        numbers = iter(range(changes))
        for number in range(kills):
            for change in islice(numbers, changes // kills):
                run.changes.put_nowait(change)
            await until(partial(is_begun, run, tasks), timeout_s=TIMEOUT_S, interval_s=0.01)
            await asyncio.sleep(rng.uniform(0, 0.2))
            await kill(run, TARGETS[number % 4], rng)
            sys.stderr.write(f"{number + 1} kills\n" if number % 20 == 19 else "")
        await until(partial(is_over, run, tasks, changes), timeout_s=TIMEOUT_S, interval_s=1)
        events: list[Any] = []
        async with Portal(run.address) as client:
            newest = await client.newest()
            async for event in client.events(after=""):
                events.append(event)
                if event["id"] == newest:
                    break
            await until(lambda: run.mirrored == newest, timeout_s=TIMEOUT_S)
            videos = {it["id"]: it async for it in client.videos(include="passthrough")}
        for task in tasks:
            task.cancel()
    audit(run, events, videos)


def audit(run: Run, events: list[Any], videos: dict[str, Any]) -> None:
    """Nothing is lost, nothing told that was not done, and nothing done or told twice."""
    of_videos: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        of_videos.setdefault(event["data"]["id"], []).append(event)
    assert of_videos.keys() == run.titles.keys(), "a video for each creation"
    for video_id, told in of_videos.items():
        if video_id in run.deleted:
            # Of a deleted video nothing else is kept.
            assert [event["type"] for event in told] == ["video.deleted"], told
            continue
        types = Counter(event["type"] for event in told)
        assert [event["sequence"] for event in told] == [*range(1, len(told) + 1)], told
        assert told[0]["type"] == "video.created", told
        assert types["video.created"] == 1, told
        edits = [event["data"]["title"] for event in told if event["type"] == "video.updated"]
        assert edits == run.titles[video_id]
        assert types["video.ready"] + types["video.failed"] == 1, told
    assert videos == run.mirror
    assert videos.keys() == run.titles.keys() - run.deleted
    # Details are those of the moment when an event is told.
    received = [
        (headers["webhook-id"], {**json.loads(body), "details": None})
        for headers, body in run.receiver.requests
    ]
    sent = dict(received)
    assert all(event == sent[event_id] for event_id, event in received)
    listed = {
        event["id"]: {**event, "details": None} for event in events if event["type"] in SUBSCRIBED
    }
    assert listed.keys() <= sent.keys()
    of_kept = {
        event_id: event
        for event_id, event in sent.items()
        if event["data"]["id"] not in run.deleted or event["type"] == "video.deleted"
    }
    assert of_kept == listed


async def integrate(run: Run, api: Api, video: bytes, rng: Random) -> None:
    """Make changes, to videos of its own, one at a time."""
    own: list[str] = []
    while True:
        number = await run.changes.get()
        if not own or rng.random() < 0.1:
            wanted = {"fileName": "harbour.mp4", "contentType": "video/mp4"}
            upload = await insist(run, api, "POST", "/api/videos/presign", wanted)
            # Of those that are converted, few: each takes a second or two.
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
            video_id, title = rng.choice(own), f"Change {number}"
            await insist(run, api, "PATCH", f"/api/videos/{video_id}", {"title": title})
            run.titles[video_id].append(title)
        run.changes.task_done()


async def insist(run: Run, api: Api, method: str, path: str, body: Any = None) -> Any:
    """Repeat a request until it is answered."""
    key = uuid4().hex
    while True:
        try:
            return await api.call(method, path, body, key=key)
        except PortalUnreachable:
            continue
        except PortalRefused as exc:
            # The answer to its deletion was lost.
            if method == "DELETE" and exc.code == "video_not_found":
                return None
            if exc.code != "request_in_progress":
                raise
            await run.sql(LOST.format(key))


async def keep_mirror(run: Run) -> None:
    """Keep a copy of all videos, as docs/api.md has it."""
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
    """Receive webhooks; after each kill it is away for a moment."""
    while True:
        # Its port may be in use at first.
        with suppress(OSError):
            async with receiving(run.receiver):
                await run.receiver_killed.wait()
        run.receiver_killed.clear()
        await asyncio.sleep(rng.uniform(0.1, 1))


async def kill(run: Run, name: str, rng: Random) -> None:
    """Kill what has this name, or rarely ask it to end."""
    if name == "receiver":
        run.receiver_killed.set()
        return
    await until(lambda: run.pid(name), timeout_s=TIMEOUT_S, interval_s=0.01)
    pid = run.pid(name)
    with suppress(psutil.NoSuchProcess):
        end(psutil.Process(pid), name, at_once=rng.random() < 0.8)
    if name == "worker":
        await until(lambda: run.pid(name) != pid, timeout_s=TIMEOUT_S, interval_s=0.01)
        await run.sql(DEAD)


def is_begun(run: Run, tasks: list[asyncio.Task[None]]) -> bool:
    """Whether all changes are under way or made."""
    for task in tasks:
        assert not task.done(), task.result()
    return run.changes.empty()


async def is_over(run: Run, tasks: list[asyncio.Task[None]], changes: int) -> bool:
    """Whether nothing is left to do, or to tell; what waits for its time does so no longer."""
    is_begun(run, tasks)
    await run.sql(DUE)
    done = len(run.titles) + sum(map(len, run.titles.values())) + len(run.deleted)
    return done == changes and await rows(run.database_url, LEFT_TO_DO) == [(0,)]


@asynccontextmanager
async def coming_back(data: Path) -> AsyncIterator[Run]:
    """A portal as `portal up` runs it, whose parts come back at once however often they die."""
    folder, port = open_data_folder(data), free_port()
    address = f"http://{LOOPBACK}:{port}"
    try:
        async with running_children(policy=RestartPolicy(0.2, 0.5)) as children:
            services = await start_embedded(
                children, folder, host=LOOPBACK, storage_port=free_port(), database=True
            )
            settings = {"PORT": str(port), "PUBLIC_URL": address, **OUTGOING}
            environ = environment(**services, **settings)
            await migrate(Config.from_env(environ))
            specs = [
                ChildSpec(
                    name=command,
                    argv=(sys.executable, "-m", "portal", command),
                    environ=environ,
                    output=LogFile(folder.log(command)),
                )
                for command in ("web", "worker")
            ]
            await children.start(*specs)
            await until(partial(answers, f"{address}/healthz"), timeout_s=TIMEOUT_S)
            try:
                yield Run(children, address, environ["DATABASE_URL"])
            finally:
                for spec in specs:
                    sys.stderr.write(spec.output.path.read_text(errors="replace")[-10_000:])
    finally:
        release_socket_folder(folder)
