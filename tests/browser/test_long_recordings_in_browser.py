"""Recordings of many parts, beside outages of storage, until their browser is killed.

The long one needs a longer limit: `pytest -m soak -o faulthandler_timeout=3600`, and writes its
figures with `--log-cli-level=INFO`.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psutil
import pytest
from bad_network import Network, network_to
from chromium import TIMEOUT_MS, find_or_install
from playwright.async_api import BrowserContext, Error, Page, async_playwright, expect
from record_page import (
    ARGUMENTS,
    address_of,
    choose_sources,
    clock_past,
    open_recorder,
    record_past,
    recorded_s,
    share_flashing_screen,
    stored_film,
    video_id_of,
)
from recorder_page import decode_long
from running_portal import fresh_portal

logger = logging.getLogger(__name__)

LOST_S = 5
IN_STEP_S = 0.04
# Beeps of the last minute tell how far picture and sound are apart at the end.
LAST_S = 60


@dataclass(frozen=True)
class Course:
    """Length of a recording, and beginning and end of the outages, in recorded seconds."""

    length_s: int
    outages_s: tuple[tuple[int, int], ...]


SHORT = Course(40, ((10, 30),))
LONG = Course(600, ((60, 130), (200, 290), (420, 500)))


@asynccontextmanager
async def browser_of(profile: Path, base_url: str) -> AsyncIterator[BrowserContext]:
    """Run Chromium with a profile that outlives it."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=find_or_install("chromium", "chromium", "google-chrome"),
            args=ARGUMENTS,
            base_url=base_url,
        )
        context.set_default_timeout(TIMEOUT_MS)
        await share_flashing_screen(context, isNoisy=True, width=1280, height=720)
        yield context
        try:
            await context.close()
        except Error:
            logger.debug("The browser was killed.")


def kill_browser(profile: Path) -> None:
    """Kill the Chromium of a profile, with its children."""
    [browser] = [
        process
        for process in psutil.process_iter(["cmdline"])
        if f"--user-data-dir={profile}" in (process.info["cmdline"] or [])
        and not any("--type=" in word for word in process.info["cmdline"])
    ]
    for process in [*browser.children(recursive=True), browser]:
        process.kill()


async def record_through(page: Page, network: Network, course: Course) -> int:
    """Record, take storage away and give it back, and return the recorded seconds."""
    await open_recorder(page)
    await choose_sources(page, "Screen, window or tab")
    await record_past(page, 1)
    for begin_s, end_s in course.outages_s:
        await clock_past(page, begin_s)
        await network.down()
        await clock_past(page, end_s)
        await network.up()
    await clock_past(page, course.length_s)
    return await recorded_s(page)


@pytest.mark.parametrize(
    "course",
    [
        pytest.param(SHORT, id="short", marks=pytest.mark.slow),
        pytest.param(LONG, id="long", marks=pytest.mark.soak),
    ],
)
async def test_recording_outlives_outages_of_storage_and_its_browser(
    services: dict[str, str], tmp_path: Path, course: Course
) -> None:
    profile = tmp_path / "profile"
    async with network_to(services["S3_ENDPOINT_URL"]) as network:
        storage = {"S3_ENDPOINT_URL": network.url, "S3_PUBLIC_ENDPOINT_URL": network.url}
        async with fresh_portal({**services, **storage}, worker=True) as portal:
            async with browser_of(profile, portal.base_url) as context:
                length_s = await record_through(await context.new_page(), network, course)
                kill_browser(profile)
            async with browser_of(profile, portal.base_url) as context:
                page = await context.new_page()
                await open_recorder(page)
                started_s = monotonic()
                await page.get_by_role("button", name="Continue with what was recorded").click()
                await expect(address_of(page)).to_be_visible(timeout=TIMEOUT_MS)
                continued_s = monotonic() - started_s
                path = await stored_film(portal, await video_id_of(page), tmp_path / "film.mp4")
    film = decode_long(path)
    lost_s = length_s - film.end_s + film.missing_s
    first_s = film.step_s(0, LAST_S)
    last_s = film.step_s(film.end_s - LAST_S, film.end_s)
    logger.info(
        "recorded %d s, lost %.1f s, sound after the picture by %.0f ms at the start and %.0f ms "
        "at the end, address %.1f s after continuing, %.1f MB",
        *(length_s, lost_s, 1000 * first_s, 1000 * last_s),
        *(continued_s, path.stat().st_size / 1e6),
    )
    assert lost_s <= LOST_S
    assert abs(film.sound_s - film.end_s) <= 1
    # Sound of a computer that can't keep up comes late: only the long one is run on one that can.
    assert course is not LONG or abs(last_s) <= IN_STEP_S
