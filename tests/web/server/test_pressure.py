"""More clients, slower ones and ruder ones than a process can serve: the others do not notice."""

import asyncio
import resource
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from ipaddress import ip_network
from time import monotonic
from typing import Any

import psutil
import pytest
from raw_clients import Answer, Peer, Served, ask, connected, request, served, silent_server
from running_portal import LivePortal, until

from portal.config import Config
from portal.web import app as app_module
from portal.web.assets import static_dist_dir
from portal.web.server import connection_limit

JSON = "Content-Type: application/json"
PRESIGN = "/api/videos/presign"
GOOD = b'{"fileName": "a.mp4", "contentType": "video/mp4"}'
UNFINISHED = request("POST", PRESIGN, JSON, "Content-Length: 50") + b"{"
# Of a limit of ten, one client has half.
LIMIT = 10
EACH = LIMIT // 2

Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(config: Config, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serves the app with some settings changed."""

    def serve(*, keep_alive_s: float = 30, **changes: Any) -> AbstractAsyncContextManager[Served]:
        return served(replace(config, **changes), monkeypatch, keep_alive_s=keep_alive_s)

    return serve


async def slow_senders(stack: AsyncExitStack, server: Served, *, count: int) -> list[Peer]:
    """Clients that have sent the beginning of a body."""
    peers = [await stack.enter_async_context(connected(server)) for _ in range(count)]
    for peer in peers:
        await peer.send(UNFINISHED)
    return peers


async def expect_overloaded(answer: Answer) -> None:
    assert answer.status == 503, answer
    assert answer.problem["code"] == "overloaded"
    assert 1 <= int(answer.headers["retry-after"]) <= 10
    # The headers of every answer are on this one, too.
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]


async def test_requests_beyond_the_limit_are_told_so_at_once(serve: Serve) -> None:
    """All slots of a client are taken by requests that wait for a database that hangs."""
    async with AsyncExitStack() as stack:
        silent = stack.enter_context(silent_server())
        hung = {"database_url": f"postgresql://nobody@{silent}/nothing"}
        server = await stack.enter_async_context(serve(max_concurrent_requests=LIMIT, **hung))
        waiting = [await stack.enter_async_context(connected(server)) for _ in range(EACH)]
        for peer in waiting:
            await peer.send(request("GET", "/api/categories"))
        await until(lambda: _is_full(server), timeout_s=4)
        page = await ask(server, "GET", "/")
        assert (page.status, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert b"<h1" in page.body
        # What needs nothing that hangs is there for everyone.
        assert (await ask(server, "GET", "/healthz")).status == 200
        assert (await ask(server, "GET", "/static/nothing.js")).status == 404
        for peer in waiting:
            assert (await peer.answer()).problem["code"] == "database_unavailable"


async def _is_full(server: Served) -> bool:
    answer = await ask(server, "GET", "/api/categories")
    if answer.problem["code"] != "overloaded":
        return False
    await expect_overloaded(answer)
    return True


async def test_clients_that_send_slowly_keep_out_nobody_else(serve: Serve) -> None:
    limits = {"max_concurrent_requests": LIMIT, "trusted_proxies": (ip_network("127.0.0.1"),)}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(**limits))
        peers = await slow_senders(stack, server, count=EACH)
        await until(lambda: _is_answered(server, 503), timeout_s=10)
        assert (await ask(server, "GET", "/api/categories")).status == 200
        elsewhere = "X-Forwarded-For: 192.0.2.7"
        assert (await ask(server, "POST", PRESIGN, JSON, elsewhere, body=GOOD)).status == 200
        for peer in peers:
            peer.close()
        await until(lambda: _is_answered(server, 200), timeout_s=10)


async def _is_answered(server: Served, status: int) -> bool:
    return (await ask(server, "POST", PRESIGN, JSON, body=GOOD)).status == status


async def test_refusal_reaches_a_client_that_goes_on_sending_small_pieces(serve: Serve) -> None:
    """More pieces than the server's queue to the app holds, which nobody empties otherwise."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(max_concurrent_requests=LIMIT))
        await slow_senders(stack, server, count=EACH)
        await until(lambda: _is_answered(server, 503), timeout_s=10)
        peer = await stack.enter_async_context(connected(server))
        await peer.send(request("POST", PRESIGN, JSON, "Transfer-Encoding: chunked"))
        await peer.send(b"1\r\n \r\n" * 1000)
        await expect_overloaded(await peer.answer())
        assert await peer.is_ended()


async def test_body_that_stops_arriving_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "BODY_TIMEOUT_S", 0.5)
    async with serve() as server, connected(server) as peer:
        await peer.send(UNFINISHED)
        answer = await peer.answer()
        assert (answer.status, answer.problem["code"]) == (408, "request_timeout")
        assert await peer.is_ended()


@pytest.mark.parametrize("size", [1, 70_000])
async def test_chunked_body_is_cut_off_at_its_limit_and_told_so(serve: Serve, size: int) -> None:
    chunk = b"%x\r\n%b\r\n" % (size, b" " * size)
    async with serve() as server, connected(server) as peer:
        await peer.send(request("POST", PRESIGN, JSON, "Transfer-Encoding: chunked"))
        # Without an end, and without looking at the answer before all of it is sent.
        await peer.send(chunk * (140_000 // size))
        answer = await peer.answer()
        assert (answer.status, answer.problem["code"]) == (413, "request_entity_too_large")


async def test_refusal_of_a_large_body_reaches_a_client_that_goes_on_sending(serve: Serve) -> None:
    """A server that closed at once would reset the connection, and the answer be lost."""
    async with serve() as server, connected(server) as peer:
        await peer.send(request("POST", PRESIGN, JSON, "Content-Length: 50000000"))
        for _ in range(128):
            await peer.send(b" " * 65_536)
        assert (await peer.answer()).status == 413
        assert await peer.is_ended()


async def test_headers_that_are_too_many_or_too_large_are_refused(serve: Serve) -> None:
    async with serve() as server:
        many = [f"X-{number}: a" for number in range(100)]
        answer = await ask(server, "GET", "/api/categories", *many)
        assert (answer.status, answer.problem["code"]) == (431, "too_many_headers")
        assert (await ask(server, "GET", "/api/categories", *many[:90])).status == 200
        large = "X-Large: " + "a" * 200_000
        assert (await ask(server, "GET", "/api/categories", large)).status == 431


async def test_headers_that_trickle_in_and_idle_connections_are_ended(serve: Serve) -> None:
    async with (
        serve(keep_alive_s=1) as server,
        connected(server) as slow,
        connected(server) as idle,
    ):
        begun_at = monotonic()
        await idle.send(request("GET", "/api/categories"))
        assert (await idle.answer()).status == 200
        trickle = asyncio.create_task(_trickle(slow))
        assert await slow.is_ended()
        assert await idle.is_ended()
        assert monotonic() - begun_at >= 1
        trickle.cancel()


async def _trickle(peer: Peer) -> None:
    await peer.send(b"GET / HTTP/1.1\r\n")
    while True:
        await peer.send(b"X: a\r\n")
        await asyncio.sleep(0.2)


async def test_client_that_never_reads_its_answers_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "RESPONSE_TIMEOUT_S", 1)
    monkeypatch.setattr(connection_limit, "CLOSE_TIMEOUT_S", 0.5)
    async with serve() as server, connected(server, receive_buffer_bytes=4096) as peer:
        established = _connections(server)
        assert established
        largest = max(static_dist_dir().glob("*.js"), key=lambda path: path.stat().st_size)
        await peer.send(request("GET", f"/static/{largest.name}") * 30)
        await until(lambda: not _connections(server), timeout_s=30)


def _connections(server: Served) -> list[object]:
    """The server's ends of connections, in this process."""
    return [
        it
        for it in psutil.Process().net_connections("tcp")
        if it.laddr.port == server.port and it.status == psutil.CONN_ESTABLISHED
    ]


async def test_connections_beyond_the_limit_are_refused_and_taken_again_later(serve: Serve) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(max_connections=LIMIT))
        async with AsyncExitStack() as idle:
            for _ in range(EACH):
                await idle.enter_async_context(connected(server))
            async with connected(server) as peer:
                answer = await peer.answer()
            assert (answer.status, answer.headers["connection"]) == (503, "close")
            assert answer.headers["retry-after"]

        async def is_taken() -> bool:
            async with connected(server) as peer:
                await peer.send(request("GET", "/healthz"))
                return (await peer.answer()).status == 200

        await until(is_taken, timeout_s=10)


async def test_web_process_may_hold_as_many_connections_as_the_system_allows(
    live_portal: LivePortal,
) -> None:
    soft, hard = resource.prlimit(live_portal.web_pid, resource.RLIMIT_NOFILE)
    assert soft == hard
