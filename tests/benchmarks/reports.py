"""Statistics: the cost of reports in a web process, pages, and the time to fold many records.

A report has ten records, as a player sends every 100 s. The cost is processor time of the web
process, also at the rate of many players, compared with the idle process before. The records to
fold are those of visitors who watch a hundred films.

    python tests/benchmarks/reports.py [--players 2000] [--seconds 20] [--records 1000000]
"""

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import psutil
from benchmark_portal import measured_portal, options_of
from page_rows import READY, make_row
from running_portal import LivePortal, execute
from statistics_rows import ADD_DAYS

from portal.config import Config
from portal.database import connection
from portal.database.connection import open_database
from portal.database.models import Video
from portal.features.statistics.folding import fold_inbox

RECORDS = 10
INTERVAL_MS = 10_000
FILMS = 100
VISITORS = 20_000
NETWORKS = 2_000
AGENTS = 200
REPORT_EVERY_S = 100
WARM_UP = 300
MEASURED = 3_000
AT_ONCE = 100
NUMBERS = itertools.count()
START_MS = 1_795_728_000_000
BATCH_AIM_MS = 1.0
PLAYERS_AIM_PERCENT = 5.0
FOLD_AIM_S = 60.0
PAGE_AIM_MS = 60
PAGES = 500
# Records of visitors who each watch a film from its start, in several reports.
FILL = """
INSERT INTO playback_inbox
  (video_id, day, visitor, session, received_at, device, place, site, records, networks)
SELECT film.id, (now() AT TIME ZONE 'UTC')::date, int8send(visitor), int8send(visitor),
       now() - interval '1 hour' + make_interval(secs => report), 'desktop', 'page', '',
       (SELECT jsonb_agg(jsonb_build_array(
          1795728000000 + (report * {records} + n) * 10000, report * {records} + n, 'p',
          (report * {records} + n) * 10000, 1.0, CASE report + n WHEN 0 THEN 800 END, 720
        ) ORDER BY n) FROM generate_series(0, {records} - 1) AS n),
       ARRAY[int8send(visitor % {networks})]
FROM generate_series(1, {visitors}) AS visitor
CROSS JOIN generate_series(0, {reports} - 1) AS report
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS number FROM videos) AS film
  ON film.number = visitor % {films} + 1
"""


async def main() -> None:
    options = options_of(__doc__, players=2000, seconds=20, records=1_000_000)
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        async with (
            measured_portal(
                Path(folder), RATE_LIMIT_REPORTS="0", TRUSTED_PROXIES="127.0.0.1"
            ) as portal,
            open_database(Config.from_env(portal.environ)),
        ):
            films = [await make_row(n, **READY) for n in range(1, FILMS + 1)]
            bodies = _reports(films)
            await _measure_batch(portal, bodies)
            await _measure_players(portal, bodies, options.players, options.seconds)
            await _measure_pages(portal, films[0], bodies, options.players)
            await execute(portal.environ, "TRUNCATE playback_inbox")
            await _measure_fold(portal, options.records)


def _reports(films: list[Video]) -> Iterator[str]:
    """Yield reports, each of a new session."""
    for session in itertools.count():
        film = films[session % FILMS]
        yield "\n".join(
            f'cid="{film.id}",e=t,portal-device=desktop,portal-height="720",portal-place=page,'
            f'pt={n * INTERVAL_MS},sid="b0c6ad2e-8a1b-4c3d-9e4f-{session:012}",sn={n},sta=p,'
            f"ts={START_MS + n * INTERVAL_MS},v=2"
            for n in range(RECORDS)
        )


async def _send(session: aiohttp.ClientSession, url: str, body: str) -> None:
    number = next(NUMBERS) % VISITORS
    headers = {
        "Content-Type": "application/cmcd",
        "User-Agent": f"Mozilla/5.0 (X11; Linux x86_64; rv:{number % AGENTS}.0) Firefox",
        "X-Forwarded-For": f"198.51.{number // 250}.{number % 250}",
    }
    async with session.post(url, data=body, headers=headers) as response:
        assert response.status == 204, await response.text()


async def _measure_batch(portal: LivePortal, bodies: Iterator[str]) -> None:
    url = f"{portal.base_url}/api/playback"
    process = psutil.Process(portal.web_pid)
    async with aiohttp.ClientSession() as session:

        async def send(count: int) -> None:
            for _ in range(count // AT_ONCE):
                await _send(session, url, next(bodies))

        await asyncio.gather(*(send(WARM_UP) for _ in range(AT_ONCE)))
        before_s = _cpu_s(process)
        await asyncio.gather(*(send(MEASURED) for _ in range(AT_ONCE)))
        spent_s = _cpu_s(process) - before_s
    print(f"report of {RECORDS} records: {spent_s / MEASURED * 1000:.2f} ms (aim {BATCH_AIM_MS})")


async def _measure_players(
    portal: LivePortal, bodies: Iterator[str], players: int, seconds: int
) -> None:
    process = psutil.Process(portal.web_pid)
    before_s = _cpu_s(process)
    await asyncio.sleep(seconds)
    idle_s = _cpu_s(process) - before_s
    before_s = _cpu_s(process)
    await _play(portal, bodies, players, seconds)
    spent_s = _cpu_s(process) - before_s - idle_s
    percent = 100 * spent_s / seconds
    print(f"{players} players: {percent:.1f} % of a core more (aim {PLAYERS_AIM_PERCENT})")


async def _play(portal: LivePortal, bodies: Iterator[str], players: int, seconds: float) -> None:
    """Send reports at the rate of this many players, evenly."""
    url = f"{portal.base_url}/api/playback"
    pause_s = REPORT_EVERY_S / players
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        began = time.monotonic()
        for number in range(round(seconds / pause_s)):
            group.create_task(_send(session, url, next(bodies)))
            await asyncio.sleep(max(began + (number + 1) * pause_s - time.monotonic(), 0))


async def _measure_pages(
    portal: LivePortal, film: Video, bodies: Iterator[str], players: int
) -> None:
    """Time the statistics of a year, and the page of a video without and with reports."""
    await connection.execute(ADD_DAYS, film.id, 365)
    address = f"{portal.base_url}/videos/{film.id}"
    p50_ms, p99_ms = await _page_times_ms(f"{address}/statistics?period=365")
    print(f"statistics of a year: p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} (aim {PAGE_AIM_MS})")
    p50_ms, p99_ms = await _page_times_ms(address)
    print(f"page of a video: p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f}")
    playing = asyncio.create_task(_play(portal, bodies, players, seconds=3600))
    p50_ms, p99_ms = await _page_times_ms(address)
    playing.cancel()
    await asyncio.wait({playing})
    print(f"the same beside {players} players: p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f}")


async def _page_times_ms(url: str) -> tuple[float, float]:
    """Return the median and the 99th percentile of the times of a page."""
    times_ms = []
    async with aiohttp.ClientSession() as session:
        for _ in range(PAGES):
            began = time.perf_counter()
            async with session.get(url) as response:
                assert response.status == 200
                await response.read()
            times_ms.append((time.perf_counter() - began) * 1000)
    ranks = statistics.quantiles(times_ms[PAGES // 10 :], n=100)
    return ranks[49], ranks[98]


async def _measure_fold(portal: LivePortal, records: int) -> None:
    reports_each = max(records // RECORDS // VISITORS, 1)
    fill = FILL.format(
        visitors=VISITORS, reports=reports_each, films=FILMS, records=RECORDS, networks=NETWORKS
    )
    await execute(portal.environ, fill)
    began = time.monotonic()
    cpu_began = time.process_time()
    reports = 0
    while folded := await fold_inbox():
        reports += folded
    seconds = time.monotonic() - began
    print(
        f"{reports * RECORDS} records folded in {seconds:.1f} s (aim {FOLD_AIM_S}), "
        f"{time.process_time() - cpu_began:.1f} s of it in Python"
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    asyncio.run(main())
