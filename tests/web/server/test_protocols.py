"""Only HTTP/1.1 is spoken on unencrypted connections, and odd requests end in a line of the log."""

import asyncio
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import hypercorn.protocol
import pytest
from hypercorn.asyncio import serve
from running_portal import LivePortal, answers, free_port, until

import portal.web.serve
from portal.web.serve import Http1Protocol, server_config

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
# A frame of HTTP/2 that opens a stream without a request in it.
BROKEN_HEADERS = b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff"
UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: %s\r\n\r\n"
)

WEBSOCKET = (
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: \xff\r\n\r\n"
)


async def answer_to(base_url: str, request: bytes) -> bytes:
    """Return everything that the server answers to these bytes before it hangs up."""
    address = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_http2_without_encryption_is_refused(live_portal: LivePortal) -> None:
    request = PREFACE + SETTINGS + BROKEN_HEADERS
    for answer in await asyncio.gather(
        *(answer_to(live_portal.base_url, request) for _ in range(30))
    ):
        # The preface looks like two requests of HTTP/1.
        assert answer.startswith(b"HTTP/1.1 4")
        assert answer.count(b"HTTP/1.1 400") >= 1


@pytest.mark.parametrize("settings", [b"AAMAAABkAAQAAP__", b"!", b""])
async def test_upgrade_to_http2_is_ignored(live_portal: LivePortal, settings: bytes) -> None:
    assert (await answer_to(live_portal.base_url, UPGRADE % settings)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"?q=%zz", b"200"),
        (b"http://[/x", b"404"),
        (b"http://elsewhere.example", b"200"),
        (b"http://elsewhere.example/healthz", b"200"),
        (b"*", b"404"),
        (b"//[", b"404"),
    ],
)
async def test_odd_targets_of_requests_are_answered(
    live_portal: LivePortal, target: bytes, status: bytes
) -> None:
    request = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % target
    assert (await answer_to(live_portal.base_url, request)).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("host", [b"a..b", b".", b"a" * 64, b"a." * 200, b"\xff", b"[", b"a:b"])
async def test_hosts_that_are_none_are_unknown(live_portal: LivePortal, host: bytes) -> None:
    request = b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host
    assert (await answer_to(live_portal.base_url, request)).startswith(b"HTTP/1.1 421")


async def test_request_that_the_server_can_not_read_costs_a_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WebSockets are refused by the app, after Hypercorn has read what they ask for."""
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    log = Mock()
    monkeypatch.setattr(portal.web.serve, "logger", log)
    monkeypatch.setattr(hypercorn.protocol, "H11Protocol", Http1Protocol)
    server = server_config("", host="127.0.0.1", port=free_port())
    # Its only value that `serve` does not warn of.
    server.workers = 1
    address = f"http://{server.bind[0]}"
    ending = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(no_app, server, shutdown_trigger=ending.wait))
        await until(lambda: answers(address), timeout_s=5, interval_s=0.01)
        assert await answer_to(address, WEBSOCKET) == b""
        ending.set()
    [call] = log.warning.call_args_list
    assert "can't be read" in call.args[0]
    assert unhandled == []


async def no_app(scope: Any, receive: Any, send: Any) -> None:
    """Start and end with the server, and answer nothing but that it is there."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    for stage in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{stage}.complete"})
