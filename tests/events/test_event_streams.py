"""Server-Sent Events: streams tell what is listed, in order and at once, and end when they must."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from api_client import UNKNOWN_VIDEO_ID, Client, answered, problem, published, rows
from hypercorn.asyncio import serve
from page_rows import READY, make_attempt, make_row
from playable_videos import token_in
from quart import Quart
from running_portal import answers, free_port, process, until
from signed_in import make_account, make_video, program, signed_in, token_of

from portal.config import Config
from portal.database.account_models import Account, Role
from portal.database.connection import execute, transaction
from portal.database.models import Attempt, Visibility
from portal.events.log import EventType, record_outcome
from portal.features.events import api as events
from portal.http import event_streams
from portal.http.composition import WebContext
from portal.videos.visibility import VideoAccess, save_access
from portal.web.app import create_app
from portal.web.serve import server_config

pytestmark = pytest.mark.shared_app
ALL = "/api/events/stream"
LISTENING = "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN portal_events'"


class Reader:
    """The messages of a stream, one by one."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._text = ""

    async def chunk(self) -> str:
        """Return the next message; empty at the end."""
        return (await asyncio.wait_for(self._connection.receive(), 60)).decode()

    async def next(self) -> dict[str, Any]:
        """The fields of the next message, its data read; none at the end."""
        while True:
            while "\n\n" not in self._text:
                if not (chunk := await self.chunk()):
                    return {}
                self._text += chunk
            message, _, self._text = self._text.partition("\n\n")
            if not message.startswith(":"):
                fields = dict(line.split(": ", 1) for line in message.splitlines())
                return {**fields, "data": json.loads(fields["data"])}


@asynccontextmanager
async def opened(
    app: Quart, path: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Reader]:
    """Open a stream, read in this process until the reader leaves."""
    async with app.test_client(use_cookies=False).request(
        path, headers=dict(headers or {})
    ) as connection:
        await connection.send_complete()
        try:
            yield Reader(connection)
        finally:
            await connection.disconnect()


@asynccontextmanager
async def reading(
    app: Quart, path: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Reader]:
    """Open a stream, and read its snapshot."""
    async with opened(app, path, headers) as stream:
        assert (await stream.next())["event"] == "snapshot"
        yield stream


async def is_silent(database_url: str) -> bool:
    return not await rows(database_url, LISTENING)


async def change(video_id: UUID | str) -> None:
    async with transaction():
        await record_outcome(EventType.UPDATED, UUID(str(video_id)))


async def test_stream_of_a_video_begins_with_its_record_and_ends_with_its_deletion(
    app: Quart, client: Client
) -> None:
    created = await published(client)
    address = f"/api/videos/{created['id']}"
    record = await answered(await client.get(address))
    async with opened(app, f"{address}/events") as stream:
        snapshot = await stream.next()
        assert (snapshot["event"], snapshot["data"]) == ("snapshot", {**record, "passthrough": ""})
        await published(client)
        await change(created["id"])
        updated = await stream.next()
        listed = await answered(await client.get(f"/api/events?after={snapshot['id']}"))
        assert (await client.delete(address)).status_code == 202
        deleted = await stream.next()
        assert await stream.next() == {}
    last = await answered(await client.get(f"/api/events?after={updated['id']}"))
    _, *expected = [*listed["events"], *last["events"]]
    assert [updated, deleted] == [
        {"event": event["type"], "id": event["id"], "data": event} for event in expected
    ]


async def test_stream_resumes_after_the_last_event_that_arrived(
    app: Quart, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for more events than one reader's backlog, or than one read."""
    monkeypatch.setattr(event_streams, "MAX_WAITING", 2)
    monkeypatch.setattr(event_streams, "ROWS_AT_ONCE", 3)
    video = await make_row()
    async with opened(app, ALL) as stream:
        start = await stream.next()
        assert start["data"] == {"nextAfter": start["id"]}
        await change(video.id)
        first = await stream.next()
    await asyncio.gather(*(change(video.id) for _ in range(8)))
    async with opened(app, ALL, {"Last-Event-ID": first["id"]}) as stream:
        messages = [await stream.next() for _ in range(8)]
        await asyncio.gather(*(change(video.id) for _ in range(8)))
        messages += [await stream.next() for _ in range(8)]
    listed = await answered(await client.get(f"/api/events?after={first['id']}"))
    assert [event["data"] for event in messages] == listed["events"]


async def test_stream_of_certain_types_leaves_out_the_others(app: Quart) -> None:
    video = await make_row()
    types = "type=video.ready,video.deleted"
    async with (
        reading(app, f"{ALL}?{types}") as of_all,
        reading(app, f"/api/videos/{video.id}/events?{types}") as of_video,
    ):
        await change(video.id)
        async with transaction():
            await record_outcome(EventType.READY, video.id)
        for stream in (of_all, of_video):
            assert (await stream.next())["event"] == "video.ready"


async def test_refusals_name_a_remedy(client: Client) -> None:
    created = await published(client)
    [old] = (await answered(await client.get("/api/events")))["events"]
    await execute("UPDATE events SET at = at - interval '31 days'")
    await published(client)
    for path in (ALL, f"/api/videos/{created['id']}/events"):
        for headers, status, code in (
            ({"Last-Event-ID": old["id"]}, 410, "events_expired"),
            ({"Last-Event-ID": "evt_"}, 422, "validation_failed"),
            ({"Accept": "application/json"}, 406, "not_acceptable"),
        ):
            await problem(await client.get(path, headers=headers), status, code)
        assert (await client.head(path)).status_code == 200
    unknown = await client.get(f"/api/videos/{UNKNOWN_VIDEO_ID}/events")
    await problem(unknown, 404, "video_not_found")


async def test_readers_get_their_own_addresses_and_the_end_of_a_hidden_video(
    app: Quart, edith: Account
) -> None:
    """editing/test_audience_changes tests which events each reader gets."""
    private = await make_video(edith, **READY, visibility=Visibility.PRIVATE)
    public = await make_video(edith, **READY)
    admin = await make_account("adam", Role.ADMIN)
    async with (
        reading(app, ALL, (await signed_in(app, edith)).headers) as owner,
        reading(app, ALL, (await signed_in(app, admin)).headers) as other,
        reading(app, f"/api/videos/{public.id}/events") as of_public,
    ):
        await change(private.id)
        records = [(await stream.next())["data"]["data"] for stream in (owner, other)]
        assert [record["id"] for record in records] == [str(private.id)] * 2
        assert len({token_in(record["playbackUrl"]) for record in records}) == 2
        await save_access(public.id, VideoAccess(visibility=Visibility.PRIVATE), versions=None)
        hidden = await of_public.next()
        assert hidden["event"] == "video.deleted"
        assert hidden["data"]["data"] == {"id": str(public.id)}
        assert await of_public.next() == {}


async def test_stream_ends_when_its_readers_permissions_change(
    app: Quart, edith: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    sender = await signed_in(app, edith)
    admin = await make_account("adam", Role.ADMIN)
    token = await token_of(admin)
    async with (
        reading(app, ALL) as anyone,
        reading(app, ALL, sender.headers) as person,
        reading(app, ALL, program(app, token).headers) as of_program,
    ):
        await Account.filter(id=edith.id).update(is_disabled=True)
        assert await person.next() == {}
        await Account.filter(id=admin.id).update(role=Role.VIEWER)
        assert await of_program.next() == {}
        assert await anyone.chunk() == ":\n\n", "others go on"


async def test_progress_is_sent_beside_the_events(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "PROGRESS_INTERVAL_S", 0.05)
    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.2)
    video = await make_row()
    attempt = await make_attempt(video, percent=12.34)
    async with reading(app, f"/api/videos/{video.id}/events") as stream:
        for percent, rounded in ((12.34, 12.3), (50, 50.0)):
            await Attempt.filter(id=attempt.id).update(percent=percent)
            progress = await stream.next()
            assert (progress["event"], progress.get("id")) == ("video.progress", None)
            expected = {"id": str(video.id), "stage": "transcoding", "percent": rounded}
            assert progress["data"]["data"] == expected
        assert await stream.chunk() == ":\n\n", "while nothing happens"


async def test_one_connection_listens_for_all_and_nothing_is_missed_when_it_breaks(
    app: Quart, resources: WebContext
) -> None:
    video = await make_row()
    database_url = resources.config.database_url

    async with reading(app, ALL) as first, reading(app, f"/api/videos/{video.id}/events") as second:
        await until(lambda: rows(database_url, LISTENING), timeout_s=10)
        [[pid]] = await rows(database_url, LISTENING)
        await rows(database_url, "SELECT pg_terminate_backend(%s)", pid)
        await change(video.id)
        assert await first.next() == await second.next()
        [[other_pid]] = await rows(database_url, LISTENING)
        assert other_pid != pid

    await until(lambda: is_silent(database_url), timeout_s=10)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
async def test_streams_do_not_count_as_concurrent_requests_and_end_with_their_process(
    environ: dict[str, str], tmp_path: Path, workers: str
) -> None:
    """While other requests are still answered, by each of several processes."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    settings = {**environ, "PORT": str(port), "PUBLIC_URL": url, "MAX_CONCURRENT_REQUESTS": "10"}
    settings["WEB_WORKERS"] = workers
    is_told = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await is_told.wait()
        # Meanwhile the other process ends.
        await asyncio.sleep(1)
        yield b"}"

    async with (
        process("web", settings, log_dir=tmp_path) as web,
        aiohttp.ClientSession(url, headers={"Content-Type": "application/json"}) as session,
    ):
        await until(lambda: answers(f"{url}/healthz"), timeout_s=60)
        asking = asyncio.create_task(session.post("/api/videos/presign", data=body()))
        streams = [await session.get(ALL) for _ in range(12)]
        assert [stream.status for stream in streams] == [200] * 12
        web.terminate()
        is_told.set()
        assert (await asking).status == 422
        for stream in streams:
            with suppress(aiohttp.ClientPayloadError):
                await stream.read()
        assert await asyncio.wait_for(web.wait(), 60) == 0
    assert "Traceback" not in (tmp_path / "web.log").read_text()


async def test_stream_of_a_reader_that_takes_nothing_ends(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SEND_TIMEOUT_S", 3)
    app = create_app(config)
    stop = asyncio.Event()
    server = server_config("", host="127.0.0.1", port=(port := free_port()))
    server.workers = 1
    serving = asyncio.create_task(serve(app, server, shutdown_trigger=stop.wait))
    await until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), timeout_s=20)
    video = await make_row(description="🎬" * 5000)
    async with transaction():
        for _ in range(200):
            await record_outcome(EventType.UPDATED, video.id)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        request = f"GET {ALL} HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: evt_0\r\n\r\n"
        client.sendall(request.encode())
        assert await asyncio.to_thread(client.recv, 8) == b"HTTP/1.1"
        await until(lambda: rows(config.database_url, LISTENING), timeout_s=10)
        await until(lambda: is_silent(config.database_url), timeout_s=10)
    stop.set()
    await serving
