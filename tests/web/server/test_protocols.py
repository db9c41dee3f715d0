"""Only HTTP/1.1 is spoken on unencrypted connections."""

import asyncio
from urllib.parse import urlsplit

import pytest
from running_portal import LivePortal

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
# A frame of HTTP/2 that opens a stream without a request in it.
BROKEN_HEADERS = b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff"
UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: %s\r\n\r\n"
)


async def answer_to(portal: LivePortal, request: bytes) -> bytes:
    """Return everything that the server answers to these bytes before it hangs up."""
    address = urlsplit(portal.base_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_http2_without_encryption_is_refused(live_portal: LivePortal) -> None:
    request = PREFACE + SETTINGS + BROKEN_HEADERS
    for answer in await asyncio.gather(*(answer_to(live_portal, request) for _ in range(30))):
        # The preface looks like two requests of HTTP/1.
        assert answer.startswith(b"HTTP/1.1 4")
        assert answer.count(b"HTTP/1.1 400") >= 1


@pytest.mark.parametrize("settings", [b"AAMAAABkAAQAAP__", b"!", b""])
async def test_upgrade_to_http2_is_ignored(live_portal: LivePortal, settings: bytes) -> None:
    assert (await answer_to(live_portal, UPGRADE % settings)).startswith(b"HTTP/1.1 200")
