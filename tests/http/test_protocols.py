"""HTTP/1.1 with odd targets and hosts, and the refusal of other protocols."""

import asyncio
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import pytest
from running_portal import LivePortal

import portal.web.serve
from portal.web.serve import log_loop_error


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


def test_broken_connection_costs_one_line_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a request that Hypercorn can't read, such as a WebSocket with an odd protocol."""
    log = Mock()
    monkeypatch.setattr(portal.web.serve, "logger", log)
    loop = Mock()
    log_loop_error(loop, {"transport": Mock(), "exception": UnicodeDecodeError("a", b"", 0, 1, "")})
    [call] = log.warning.call_args_list
    assert "Connection closed" in call.args[0]
    loop.default_exception_handler.assert_not_called()
