"""Bytes that are no proper HTTP, or hardly, sent to the running web process over raw sockets.

Each gets a clean refusal or an ordinary answer; none gets a 500, a trace, or the next request's
answer in its place; and the process goes on as if nothing had been.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from log_checks import complaints
from running_portal import LivePortal, answers, fresh_database, run_portal
from wire_cases import BODIES, FRAMING, HEADERS, REQUEST_LINES, Case, get, line, post
from wire_paths import CONNECTIONS, HOSTS, PATHS
from yarl import URL

ANSWER_TIMEOUT_S = 60
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LEAKS = re.compile(rb"Traceback|File \"/|hypercorn|werkzeug|/site-packages/", re.IGNORECASE)


@pytest.fixture(scope="module")
async def attacked(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LivePortal]:
    """A running web process; afterwards it still runs, and its log holds no complaint."""
    log_dir = tmp_path_factory.mktemp("attacked")
    async with (
        fresh_database(services) as environ,
        run_portal(environ, worker=False, log_dir=log_dir) as portal,
    ):
        yield portal
        assert await answers(f"{portal.base_url}/readyz")
    assert complaints(log_dir / "web.log") == []


async def send(portal: LivePortal, data: bytes, *, expected: int) -> bytes:
    """Everything that is answered to these bytes until the server closes or has said enough.

    Then the connection is closed from here, which ends what the server may still wait for.
    """
    address = URL(portal.base_url)
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        said = b""
        try:
            writer.write(data)
            # What was answered before the server went can still be read.
            with suppress(ConnectionError):
                await writer.drain()
            while len(STATUS.findall(said)) < expected or not _is_whole(said):
                chunk = await reader.read(65_536)
                if not chunk:
                    break
                said += chunk
        except ConnectionError:
            return said
        finally:
            writer.close()
    return said


def _is_whole(said: bytes) -> bool:
    """Whether the last answer has come to its end, by its Content-Length."""
    head, _, body = said[said.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
    return length is None or len(body) >= int(length[1])


@pytest.mark.parametrize(
    "group",
    [REQUEST_LINES, HEADERS, FRAMING, BODIES, PATHS, HOSTS],
    ids=["request lines", "headers", "framing", "bodies", "paths", "hosts"],
)
async def test_every_case_gets_its_clean_answer(
    attacked: LivePortal, group: dict[str, Case]
) -> None:
    for name, case in group.items():
        said = await send(attacked, case.data, expected=len(case.statuses))
        found = tuple(int(status) for status in STATUS.findall(said))
        assert found == case.statuses, (name, said[:300])
        assert not LEAKS.search(said), (name, said)


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/categories", "/static/x.js", "/nothing"])
@pytest.mark.parametrize("host", ["a..b", ".", "a" * 64, "localhost:x", "l\xf6calhost"])
async def test_malformed_host_is_a_problem_on_every_path(
    attacked: LivePortal, path: str, host: str
) -> None:
    said = await send(attacked, line(f"GET {path} HTTP/1.1", host=f"Host: {host}"), expected=1)
    assert "Host header" in problem(said, status=400)["detail"]
    assert b"\r\nx-content-type-options: nosniff\r\n" in said
    assert b"\r\nx-request-id: " in said


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(get("/", "Host: localhost"), id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\nHost: localhost\n\n", id="bare line feeds"),
        pytest.param(get("/", "X-A: a\r\n b"), id="a folded header"),
    ],
)
async def test_what_the_server_refuses_is_a_problem_as_well(
    attacked: LivePortal, data: bytes
) -> None:
    said = await send(attacked, data + get("/healthz"), expected=2)
    assert "RFC 9112" in problem(said, status=400)["detail"]
    # What follows may be a part of what was refused.
    assert [int(status) for status in STATUS.findall(said)] == [400]
    assert b"\r\nconnection: close\r\n" in said.lower()


def problem(said: bytes, *, status: int) -> dict[str, str]:
    """The problem document in an answer."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"\r\ncontent-type: application/problem+json" in head.lower()
    found: dict[str, str] = json.loads(body)
    assert (found["status"], found["code"]) == (status, "bad_request")
    return found


@pytest.mark.parametrize("name", CONNECTIONS)
async def test_what_is_no_request_leaves_the_process_alone(attacked: LivePortal, name: str) -> None:
    address = URL(attacked.base_url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(CONNECTIONS[name])
    await writer.drain()
    writer.close()
    del reader
    assert await answers(f"{attacked.base_url}/healthz")


async def test_what_follows_an_ambiguous_body_is_not_a_request(attacked: LivePortal) -> None:
    """Two ways of telling a body's end are how a request is smuggled past a proxy."""
    hidden = get("/smuggled")
    body = b"0\r\n\r\n" + hidden
    both = post(body, f"Content-Length: {len(body)}", "Transfer-Encoding: chunked")
    said = await send(attacked, both, expected=2)
    assert [int(status) for status in STATUS.findall(said)] == [400]
    assert b"connection: close" in said.lower()


async def test_pipelined_requests_are_answered_in_their_order(attacked: LivePortal) -> None:
    requests = [get("/api/categories"), get("/nothing"), get("/healthz")] * 10
    said = await send(attacked, b"".join(requests), expected=len(requests))
    assert [int(status) for status in STATUS.findall(said)] == [200, 404, 200] * 10


async def test_a_target_that_names_a_host_is_read_by_its_path(attacked: LivePortal) -> None:
    said = await send(attacked, get("http://evil.example/api/categories"), expected=1)
    assert b'{"categories":' in said
    assert b"evil.example" not in said


async def test_a_connection_goes_on_after_what_was_refused_politely(attacked: LivePortal) -> None:
    refused = post(b"{", "Content-Length: 1")
    said = await send(attacked, refused + get("/healthz"), expected=2)
    assert [int(status) for status in STATUS.findall(said)] == [400, 200]


async def test_methods_in_headers_are_ignored(attacked: LivePortal) -> None:
    names = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method")
    for name in names:
        said = await send(attacked, get("/api/categories", f"{name}: DELETE"), expected=1)
        assert STATUS.findall(said) == [b"200"]


def test_no_case_was_lost() -> None:
    groups = (REQUEST_LINES, HEADERS, FRAMING, BODIES, PATHS, HOSTS, CONNECTIONS)
    assert sum(map(len, groups)) >= 425
