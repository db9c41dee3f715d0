"""Files that the portal fetches from other servers: one video, or an error with a name."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from aged_videos import hence, tidy
from aiohttp import web
from api_client import Client, answered, faults, problem, rows, run_sql, until_found
from command_line import portal as command
from http_server import listening
from passes import tools_for
from quart import Quart
from running_portal import process, run_portal, until
from signed_in import Sender, make_account, person, program, text_of, token_of
from webhook_receiver import SETTINGS, receiving, send_due

from portal.accounts import people
from portal.database.account_models import Role
from portal.database.event_models import Webhook
from portal.database.models import Upload, Video
from portal.database.work_models import Import
from portal.features.imports import fetching
from portal.features.imports import service as imports
from portal.features.imports.fetching import Fetch, GivesWay
from portal.http.composition import WebContext
from portal.retry import Backoff

pytestmark = pytest.mark.shared_app(**SETTINGS)

MIB = 1024**2
# Begins like an MP4 file, and has three different parts.
FILM = b"\0\0\0\x18ftypisom" + b"".join(bytes([value]) * MIB for value in range(40))
BREAK = 20 * MIB
LOCAL = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
DEAD = "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'"


@dataclass
class Origin:
    """Server of a file, which breaks off responses after the bytes in `breaks`, or pauses there.

    After a break it has the file `newer`, if there is one.
    """

    url: str = ""
    content: bytes = FILM
    headers: Mapping[str, str] = field(default_factory=lambda: {"ETag": '"1"'})
    has_length: bool = True
    has_end: bool = True
    breaks: list[int] = field(default_factory=list)
    resumed: Any = None
    chunk_pause_s: float = 0
    newer: bytes = b""
    location: str = ""
    status: int = 200
    ranges: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.ranges.append(request.headers.get("Range", ""))
        if self.location:
            return web.Response(status=302, headers={"Location": self.location})
        begin = 0
        status = self.status
        headers = dict(self.headers)
        is_same = request.headers.get("If-Range") == headers.get("ETag")
        if self.ranges[-1] and is_same:
            begin = int(self.ranges[-1][len("bytes=") : -1])
            status = 206
            size = len(self.content)
            headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
        if self.has_length:
            headers["Content-Length"] = str(len(self.content) - begin)
        response = web.StreamResponse(status=status, headers=headers)
        assert request.transport
        if not self.has_end:
            request.transport.write(b"HTTP/1.0 200 OK\r\n\r\n" + self.content[:MIB])
            request.transport.close()
        await response.prepare(request)
        until_byte = self.breaks.pop(0) if self.breaks else len(self.content)
        if self.chunk_pause_s:
            for chunk in range(begin, len(self.content) - MIB, MIB):
                await response.write(self.content[chunk : chunk + MIB])
                await asyncio.sleep(self.chunk_pause_s)
                begin = chunk + MIB
        await response.write(self.content[begin:until_byte])
        if until_byte < len(self.content):
            if self.resumed:
                await self.resumed.wait()
                await response.write(self.content[until_byte:])
            else:
                request.transport.close()
            if self.newer:
                self.content = self.newer
                self.headers = {"ETag": '"2"'}
        return response


@asynccontextmanager
async def serving(**values: Any) -> AsyncIterator[Origin]:
    origin = Origin(**values)
    app = web.Application()
    app.router.add_get("/{name:.*}", origin.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    async with listening(runner) as address:
        origin.url = f"{address}/films/a%20film.mov?sign=1"
        yield origin


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "WAIT_S", 0.01)
    monkeypatch.setattr(fetching, "BACKOFF", Backoff(first_s=0.01, cap_s=0.01))


def body_of(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "title": "Harbour", "categoryIds": [1], **more}


async def begun(client: Any, url: str, **more: Any) -> str:
    """The id of an import's video."""
    response = await client.post("/api/imports", json=body_of(url, **more))
    record = await answered(response, 202)
    assert record["url"] == response.headers["Location"] == f"/api/videos/{record['id']}"
    return str(record["id"])


async def carry_out(resources: WebContext, video_id: str, **settings: Any) -> None:
    """Run an import as its job does."""
    config = replace(resources.config, **settings)
    await imports.run(UUID(video_id), tools_for(resources, config=config))


async def begin_fetch(resources: WebContext, video_id: str) -> asyncio.Task[None]:
    """Start the job, and return it once a part is in storage."""
    running = asyncio.create_task(carry_out(resources, video_id))
    await until_found(resources.config.database_url, "SELECT FROM imports WHERE received_bytes > 0")
    return running


async def file_of(resources: WebContext, video_id: str) -> bytes:
    return await resources.storage.get((await Video.get(id=video_id)).storage_key)


async def expect_nothing_stored(resources: WebContext) -> None:
    upload = await Upload.get()
    assert upload.multipart_id is None
    assert not await resources.storage.list_some(upload.key)


async def test_file_becomes_the_video_that_was_announced(
    client: Client, resources: WebContext
) -> None:
    columns = {"tags": "sea", "passthrough": "my 1", "visibility": "unlisted"}
    disposition = {"Content-Disposition": 'attachment; filename="harbour.mp4"'}
    async with serving(headers=disposition) as origin:
        video_id = await begun(client, origin.url, **columns)
        path = f"/api/videos/{video_id}"
        early = await problem(await client.get(path), 404, "video_not_found")
        assert "still being imported" in early["detail"]
        transcode = await answered(await client.get(f"{path}/transcode"))
        assert (transcode["stage"], transcode["percent"], transcode["failure"]) == (
            "importing",
            0,
            None,
        )
        # The upload of a waiting import does not count as abandoned.
        await tidy(resources, now=hence(hours=25))
        await carry_out(resources, video_id)
    record = await answered(await client.get(path))
    assert (record["status"], record["fileName"]) == ("processing", "harbour.mp4")
    assert (record["title"], record["description"], record["tags"]) == ("Harbour", "", "sea")
    assert (record["sizeBytes"], origin.ranges) == (len(FILM), [""])
    video = await Video.get(id=video_id)
    assert (video.passthrough, video.visibility) == ("my 1", "unlisted")
    assert video.storage_key.endswith(".mov")
    assert await resources.storage.get(video.storage_key) == FILM
    assert (await answered(await client.get(f"{path}/transcode")))["stage"] == "waiting"
    [event] = (await answered(await client.get("/api/events")))["events"]
    assert (event["type"], event["data"]["passthrough"]) == ("video.created", "my 1")
    assert not await Import.exists()
    await carry_out(resources, video_id)
    assert await Video.all().count() == 1


@pytest.mark.parametrize(
    ("origin", "ranges"),
    [
        ({}, ["", f"bytes={16 * MIB}-"]),
        ({"headers": {}}, ["", ""]),
        ({"headers": {"ETag": 'W/"1"'}}, ["", ""]),
        ({"has_length": False}, ["", ""]),
        # There is another version meanwhile, of which no range is sent.
        ({"newer": FILM[:100] + FILM}, ["", f"bytes={16 * MIB}-"]),
    ],
)
async def test_fetch_that_breaks_off_goes_on_where_the_server_can(
    client: Client, resources: WebContext, origin: dict[str, Any], ranges: list[str]
) -> None:
    async with serving(breaks=[BREAK], **origin) as server:
        video_id = await begun(client, server.url)
        await carry_out(resources, video_id)
    assert server.ranges == ranges
    assert await file_of(resources, video_id) == server.content


@pytest.mark.parametrize("headers", [{"ETag": '"1"'}, {}])
async def test_of_two_runs_the_later_one_makes_the_video(
    client: Client, resources: WebContext, headers: dict[str, str]
) -> None:
    async with serving(breaks=[BREAK, BREAK], resumed=asyncio.Event(), headers=headers) as server:
        video_id = await begun(client, server.url)
        first = await begin_fetch(resources, video_id)
        later = asyncio.create_task(carry_out(resources, video_id))
        await until(lambda: len(server.ranges) == 2, timeout_s=10)
        server.resumed.set()
        await asyncio.gather(first, later)
    assert len(server.ranges) == 2
    assert await file_of(resources, video_id) == FILM


async def test_import_that_is_deleted_ends_and_leaves_nothing(
    client: Client, resources: WebContext
) -> None:
    async with serving(breaks=[BREAK], resumed=asyncio.Event(), has_length=False) as server:
        video_id = await begun(client, server.url)
        address = f"/api/videos/{video_id}"
        running = await begin_fetch(resources, video_id)
        transcode = await answered(await client.get(f"{address}/transcode"))
        assert (transcode["stage"], transcode["percent"]) == ("importing", 0)
        assert await answered(await client.delete(address), 202) == {"id": video_id}
        await problem(await client.delete(address), 404, "video_not_found")
        server.resumed.set()
        await running
    assert server.ranges == [""]
    assert not await Import.exists()
    await expect_nothing_stored(resources)


async def test_parts_that_storage_loses_are_fetched_again(
    client: Client, resources: WebContext
) -> None:
    """Storage loses the parts in the row, and then the parts of a complete file."""
    for received_bytes, ranges in ((16 * MIB, [f"bytes={16 * MIB}-", ""]), (len(FILM), [""])):
        async with serving() as server:
            video_id = await begun(client, server.url)
            lost = {"received_bytes": received_bytes, "whole_bytes": len(FILM), "validator": '"1"'}
            await Import.all().update(**lost)
            await carry_out(resources, video_id)
        assert server.ranges == ranges
        assert await file_of(resources, video_id) == FILM


@pytest.mark.parametrize(
    ("origin", "code", "words", "requests"),
    [
        ({"content": b"<html>Sign in</html>"}, "import_not_video", "an MP4", 1),
        ({"content": b""}, "import_not_video", "an MP4", 1),
        ({"content": FILM + b"1"}, "import_too_large", "41,943,053 bytes", 1),
        ({"content": FILM + b"1", "has_length": False}, "import_too_large", "41,943,053", 1),
        ({"has_end": False}, "import_unreachable", "size", 1),
        ({"status": 404}, "import_unreachable", "status 404", 1),
        ({"status": 503}, "import_unreachable", "503", 5),
        ({"breaks": [MIB] * 5}, "import_unreachable", "could not be fetched", 5),
        ({"location": "http://10.0.0.1/a.mp4"}, "import_unreachable", "10.0.0.1 is no public", 1),
        ({"location": "file:///etc/passwd"}, "import_unreachable", "Give an address", 1),
        ({"location": "again.mp4"}, "import_unreachable", "more than 5 redirects", 6),
    ],
)
async def test_what_can_not_be_published_fails_with_a_name_and_leaves_nothing(
    client: Client,
    resources: WebContext,
    origin: dict[str, Any],
    code: str,
    words: str,
    requests: int,
) -> None:
    async with serving(**origin) as server:
        video_id = await begun(client, server.url)
        await carry_out(resources, video_id, max_source_bytes=len(FILM))
        assert len(server.ranges) == requests
    transcode = await answered(await client.get(f"/api/videos/{video_id}/transcode"))
    assert (transcode["stage"], transcode["failure"]["code"]) == ("failed", code)
    assert words in transcode["failure"]["message"]
    address = await problem(await client.get(f"/api/videos/{video_id}"), 404, "import_failed")
    assert words in address["detail"]
    page = await client.get(f"/videos/{video_id}")
    assert (page.status_code, "The import failed." in await text_of(page)) == (404, True)
    [event] = (await answered(await client.get("/api/events?type=import.failed")))["events"]
    assert event["data"] == {"id": video_id, "failure": transcode["failure"]}
    [listed] = (await answered(await client.get("/api/imports")))["imports"]
    assert address["failure"] == listed["failure"] == transcode["failure"]
    await expect_nothing_stored(resources)
    await tidy(resources, now=hence(hours=23))
    assert await Import.exists()
    await tidy(resources, now=hence(hours=25))
    assert not await Import.exists()


async def test_failure_does_not_tell_what_a_host_name_resolves_to(
    client: Client, resources: WebContext
) -> None:
    async with serving() as server:
        url = server.url.replace("127.0.0.1", "localhost")
        for networks, words in (((), "leads to a network"), (LOCAL, "could not be reached")):
            # No server listens on port 1.
            address = re.sub(r":\d+/", ":1/", url) if networks else url
            video_id = await begun(client, address)
            await carry_out(resources, video_id, outgoing_networks=networks)
            transcode = await answered(await client.get(f"/api/videos/{video_id}/transcode"))
            message = transcode["failure"]["message"]
            assert words in message
            assert "127.0.0.1" not in message
            assert "::1" not in message


async def test_slow_import_gives_way_to_one_that_waits_and_ends_without_patience(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """queue/test_scheduling tests which imports wait, and which one begins next."""
    monkeypatch.setattr(fetching, "BEAT_S", 0.05)
    monkeypatch.setattr(fetching, "GIVE_WAY_AFTER_S", 0.1)
    async with serving(breaks=[1] * 2, resumed=asyncio.Event()) as slow:
        slow_id = await begun(client, slow.url)
        await begun(client, slow.url)
        with pytest.raises(GivesWay):
            await carry_out(resources, slow_id)
        monkeypatch.setattr(fetching, "PATIENCE_S", 0.3)
        monkeypatch.setattr(fetching, "GIVE_WAY_AFTER_S", 60.0)
        await carry_out(resources, slow_id)
    transcode = await answered(await client.get(f"/api/videos/{slow_id}/transcode"))
    assert transcode["failure"]["code"] == "import_too_slow"
    assert "less than 32 kB a second" in transcode["failure"]["message"]


async def test_steady_server_is_not_slow(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file takes longer than the patience, which the bytes that arrive earn back."""
    monkeypatch.setattr(fetching, "BEAT_S", 0.05)
    monkeypatch.setattr(fetching, "PATIENCE_S", 0.5)
    async with serving(chunk_pause_s=0.02) as server:
        video_id = await begun(client, server.url)
        await carry_out(resources, video_id)
    assert await file_of(resources, video_id) == FILM


async def test_bad_requests_name_what_is_at_fault(client: Client) -> None:
    for url in ("ftp://example.org/a.mp4", "https://10.0.0.1/a.mp4", "https://a@example.org/", ""):
        assert set(await faults(await client.post("/api/imports", json=body_of(url)))) == {"/url"}
    more = {"title": "", "categoryIds": [99], "passthrough": "é" * 513, "visibility": "all"}
    body = body_of("https://example.org", **more)
    pointers = set(await faults(await client.post("/api/imports", json=body)))
    assert pointers == {"/title", "/categoryIds/0", "/passthrough", "/visibility"}


async def test_import_is_its_owners_alone(app: Quart, resources: WebContext) -> None:
    admin = program(app, await token_of(await make_account("olga")))
    edith, emil = [await make_account(name, Role.EDITOR) for name in ("edith", "emil")]
    owner, other = [program(app, await token_of(account)) for account in (edith, emil)]
    async with serving() as server:
        video_id = await begun(owner, server.url, visibility="private")
        path = f"/api/videos/{video_id}"
        assert (await owner.get(f"{path}/transcode")).status_code == 200
        await problem(await other.get(f"{path}/transcode"), 404, "video_not_found")
        await problem(await other.ask("DELETE", path), 404, "video_not_found")
        unwanted = await begun(owner, server.url)
        await answered(await admin.ask("DELETE", f"/api/videos/{unwanted}"), 202)
        await carry_out(resources, video_id)
    assert (await owner.get(path)).status_code == 200
    assert (await other.get(path)).status_code == 404
    assert (await Video.get()).owner_id == edith.id


async def test_import_follows_its_account(
    app: Quart, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = await make_account("olga")
    edith, emil = [await make_account(name, Role.EDITOR) for name in ("edith", "emil")]
    run = Fetch.run
    async with serving() as server:
        for account, change in ((edith, people.remove), (emil, people.disable)):

            async def run_and_change(
                fetch: Fetch, account: Any = account, change: Any = change
            ) -> None:
                await run(fetch)
                await change(account.id, by=person(olga))

            monkeypatch.setattr(Fetch, "run", run_and_change)
            video_id = await begun(program(app, await token_of(account)), server.url)
            await carry_out(resources, video_id)
    # The videos of a removed account have a new owner; a disabled account publishes none.
    assert (await Video.get()).owner_id == olga.id


async def test_failed_import_is_told_to_its_owner_and_admins_alone(
    app: Quart, resources: WebContext
) -> None:
    """Lists, the video's address, events and webhooks tell it."""
    admins = [await make_account("olga"), await make_account("adam", Role.ADMIN)]
    edith, emil = [await make_account(name, Role.EDITOR) for name in ("edith", "emil")]
    olga, adam, owner, other = [
        program(app, await token_of(account)) for account in (*admins, edith, emil)
    ]
    async with serving(status=404) as server, receiving() as receiver:
        for sender in (olga, adam):
            body = {"url": receiver.url, "events": ["import.failed"]}
            await answered(await sender.post("/api/webhooks", json=body), 201)
        # Only what its account may see is sent to a webhook.
        await Webhook.filter(account_id=admins[1].id).update(account_id=emil.id)
        video_id = await begun(owner, server.url)
        await carry_out(resources, video_id)
        await send_due(resources.config)
    for reader in (olga, adam, owner):
        [event] = (await answered(await reader.get("/api/events")))["events"]
        assert (event["type"], event["sequence"]) == ("import.failed", 1)
        [listed] = (await answered(await reader.get("/api/imports")))["imports"]
        assert (listed["id"], listed["state"], listed["title"]) == (video_id, "failed", "Harbour")
        assert listed["failure"]["code"] == "import_unreachable"
        address = await reader.get(f"/api/videos/{video_id}")
        assert (await problem(address, 404, "import_failed"))["failure"] == listed["failure"]
    assert (await answered(await other.get("/api/imports")))["imports"] == []
    for reader in (other, Sender(app)):
        assert (await answered(await reader.get("/api/events")))["events"] == []
        await problem(await reader.get(f"/api/videos/{video_id}"), 404, "video_not_found")
    [payload] = receiver.events
    assert {**event, "timestamp": payload["timestamp"]} == payload


async def test_list_of_imports_is_in_pages(client: Client) -> None:
    ids = [await begun(client, f"https://example.org/{number}.mp4") for number in range(3)]
    await problem(await client.get("/api/imports?cursor=none"), 422, "validation_failed")
    far_east = f"2026-01-01T00:00:00%2B23:00_{uuid4()}"
    assert (await client.get(f"/api/imports?cursor={far_east}")).status_code == 200
    listed_ids = []
    query = "limit=2"
    while query:
        page = await answered(await client.get(f"/api/imports?{query}"))
        listed_ids += [row["id"] for row in page["imports"]]
        cursor = page["nextCursor"]
        query = f"limit=2&cursor={cursor}" if cursor else ""
    assert listed_ids == ids[::-1]


@pytest.mark.soak
async def test_worker_killed_while_it_fetches_leads_to_one_video(
    environ: dict[str, str], short_video: Path
) -> None:
    settings = {**environ, "OUTGOING_ALLOW_HTTP": "on", "OUTGOING_NETWORKS": "127.0.0.0/8"}
    film = short_video.read_bytes() + (40 * MIB).to_bytes(4) + b"free" + bytes(40 * MIB - 8)
    database_url = environ["DATABASE_URL"]
    async with (
        serving(content=film, breaks=[BREAK], resumed=asyncio.Event()) as server,
        run_portal(settings, worker=False) as portal,
    ):
        options = ("--url", portal.base_url, "--category", "1")
        publishing = asyncio.create_task(command({}, "publish", server.url, *options))
        async with process("worker", settings) as worker:
            await until_found(database_url, "SELECT 1 FROM imports WHERE received_bytes > 0")
            worker.kill()
        await run_sql(database_url, DEAD)
        async with process("worker", settings):
            published = await publishing
        [(video_id, size)] = await rows(database_url, "SELECT id::text, size_bytes FROM videos")
    assert published.out.startswith(f"{portal.base_url}/hls/{video_id}/")
    assert (server.ranges, size) == (["", f"bytes={16 * MIB}-"], len(film))
