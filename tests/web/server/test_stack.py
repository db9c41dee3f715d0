"""The middlewares as they are listed, and what they have in common."""

import logging
import re

import pytest
from raw_clients import connected, served

from portal.config import Config
from portal.web import server
from portal.web.server.security_headers import Policies
from portal.web.server.stack import middlewares


async def no_page(error: Exception) -> bytes:
    return b""


def test_package_describes_the_middlewares_in_their_order(config: Config) -> None:
    described = re.findall(r"^\d+\. `(\w+)`", server.__doc__ or "", re.MULTILINE)
    listed = middlewares(config, policies=Policies(), render_page=no_page)
    assert [getattr(it, "func", it).__name__ for it in listed] == described


async def test_log_lines_of_refused_requests_are_rate_limited(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hosts = {"a..b": b" 400 ", "evil.example": b" 421 "}
    async with served(config, monkeypatch) as running:
        # The app has replaced the handlers with its own.
        logging.getLogger().addHandler(caplog.handler)
        for _ in range(50):
            for host, status in hosts.items():
                async with connected(running) as peer:
                    await peer.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    answer = await peer.answer()
                    assert answer.status == int(status)
    lines = [it for it in caplog.records if it.levelno >= logging.INFO and it.name != "asyncio"]
    assert {it.getMessage().partition(":")[0] for it in lines} == {
        "Requests refused, bad request",
        "Requests refused, unknown host",
    }
    # One of each in ten seconds.
    assert len(lines) <= 10
    assert not any(it.exc_info for it in lines)
