"""Attacks by the spelling of playback addresses, as they stand in requests on a real connection."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from log_lines import collected_lines
from private_videos import SEGMENT, make_ready
from raw_clients import Answer, Served, ask, served
from signed_in import NO_LIMITS, hash_quickly, make_account

from portal.accounts.permissions import EVERYONES
from portal.config import Config
from portal.database.states import Role
from portal.videos import playback_links
from portal.web.composition import open_context

# With the token as T, its video as V, another one as O and the server's own name as H. Each names
# something private; none may be answered with anything of a video.
HOSTILE = (
    *("/p/T/hls/V/1/../../O/1/master.m3u8", "/p/T/hls/V/1/%2e%2e/%2e%2e/O/1/master.m3u8"),
    *("/p/T/hls/V/../O/1/master.m3u8", "/p/T/hls/V%2f..%2fO/1/master.m3u8"),
    *("/p/T/../hls/V/1/master.m3u8", "/p/T/%2e%2e/%2e%2e/hls/V/1/master.m3u8"),
    *("/p/T/./hls/V/1/master.m3u8", "/p/T/hls/V/1/low/../master.m3u8"),
    *("/p/T//hls/V/1/master.m3u8", "/p//T/hls/V/1/master.m3u8"),
    "/p/T/hls//V/1/master.m3u8",
    *("/p/T/p/T/hls/V/1/master.m3u8", "/p/x/p/T/hls/V/1/master.m3u8", "/x/p/T/hls/V/1/master.m3u8"),
    *("/P/T/hls/V/1/master.m3u8", "/p/T/HLS/V/1/master.m3u8", "/p/T/hls/V/1/MASTER.m3u8"),
    *("/p/T./hls/V/1/master.m3u8", "/p/T/hls/V./1/master.m3u8", "/p/T/hls/V/1/master.m3u8."),
    *("/p//hls/V/1/master.m3u8", "/p/hls/V/1/master.m3u8", "/p/%20/hls/V/1/master.m3u8"),
    *("/p/T%2f/hls/V/1/master.m3u8", "/p/T%2fx/hls/V/1/master.m3u8", "/p/T%00/hls/V/1/master.m3u8"),
    *("/p/T;x=1/hls/V/1/master.m3u8", "/p/T%20/hls/V/1/master.m3u8", "/p/%20T/hls/V/1/master.m3u8"),
    *("/p/T=/hls/V/1/master.m3u8", "/p/T==/hls/V/1/master.m3u8", "/p/TxT/hls/V/1/master.m3u8"),
    *(
        "/p/T,T/hls/V/1/master.m3u8",
        "/p/T%0a/hls/V/1/master.m3u8",
        "/p/T%0d%0a/hls/V/1/master.m3u8",
    ),
    *("/p/T\\hls\\V\\1\\master.m3u8", "/p\\T/hls/V/1/master.m3u8", "/p/T%5c/hls/V/1/master.m3u8"),
    *("/p/T?/hls/V/1/master.m3u8", "/p/T%3f/hls/V/1/master.m3u8", "/p/T%23/hls/V/1/master.m3u8"),
    *("/p/T%252fhls/V/1/master.m3u8", "/p/T/hls%252fV/1/master.m3u8", "/p/T/hls/V/1/%252e%252e/x"),
    *("/p/T/hls/V/1/master.m3u8%00", "/p/T/hls/V/1/master.m3u8%2f", "/p/T/hls/V/1/master.m3u8/"),
    *("/p/T/hls/V/01x/master.m3u8", "/p/T/hls/V/-1/master.m3u8", "/p/T/hls/V/9/master.m3u8"),
    *("/p/T/hls/V/99999999999999999999/master.m3u8", "/p/T/hls/V/1/x/y/z.m4s", "/p/T/hls/V/1/"),
    *("/p/T/hls/O/1/master.m3u8", "/p/T/hls/O/1/low/00000.m4s", "/p/T/embed/O", "/p/T/embed/V/"),
    *(
        "/p/T/videos/O/poster.jpg",
        "/p/T/videos/O/storyboard.vtt",
        "/p/T/videos/V",
        "/p/T/videos/V/",
    ),
    *("/p/T", "/p/T/", "/p/T/.", "/p/T/..", "/p/T/%2e%2e/", "/p/T/api/videos/V", "/p/T//"),
    *(
        "/p/T/p/T",
        "/p/T/welcome/x",
        "/p/T/sign-in",
        "/p/T/static/x.js",
        "/p/T/metrics",
        "/p/T/healthz",
    ),
    *("http://H/p/T/hls/O/1/master.m3u8", "http://H/p/T"),
    *("HTTP://evil.example/p/T/hls/O/1/master.m3u8", "p/T/hls/V/1/master.m3u8", "*/p/T/hls/V"),
    *("//evil.example/p/T/hls/V/1/master.m3u8", "/p/T//evil.example/%2e%2e", "/p//evil.example/"),
    *(
        "/p/T/https:%2f%2fevil.example/",
        "/p/%5cevil.example/embed/V",
        "/p/T/embed/%5c%5cevil.example",
    ),
)
# The same address in other words: what gets there is the video that the token is for.
EQUIVALENT = (
    *("/p/T/hls/V/1/master.m3u8", "/p/T/%68ls/V/1/master.m3u8", "/%70/T/hls/V/1/master%2em3u8"),
    *("http://H/p/T/hls/V/1/master.m3u8", "/p/T/hls/V/1/master.m3u8?token=none#x"),
    *("//p/T/hls/V/1/master.m3u8", "/%2fp/T/hls/V/1/master.m3u8", "///p/T/hls/V/1/master.m3u8"),
    "http://H//p/T/hls/V/1/master.m3u8",
)


@dataclass(frozen=True)
class Target:
    """A server, and what stands for the letters of the addresses."""

    server: Served
    letters: dict[str, str]

    def address(self, pattern: str) -> str:
        return re.sub("(?<![A-Z])[TVOH](?![A-Z])", lambda it: self.letters[it[0]], pattern)

    async def ask(self, pattern: str, *headers: str, method: str = "GET") -> Answer:
        return await ask(self.server, method, self.address(pattern), *headers)


@pytest.fixture
async def target(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Target]:
    """A portal with two private videos, and a link to one of them."""
    hash_quickly(monkeypatch)
    config = replace(config, **NO_LIMITS)
    # One after the other: a process has one database open.
    async with open_context(config) as context:
        await make_account("olga")
        editor = await make_account("ed", Role.EDITOR)
        video, other = [await make_ready(context, editor) for _ in range(2)]
        link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
        token = await link.token(context.signing_keys)
    letters = {"T": token, "V": str(video.id), "O": str(other.id), "H": "portal"}
    async with served(config, monkeypatch) as server:
        yield Target(server, letters)


async def test_other_spellings_of_the_same_address_are_the_same(target: Target) -> None:
    """Nine that a client may write: else nothing below would be attacked."""
    with collected_lines() as lines:
        for pattern in EQUIVALENT:
            answer = await target.ask(pattern)
            assert (answer.status, answer.body[:7]) == (200, b"#EXTM3U"), pattern
            assert answer.headers["referrer-policy"] == "no-referrer"
    assert target.letters["T"].split(".")[1] not in "".join(lines)


async def test_no_spelling_opens_more(target: Target) -> None:
    """Some eighty spellings with two methods each; the token is in no line of the log."""
    with collected_lines() as lines:
        await spell(target)
    log = "\n".join(lines)
    assert "/p/…" in log
    assert [it for it in target.letters["T"].split(".")[1:] if it in log] == []
    assert len(HOSTILE) > 75


async def spell(target: Target) -> None:
    for pattern in HOSTILE:
        for method in ("GET", "POST"):
            answer = await target.ask(pattern, method=method)
            assert 400 <= answer.status < 500, (pattern, answer.status)
            assert b"#EXTM3U" not in answer.body, pattern
            assert SEGMENT not in answer.body, pattern
            assert "location" not in answer.headers, pattern
