"""An API token goes to the portal that it is for, and nowhere else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from portal.client.calls import Api, Refused
from portal.client.publish import publish_file

TOKEN = "portal_" + "a" * 43
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    """The address of a server that gives these answers."""
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        [(host, port)] = runner.addresses
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


class Elsewhere:
    """A server that is not the portal, and what was sent to it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.heard.append(f"{request.method} {request.path} {dict(request.headers)}")
        await request.read()
        return web.json_response({})


async def test_token_is_sent_to_the_portal_and_not_to_storage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage, sent = Elsewhere(), []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        sent.append(request.headers.get("Authorization"))
        if request.path == "/api/categories":
            return web.json_response({"categories": [{"id": 1, "name": "Music"}]})
        if request.path == "/api/videos/presign":
            return web.json_response({"uploadUrl": f"{storage_url}/a", "key": "a"})
        return web.json_response({"id": "1"}, status=201)

    (tmp_path / "a.mp4").write_bytes(b"a film")
    async with server(storage.answer) as storage_url, server(answer) as portal_url:
        await publish_file(
            tmp_path / "a.mp4",
            {"title": "A"},
            categories=["1"],
            portal_url=portal_url,
            token=TOKEN,
            wait=False,
        )
    assert sent == [f"Bearer {TOKEN}"] * 3
    [put] = storage.heard
    assert put.startswith("PUT /a")
    assert "authorization" not in put.lower()
    assert TOKEN not in put + "".join(capsys.readouterr())


async def test_token_does_not_follow_a_redirect_elsewhere() -> None:
    elsewhere = Elsewhere()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect(f"{elsewhere_url}/b")

    async with (
        server(elsewhere.answer) as elsewhere_url,
        server(answer) as portal_url,
        aiohttp.ClientSession() as session,
    ):
        await Api(session, portal_url, token=TOKEN).call("POST", "/api/videos", {})
    [told] = elsewhere.heard
    assert TOKEN not in told


@pytest.mark.parametrize(
    ("status", "words"), [(401, "asks for a password. Give it in the address"), (403, "refuses")]
)
async def test_refusals_of_a_proxy_are_told_with_a_remedy(status: int, words: str) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text="<html>No</html>", content_type="text/html")

    async with server(answer) as portal_url, aiohttp.ClientSession() as session:
        with pytest.raises(Refused, match=words) as caught:
            await Api(session, portal_url).call("GET", "/api/categories")
    assert "\n" not in caught.value.message
