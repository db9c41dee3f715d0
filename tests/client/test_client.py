"""The API client: uploads in parts over a bad network, retries, and secrets."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from api_client import rows
from bad_network import Network, network_to
from http_server import listening
from running_portal import run_portal, until
from upload_client import MIB, PART_BYTES

from portal.client import Portal, PortalFailure, PortalRefused, calls
from portal.client.calls import Api
from portal.client.publish import send_file
from portal.config import Config
from portal.retry import Backoff
from portal.storage.bucket import Storage, open_storage

LARGE_BYTES = 70 * MIB
TOKEN = "portal_" + "a" * 43
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BACKOFF", Backoff(first_s=0.05, cap_s=0.05))


def server(answer: Answer) -> AbstractAsyncContextManager[str]:
    """Run a server with a request handler; yields its URL."""
    return listening(web.ServerRunner(web.Server(answer)))


async def test_token_is_sent_to_the_portal_only_and_not_after_a_redirect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign_requests: list[str] = []
    tokens: list[str | None] = []

    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        foreign_requests.append(f"{request.method} {request.path} {dict(request.headers)}")
        await request.read()
        return web.json_response({})

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        tokens.append(request.headers.get("Authorization"))
        if request.path == "/api/categories":
            return web.json_response({"categories": [{"id": 1, "name": "Music"}]})
        if request.path == "/api/videos/presign":
            return web.json_response({"key": "a"})
        if request.path == "/api/uploads":
            parts = {"partSizeBytes": 9, "partCount": 1, "parts": []}
            return web.json_response({"uploadId": "1", "state": "uploading", **parts})
        if request.path == "/api/uploads/1/parts/1":
            return web.json_response({"uploadUrl": f"{storage_url}/a"})
        if request.path == "/api/uploads/1/complete":
            return web.json_response({})
        if request.path == "/api/videos":
            return web.json_response({"id": "1"}, status=201)
        raise web.HTTPTemporaryRedirect(f"{storage_url}/b")

    (tmp_path / "a.mp4").write_bytes(b"a film")
    async with (
        server(elsewhere) as storage_url,
        server(answer) as url,
        aiohttp.ClientSession() as session,
    ):
        async with Portal(url, token=TOKEN) as portal:
            await portal.publish(tmp_path / "a.mp4", categories=[1])
        await Api(session, url, token=TOKEN).call("POST", "/api/elsewhere", {})
    assert tokens == [f"Bearer {TOKEN}"] * 7
    assert [line.partition(" {")[0] for line in foreign_requests] == ["PUT /a", "POST /b"]
    text = "".join([*foreign_requests, *capsys.readouterr()])
    assert "authorization" not in text.lower()
    assert TOKEN not in text


async def test_busy_portal_is_called_again_and_other_errors_are_raised() -> None:
    """Some responses are those of a proxy, or of a server that stops during a request."""
    answers = [
        web.Response(status=500),
        web.Response(status=502, text="<html>Bad gateway</html>", content_type="text/html"),
        web.json_response("gone", status=504),
        web.json_response({}, status=429, headers={"Retry-After": "1"}),
        web.json_response({"key": "found"}),
        web.json_response(["gone"], status=404),
        web.Response(status=401, text="<html>No</html>", content_type="text/html"),
    ]

    cut = [web.StreamResponse(headers={"Content-Length": "390"})]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if cut:
            await cut.pop().prepare(request)
            assert request.transport
            request.transport.close()
        return answers.pop(0)

    async with server(answer) as portal_url, aiohttp.ClientSession() as session:
        api = Api(session, portal_url)
        began_at = monotonic()
        assert await api.call("GET", "/api/videos/1") == {"key": "found"}
        assert monotonic() - began_at >= 1, "Retry-After was ignored"
        for words in ("status 404", "requires a password. Put it into the portal's URL"):
            with pytest.raises(PortalRefused, match=words):
                await api.call("GET", "/api/videos/1")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://publisher:secret@127.0.0.1:1", "http://127.0.0.1:1: Cannot connect"),
        ("publisher:secret@portal.example", "Use a portal's URL"),
    ],
)
async def test_errors_do_not_contain_the_password_of_the_url(address: str, words: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(PortalFailure, match=words) as caught:
            await Api(session, address).call("GET", "/api/categories")
    assert "secret" not in str(caught.value)


@pytest.fixture
async def network(environ: dict[str, str]) -> AsyncIterator[Network]:
    """Run a bad network between clients and storage."""
    async with network_to(environ["S3_ENDPOINT_URL"]) as network:
        yield network


@pytest.fixture
async def api(environ: dict[str, str], network: Network) -> AsyncIterator[Api]:
    environ = {**environ, "S3_PUBLIC_ENDPOINT_URL": network.url}
    async with (
        run_portal(environ, worker=False) as portal,
        aiohttp.ClientSession() as session,
    ):
        yield Api(session, portal.base_url)


@pytest.fixture
async def storage(config: Config) -> AsyncIterator[Storage]:
    """Open storage without the bad network."""
    async with open_storage(config) as storage:
        yield storage


@pytest.fixture
def large_file(tmp_path: Path) -> Path:
    """Create a file whose parts all differ."""
    path = tmp_path / "large.mp4"
    with path.open("wb") as file:
        for number in range(0, LARGE_BYTES, 1024**2):
            file.write(hashlib.sha256(str(number).encode()).digest() * 32_768)
        file.write(b"the end")
    return path


async def sent(api: Api, file: Path) -> str:
    """Send a file like `portal publish`; return its key."""
    presign = {"fileName": file.name, "contentType": "video/mp4"}
    upload = await api.call("POST", "/api/videos/presign", presign)
    await send_file(api, file, upload["key"])
    return str(upload["key"])


async def test_parts_of_a_large_file_are_sent_again_after_a_broken_connection(
    api: Api, network: Network, storage: Storage, large_file: Path
) -> None:
    network.cut_at([PART_BYTES // 2, 3 * PART_BYTES])
    key = await sent(api, large_file)
    assert network.cuts == 2
    assert await storage.get(key) == large_file.read_bytes()
    upload = await api.call("GET", f"/api/uploads/{key[7:39]}")
    assert (upload["state"], upload["partCount"]) == ("stored", 5)


@pytest.mark.slow
async def test_upload_that_storage_loses_is_started_again(
    api: Api, network: Network, storage: Storage, config: Config, large_file: Path
) -> None:
    is_under_way = asyncio.Event()
    enough_bytes = network.passed_bytes + PART_BYTES // 2

    def stall(passed_bytes: int) -> None:
        if passed_bytes > enough_bytes:
            network.stall()
            is_under_way.set()

    network.on_passed = stall
    sending = asyncio.create_task(sent(api, large_file))
    await until(is_under_way.is_set, timeout_s=20)
    network.on_passed = None
    # A restart of the embedded server has the same effect.
    [upload] = await rows(config.database_url, "SELECT key, multipart_id FROM uploads")
    await storage.multiparts.abort(*upload)
    network.cut()
    network.flow()
    assert await storage.get(await sending) == large_file.read_bytes()


async def test_client_polls_without_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some proxies block streams."""
    monkeypatch.setattr("portal.client.portal.POLL_INTERVAL_S", 0.01)
    statuses = ["processing", "processing", "ready"]
    pages = [["1"], [], ["2", "3"], []]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/events/stream") or request.path == "/api/videos/1/events":
            return web.json_response({"code": "not_found"}, status=404)
        if request.path == "/api/events":
            page = pages.pop(0)
            assert request.query.get("after") == (received[-1] if received else None)
            return web.json_response({"events": page, "nextAfter": (received + page)[-1]})
        return web.json_response({"status": statuses.pop(0)})

    received: list[Any] = []
    async with server(answer) as url, Portal(url) as portal:
        assert (await portal.wait("1"))["status"] == "ready"
        async with aclosing(portal.events(after="")) as events:
            while len(received) < 3:
                received.append(await anext(events))
    assert received == ["1", "2", "3"]
