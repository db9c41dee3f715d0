"""The upload engine in a real browser, over a network that breaks in the ways networks do."""

import asyncio
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Complaints, hold_requests
from playwright.async_api import Browser, BrowserContext, Route
from running_portal import until
from upload_engine import MIB, PART_BYTES, PART_CONCURRENCY, Engine
from upload_site import Site, file_digest

# Broken requests are what these tests are about.
pytestmark = pytest.mark.complaint("Failed to load resource")

BIG_BYTES = 4 * PART_BYTES + 5
SMALL_BYTES = 3 * MIB
SLOW_BPS = 60 * MIB
# What is lost at most when all connections break: a part on each.
IN_FLIGHT_BYTES = PART_CONCURRENCY * PART_BYTES


@pytest.fixture(scope="session")
def big_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five parts, the last one tiny; noise, so that a byte out of place shows."""
    path = tmp_path_factory.mktemp("transfer") / "big film.mp4"
    path.write_bytes(random.Random(1).randbytes(BIG_BYTES))  # noqa: S311
    return path


@pytest.fixture(scope="session")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small enough for one PUT."""
    path = tmp_path_factory.mktemp("transfer") / "small.mp4"
    path.write_bytes(random.Random(2).randbytes(SMALL_BYTES))  # noqa: S311
    return path


@pytest.fixture
async def context(
    browser: Browser, site: Site, complaints: Complaints
) -> AsyncIterator[BrowserContext]:
    """A browser of its own."""
    context = await browser.new_context(base_url=site.portal.base_url)
    context.on("page", complaints.watch)
    yield context
    await context.close()
    assert complaints.unexpected() == []


@pytest.fixture
async def engine(context: BrowserContext) -> Engine:
    """The engine in a page."""
    return await _engine(context)


async def _engine(context: BrowserContext) -> Engine:
    engine = Engine(await context.new_page())
    await engine.open()
    return engine


async def _arrived(engine: Engine, site: Site, path: Path, *, name: str = "one") -> None:
    """It ends, storage has exactly this file, and progress was honest."""
    site.network.limit_bps = 0
    await engine.until("sent", "failed", name=name)
    assert await engine.get("state", name=name) == "sent", await engine.troubles(name=name)
    await engine.check_progress(path.stat().st_size, name=name)
    key = await engine.get("key", name=name)
    assert await site.digest(key) == file_digest(path)


def _taken(site: Site) -> list[int]:
    """Numbers of the parts that storage has taken, as often as it has."""
    return [sent.part or 0 for sent in site.network.puts() if sent.status == 200]


async def test_small_file_is_one_put_and_confirmed_by_storage(
    engine: Engine, site: Site, small_file: Path
) -> None:
    await engine.start(small_file)
    await _arrived(engine, site, small_file)
    assert await engine.states() == ["sending", "confirming", "sent"]
    (put,) = site.network.puts()
    assert put.part is None
    assert put.key.endswith(await engine.get("key"))
    (saved,) = await _saved_elsewhere(engine)
    assert saved["isStored"] is True


async def test_big_file_goes_in_parts_several_at_once(
    engine: Engine, site: Site, big_file: Path
) -> None:
    def as_many_as_allowed() -> bool:
        under_way = {sent.part for sent in site.network.puts() if not sent.status}
        return len(under_way) == PART_CONCURRENCY

    # The first shows that the line is fast; then no part can be over before the last one has begun.
    await _begin_slowly(engine, site, big_file, taken=1)
    await until(as_many_as_allowed, timeout_s=20)
    site.network.limit_bps = 0
    await _arrived(engine, site, big_file)
    assert sorted(_taken(site)) == [1, 2, 3, 4, 5]
    assert await engine.states() == ["sending", "confirming", "sent"]


@pytest.mark.slow
async def test_cuts_in_the_middle_of_parts_cost_only_the_parts_in_flight(
    engine: Engine, site: Site, big_file: Path
) -> None:
    network = site.network
    began = network.uploaded_bytes
    network.cut_at_random(4, within_bytes=BIG_BYTES, seed=20)
    cuts = network.cuts
    await engine.start(big_file)
    await _arrived(engine, site, big_file)
    assert network.cuts - cuts >= 3
    assert set(Counter(_taken(site)).values()) == {1}
    again = network.uploaded_bytes - began - BIG_BYTES
    assert 0 < again <= (network.cuts - cuts) * IN_FLIGHT_BYTES


@pytest.mark.slow
async def test_paused_upload_sends_nothing_and_resumes_with_missing_parts(
    engine: Engine, site: Site, big_file: Path
) -> None:
    await _begin_slowly(engine, site, big_file, taken=1)
    await engine.call("pause")
    await engine.until("paused")
    await until(lambda: site.network.idle, timeout_s=10)
    stored = await _stored(await engine.get("uploadId"), site)
    seen = len(site.network.log)
    # Longer than any pause between two tries at this stage.
    await engine.page.wait_for_timeout(1_000)
    assert len(site.network.log) == seen

    site.network.log.clear()
    await engine.call("resume")
    await _arrived(engine, site, big_file)
    assert stored
    # Storage may yet have put away what had arrived of another part.
    assert _taken(site)
    assert set(Counter(_taken(site)).values()) == {1}
    assert stored.isdisjoint(_taken(site))
    assert "failed" not in await engine.states()


@pytest.mark.slow
async def test_reloaded_page_continues_with_only_the_missing_parts(
    engine: Engine, site: Site, big_file: Path
) -> None:
    await _begin_slowly(engine, site, big_file, taken=2)
    await engine.page.evaluate(
        "() => uploads.saveDetails(uploads.runs.one.transfer.id, {title: 'Sea'})"
    )
    key = await engine.get("key")
    upload_id = await engine.get("uploadId")
    await engine.open()
    stored, before = await _interrupted(site, upload_id)

    (saved,) = await engine.saved()
    assert (saved["key"], saved["fileName"]) == (key, big_file.name)
    assert (saved["size_bytes"], saved["isStored"]) == (BIG_BYTES, False)
    assert saved["details"] == {"title": "Sea"}
    assert await _matches(engine, big_file)
    await engine.start(big_file, saved_id=saved["id"])
    await _arrived(engine, site, big_file)
    assert await engine.get("key") == key
    assert len(stored) >= 2
    _expect_only_missing(site, stored, before)


@pytest.mark.slow
async def test_expired_part_address_is_replaced_by_a_new_one(
    engine: Engine, site: Site, big_file: Path
) -> None:
    async def expire(route: Route) -> None:
        answer = await route.fetch()
        address = (await answer.json())["uploadUrl"]
        short = re.sub(r"X-Amz-Expires=\d+", "X-Amz-Expires=1", address)
        # Its second has to pass; nothing tells when it has.
        await asyncio.sleep(1.1)
        await route.fulfill(json={"uploadUrl": short})

    await engine.page.route("**/api/uploads/*/parts/2", expire, times=1)
    await engine.start(big_file)
    await _arrived(engine, site, big_file)
    refused, taken = site.network.puts(part=2)
    # S3 answers 403; the embedded server finds 400 more fitting.
    assert refused.status in (400, 403)
    assert taken.status == 200
    assert sorted(_taken(site)) == [1, 2, 3, 4, 5]


@pytest.mark.slow
async def test_upload_that_storage_forgot_starts_anew_by_itself(
    engine: Engine, site: Site, big_file: Path
) -> None:
    await _begin_slowly(engine, site, big_file, taken=2)
    key = await engine.get("key")
    await site.forget(key)
    await _arrived(engine, site, big_file)
    assert await engine.get("key") == key
    assert await engine.troubles() == []
    assert set(await engine.states()) == {"sending", "confirming", "sent"}


@pytest.mark.soak
async def test_storage_out_of_reach_fails_after_two_minutes_and_retry_sends_the_rest(
    engine: Engine, site: Site, big_file: Path
) -> None:
    page = engine.page
    await page.clock.install()
    await engine.open()
    await _begin_slowly(engine, site, big_file, taken=2)
    await site.network.down()
    stored = _taken(site)
    waited_s = 0
    # The page's clock is ahead of the network, so it is not held to an upper bound.
    while await engine.get("state") != "failed":
        await page.clock.run_for(5_000)
        waited_s += 5
        assert waited_s < 1_000
    assert waited_s > 60
    # No answer, or none in time.
    assert await page.evaluate("() => uploads.runs.one.transfer.trouble.status ?? 0") == 0

    await site.network.up()
    await page.clock.resume()
    await engine.call("retry")
    await _arrived(engine, site, big_file)
    assert all(_taken(site).count(part) == 1 for part in stored)


@pytest.mark.slow
async def test_file_changed_during_upload_is_told_at_once_and_goes_on_when_it_is_back(
    engine: Engine, site: Site, big_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "growing.mp4"
    path.write_bytes(big_file.read_bytes())
    chosen = path.stat()
    # A file that changes shows when a part of it is opened.
    may_go_on = await hold_requests(engine.page, re.compile("/parts/[45]$"))
    await _begin_slowly(engine, site, path, taken=1)
    with path.open("ab") as file:
        file.write(b"more")
    os.utime(path, (1, 1))
    may_go_on.set()
    await engine.until("failed")
    code = await engine.page.evaluate("() => uploads.runs.one.transfer.trouble.code")
    assert code == "file_unreadable"

    # It is what it was, as a drive is that was away for a moment.
    os.truncate(path, BIG_BYTES)
    os.utime(path, ns=(chosen.st_atime_ns, chosen.st_mtime_ns))
    stored, before = await _interrupted(site, await engine.get("uploadId"))
    await engine.call("retry")
    await _arrived(engine, site, path)
    assert stored
    _expect_only_missing(site, stored, before)


async def _begin_slowly(engine: Engine, site: Site, path: Path, *, taken: int) -> None:
    """Start on a slow line, and wait until storage has taken so many parts."""
    site.network.limit_bps = SLOW_BPS
    await engine.start(path)
    await until(lambda: len(_taken(site)) >= taken, timeout_s=20)
    # What is left must not be over too soon.
    site.network.limit_bps = MIB


async def _interrupted(site: Site, upload_id: str) -> tuple[set[int], set[int]]:
    """The parts that storage has of an upload at rest, and those sent whole; begins a new log."""
    await until(lambda: site.network.idle, timeout_s=10)
    stored, whole = await _stored(upload_id, site), _sent_whole(site)
    site.network.log.clear()
    return stored, whole


async def _stored(upload_id: str, site: Site) -> set[int]:
    """The parts that storage has, also those whose answer got lost."""
    return {part["partNumber"] for part in (await site.look(upload_id))["parts"]}


async def _saved_elsewhere(engine: Engine) -> list[dict[str, Any]]:
    """What a page would find once this one is gone."""
    await engine.open()
    return await engine.saved()


async def _matches(engine: Engine, path: Path) -> bool:
    await engine.page.locator("#engine-file").set_input_files(path)
    is_known: bool = await engine.page.evaluate(
        """async () => {
            const { found } = await uploads.savedUploads();
            return uploads.matches(found[0], uploads.input.files[0]);
        }"""
    )
    return is_known


def _sent_whole(site: Site) -> set[int]:
    """The parts whose every byte has gone to storage, whether or not it answered."""
    return {sent.part or 0 for sent in site.network.puts() if sent.body_bytes == sent.length_bytes}


def _expect_only_missing(site: Site, stored: set[int], before: set[int]) -> None:
    """Every part that storage lacked was sent, each once, and no other.

    But for those sent whole `before`: it may finish one after it was asked what it has.
    """
    sent, missing = _taken(site), {1, 2, 3, 4, 5} - stored
    assert sent
    assert len(sent) == len(set(sent))
    assert missing - before <= set(sent) <= missing
