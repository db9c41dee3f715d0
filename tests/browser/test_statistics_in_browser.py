"""Playback is reported by the player, counted by the portal, and shown to editors."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chromium import OWNER, PASSWORD, OpenPage
from framing_site import framing_site, show_framed
from library_rows import Rows
from player_page import wait_for
from playwright.async_api import Frame, Page, expect
from running_portal import LivePortal, create, final_status, fresh_portal, make_video, until
from statistics_rows import ADD_DAYS

# Programs such as a headless browser are not counted.
DESKTOP = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36"
PHONE = DESKTOP.replace("X11; Linux x86_64", "Linux; Android 15; K").replace("Safari", "Mobile")
TABLET = "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1"
FILM_S = 20
# Plays parts of the video after each other, then pauses. Returns the parts as they were played.
WATCH = """async (video, parts) => {
    const event = (name) => new Promise((resolve) =>
        video.addEventListener(name, resolve, { once: true }));
    video.muted = true;
    if (video.readyState < 1) await event("loadedmetadata");
    const played = [];
    for (const [start, end] of parts) {
        video.currentTime = start;
        if (video.seeking) await event("seeked");
        video.playbackRate = 2;
        await video.play();
        while (video.currentTime < end) await event("timeupdate");
        played.push([start, video.currentTime]);
    }
    video.pause();
    return played;
}"""

Part = tuple[float, float]


async def test_part_of_the_retention_curve_plays_the_video_there(
    page: Page, live_portal: LivePortal, ready_video: str
) -> None:
    await Rows(live_portal.environ["DATABASE_URL"]).run(ADD_DAYS, ready_video, 28)
    await page.goto(f"/videos/{ready_video}/statistics")
    await expect(page.locator("#retention image").first).to_be_visible()
    # The video takes two seconds.
    part = page.get_by_role("link", name="Play from 0:01 · 60% of viewers").nth(10)
    words = part.locator("text")
    await expect(words).to_have_css("opacity", "0")
    await part.focus()
    await expect(words).to_have_css("opacity", "1")
    await expect(words).to_have_text("0:01 · 60%")
    await part.press("Enter")
    await expect(page).to_have_url(f"{live_portal.base_url}/videos/{ready_video}?t=1")
    await wait_for(page, "video.currentTime >= 1")


async def watch(player: Page | Frame, *parts: Part) -> list[Part]:
    """Play parts of the video, close the page, and return the parts as they were played."""
    played: list[Part] = await player.locator("video").evaluate(WATCH, parts)
    page = player if isinstance(player, Page) else player.page
    # Chromium reports from a page that navigates with its own user agent, not the chosen one.
    await page.close()
    return played


@pytest.mark.slow
@pytest.mark.soak
async def test_statistics_are_what_three_visitors_watched(
    services: dict[str, str], open_page: OpenPage, tmp_path: Path
) -> None:
    """Parts of the film have their own tests: `player_reports.test.mjs` and of the figures."""
    film = make_video(tmp_path / "film.mp4", seconds=FILM_S)
    async with (
        framing_site() as site,
        fresh_portal(services, worker=True, WORK_DIR=str(tmp_path)) as portal,
    ):
        video_id = (await create(portal.base_url, film))["id"]
        assert await final_status(portal.base_url, video_id) == "ready"
        address = f"{portal.base_url}/videos/{video_id}"
        editor = await open_page(user_agent=DESKTOP.replace("142", "141"))
        account = {"email": OWNER, "password": PASSWORD}
        await editor.context.request.post(f"{portal.base_url}/set-up", form=account)
        await editor.goto(address)
        await watch(editor, (0, 3))

        reader = await open_page(user_agent=DESKTOP)
        await reader.goto(address, referer="https://news.example.org/today")
        guest = await open_page(user_agent=PHONE)
        frame = await show_framed(guest, site, f"{portal.base_url}/embed/{video_id}")
        learner = await open_page(user_agent=TABLET)
        await learner.goto(address)
        viewers = await asyncio.gather(
            watch(reader, (0, 8)), watch(frame, (10, 18)), watch(learner, (2, 9), (4, 9))
        )
        statistics: dict[str, Any] = {}

        async def are_counted() -> bool:
            path = f"{portal.base_url}/api/videos/{video_id}/statistics"
            statistics.update(await (await editor.context.request.get(path)).json())
            return statistics["viewers"] == len(viewers)

        await until(are_counted, timeout_s=15, interval_s=0.5)

    assert statistics["views"] == 3
    watched_s = sum(end - start for parts in viewers for start, end in parts) / 2
    assert statistics["watchSeconds"] == pytest.approx(watched_s, abs=2)
    assert statistics["failures"] == 0
    assert statistics["startupSeconds"]["median"] is not None
    assert views_of(statistics["devices"]) == {"desktop": 1, "phone": 1, "tablet": 1}
    assert views_of(statistics["places"]) == {"page": 2, "embed": 1}
    host = site.removeprefix("http://")
    assert views_of(statistics["sites"]) == {"news.example.org": 1, host: 1}


def views_of(parts: list[dict[str, Any]]) -> dict[str, int]:
    return {part["name"]: part["views"] for part in parts}
