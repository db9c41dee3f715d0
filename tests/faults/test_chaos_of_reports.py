"""Figures equal what viewers played, while the processes that take and fold reports are killed.

Each viewer plays some parts of a film, and repeats each report until it is acknowledged.
`PORTAL_FAULT_SEED=7` repeats the choices, not the timing.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from api_client import rows
from chaos import SOON, kill, restarted
from page_rows import READY, make_row
from running_portal import answers, call, free_port, fresh_database, until

from portal.config import Config
from portal.database.connection import open_database
from portal.processes.supervisor import running_children

FILM_S = 100
VIEWERS = 500
PARTS = 3
# All parts take less time than the film: more is not believed of a viewer who just began.
LONGEST_PART_S = 30
# Commands of the processes by name, in the order in which they are killed.
PROCESSES = {"web-1": "web", "worker": "worker", "web-2": "web"}
START_MS = 1_795_728_000_000
TIMEOUT_S = 60
LEFT = "SELECT 1 FROM playback_inbox"


@pytest.mark.soak
async def test_figures_equal_what_was_played_whatever_is_killed(
    services: dict[str, str], rng: Random, tmp_path: Path
) -> None:
    async with (
        fresh_database(services) as database,
        running_children(policy=SOON) as children,
        AsyncExitStack() as stack,
    ):
        environ = {**database, "RATE_LIMIT_REPORTS": "0", "TRUSTED_PROXIES": "127.0.0.1"}
        async with open_database(Config.from_env(environ)):
            film = await make_row(1, **READY | {"duration_s": float(FILM_S)})
        urls = []
        for name, command in PROCESSES.items():
            port = str(free_port())
            started = {name: ("-m", "portal", command)}
            running = restarted(children, {**environ, "PORT": port}, tmp_path, **started)
            await stack.enter_async_context(running)
            if command == "web":
                urls.append(f"http://127.0.0.1:{port}")
                await until(partial(answers, f"{urls[-1]}/healthz"), timeout_s=TIMEOUT_S)
        parts = [played_parts(rng) for _ in range(VIEWERS)]
        # Reports wait for each other a second, so all viewers need connections of their own.
        connector = aiohttp.TCPConnector(limit=VIEWERS)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            asyncio.TaskGroup() as viewers,
        ):
            for number in range(VIEWERS):
                bodies = reports(str(film.id), number, parts[number])
                viewers.create_task(watch(session, urls, number, bodies, rng))
            for name in PROCESSES:
                await asyncio.sleep(rng.uniform(0.3, 1.5))
                await kill(children, name)

        async def is_folded() -> bool:
            return not await rows(environ["DATABASE_URL"], LEFT)

        await until(is_folded, timeout_s=TIMEOUT_S)
        figures = await call("GET", f"{urls[0]}/api/videos/{film.id}/statistics")
    viewer_counts = Counter(second for viewer in parts for second in {*played_seconds(viewer)})
    plays = Counter(second for viewer in parts for second in played_seconds(viewer))
    assert figures["viewers"] == figures["views"] == VIEWERS
    assert figures["watchSeconds"] == sum(plays.values())
    assert figures["retention"] == [viewer_counts[second] / VIEWERS for second in range(FILM_S)]
    assert figures["replays"] == [
        plays[second] / viewer_counts[second] if viewer_counts[second] else 0
        for second in range(FILM_S)
    ]


def played_parts(rng: Random) -> list[tuple[int, int]]:
    """Return some parts of the film, in whole seconds; the first is long enough for a view."""
    starts = [rng.randrange(FILM_S - LONGEST_PART_S) for _ in range(PARTS)]
    return [(start, start + rng.randint(10, LONGEST_PART_S)) for start in starts]


def played_seconds(parts: list[tuple[int, int]]) -> list[int]:
    return [second for start, end in parts for second in range(start, end)]


def reports(film_id: str, viewer: int, parts: list[tuple[int, int]]) -> list[str]:
    """Return a report of each part: its start, its middle and its end."""
    bodies = []
    at_s = 0
    numbers = iter(range(1000))
    for start, end in parts:
        middle = (start + end) // 2
        records = []
        for state, second in (("p", start), ("p", middle), ("k", end)):
            records.append(
                f'v=2,cid="{film_id}",sid="{viewer}",sn={next(numbers)},sta={state},'
                f"ts={START_MS + (at_s + second - start) * 1000},pt={second * 1000}"
            )
        at_s += end - start + 1
        bodies.append("\n".join(records))
    return bodies


async def watch(
    session: aiohttp.ClientSession, urls: list[str], viewer: int, bodies: list[str], rng: Random
) -> None:
    """Send reports, each of them until it is acknowledged."""
    headers: dict[str, Any] = {
        "Content-Type": "application/cmcd",
        "User-Agent": "Mozilla/5.0 Firefox/140",
        # A network has a limit of viewers.
        "X-Forwarded-For": f"192.0.2.{viewer % 250}",
    }
    for body in bodies:
        await asyncio.sleep(rng.uniform(0, 2))
        while True:
            try:
                async with session.post(
                    f"{rng.choice(urls)}/api/playback", data=body, headers=headers
                ) as response:
                    if response.status == 204:
                        break
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
