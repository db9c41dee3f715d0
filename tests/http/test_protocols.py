"""HTTP/1.1 with odd targets and hosts, and the refusal of other protocols."""

import asyncio
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import pytest
from hypercorn.asyncio import serve
from running_portal import LivePortal, answers, free_port, until

import portal.web.serve
from portal.web.serve import log_loop_error, server_config

WEBSOCKET = (
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: \xff\r\n\r\n"
)


async def answer_to(base_url: str, request: bytes) -> bytes:
    """Send bytes, and return the server's response until it closes the connection."""
    address = urlsplit(base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_unencrypted_http2_is_refused(live_portal: LivePortal) -> None:
    async with httpx.AsyncClient(http1=False, http2=True) as client:
        response = await client.get(f"{live_portal.base_url}/api/categories")
    assert response.http_version == "HTTP/2"
    assert response.status_code == 505
    assert response.json()["code"] == "http_version_not_supported"


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
async def test_invalid_hosts_are_unknown(live_portal: LivePortal, host: bytes) -> None:
    request = b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host
    assert (await answer_to(live_portal.base_url, request)).startswith(b"HTTP/1.1 421")


async def test_request_that_can_not_be_read_costs_one_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Mock()
    monkeypatch.setattr(portal.web.serve, "logger", log)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    server = server_config("", host="127.0.0.1", port=free_port())
    # `serve` warns of any other number.
    server.workers = 1
    address = f"http://{server.bind[0]}"
    ending = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(minimal_app, server, shutdown_trigger=ending.wait))
        await until(lambda: answers(address), timeout_s=5, interval_s=0.01)
        assert await answer_to(address, WEBSOCKET) == b""
        ending.set()
    loop.set_exception_handler(None)
    [call] = log.warning.call_args_list
    assert "Connection closed" in call.args[0]


async def minimal_app(scope: Any, receive: Any, send: Any) -> None:
    """Start and end with the server, and answer each request with an empty body."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    for stage in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{stage}.complete"})
