"""A file of 2 GiB arrives whole over everything a long upload meets, sending little twice."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import psutil
import pytest
from bundled_parts import embedded_services
from playwright.async_api import Browser
from running_portal import until
from seaweed import seaweed_server
from upload_engine import MIB, PART_BYTES, PART_CONCURRENCY, Engine
from upload_site import Site, file_digest, open_site

pytestmark = pytest.mark.soak

logger = logging.getLogger(__name__)

SIZE_BYTES = 2048 * MIB
CUTS = 20
# So that the faults find it under way.
LINE_BPS = 100 * MIB
OFFLINE_S = 60
DONE_TIMEOUT_S = 600


@dataclass
class Server:
    """Object storage that can be made to crash."""

    environ: dict[str, str]
    restart: Callable[[], Awaitable[None]]
    keeps_uploads: bool


@asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[Server]:
    async with embedded_services(folder, database=False, durable=False) as environ:

        async def restart() -> None:
            # Its keeper starts it again.
            for child in psutil.Process().children(recursive=True):
                if str(folder) in " ".join(child.cmdline()):
                    child.kill()

        yield Server(environ, restart, keeps_uploads=False)


@asynccontextmanager
async def _seaweed(folder: Path) -> AsyncIterator[Server]:
    async with seaweed_server(folder) as server:
        yield Server(server.environ, server.restart, keeps_uploads=True)


@pytest.fixture(params=[_embedded, _seaweed], ids=["embedded", "seaweedfs"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """The embedded server forgets unfinished uploads when it ends; SeaweedFS does not."""
    with TemporaryDirectory(prefix="portal-soak-") as folder:
        async with request.param(Path(folder)) as server:
            yield server


@pytest.fixture
async def site(
    services: dict[str, str], server: Server, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    """A portal on that server."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, server.environ[name])
    async with open_site({**services, **server.environ}) as site:
        yield site


@pytest.fixture(scope="module")
def huge_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """128 parts of noise."""
    path = tmp_path_factory.mktemp("soak") / "feature film.mp4"
    noise = random.Random(3)  # noqa: S311
    with path.open("wb") as file:
        for _ in range(SIZE_BYTES // (64 * MIB)):
            file.write(noise.randbytes(64 * MIB))
    return path


async def test_huge_file_survives_cuts_a_crash_an_offline_minute_and_a_reload(
    browser: Browser, site: Site, server: Server, huge_file: Path
) -> None:
    context = await browser.new_context(base_url=site.portal.base_url)
    engine = Engine(await context.new_page())
    network = site.network
    network.limit_bps = LINE_BPS
    network.cut_at_random(CUTS, within_bytes=SIZE_BYTES, seed=2048)
    began = monotonic()
    await engine.open()
    await engine.start(huge_file)

    await _uploaded(site, SIZE_BYTES // 4)
    await server.restart()
    await _uploaded(site, SIZE_BYTES // 2)
    await context.set_offline(True)
    await engine.until("offline")
    await asyncio.sleep(OFFLINE_S)
    await context.set_offline(False)
    await _uploaded(site, SIZE_BYTES * 3 // 4)
    told = await engine.page.evaluate("() => uploads.runs.one.progress.map(([bytes]) => bytes)")
    assert all(before < after for before, after in pairwise(told))
    await engine.open()
    (saved,) = await engine.saved()
    await engine.start(huge_file, saved_id=saved["id"])
    await engine.until("sent", "failed", timeout_s=DONE_TIMEOUT_S)
    took_s = monotonic() - began

    assert await engine.get("state") == "sent", await engine.troubles()
    await engine.check_progress(SIZE_BYTES)
    assert await site.digest(await engine.get("key")) == file_digest(huge_file)
    taken = Counter(sent.part for sent in network.puts() if sent.status == 200)
    again = network.uploaded_bytes - SIZE_BYTES
    figures = (took_s, network.cuts, again / MIB, 100 * again / SIZE_BYTES)
    logger.info("%.0f s, %d cuts, %.0f MiB sent again (%.1f %%)", *figures)
    assert network.cuts >= CUTS
    if server.keeps_uploads:
        assert set(taken.values()) == {1}
        # But for parts whose answer was lost with the connection.
        assert len(taken) > SIZE_BYTES // PART_BYTES - CUTS
        breaks = network.cuts + 3
        assert again <= breaks * PART_CONCURRENCY * PART_BYTES
    await context.close()


async def _uploaded(site: Site, mark_bytes: int) -> None:
    await until(lambda: site.network.uploaded_bytes >= mark_bytes, timeout_s=DONE_TIMEOUT_S)
