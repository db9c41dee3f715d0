"""Series in a browser: made, put in order and watched by keyboard; rows that are dragged."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, Publish, make_series
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect
from running_portal import LivePortal

AT_END = "video.currentTime = video.duration - 0.2, video.muted = true, video.play()"


@pytest.fixture(scope="session")
async def second_video(publish: Publish, short_video: Path) -> str:
    """The id of another video that plays."""
    return await publish(short_video, "A second video", until="ready")


async def titles_of(page: Page) -> list[str]:
    return await page.locator(".series-row__title").all_inner_texts()


@pytest.mark.parametrize("width", [360, 1440])
async def test_series_is_made_ordered_and_watched_by_keyboard(
    open_page: OpenPage, ready_video: str, second_video: str, width: int
) -> None:
    page = await open_page(width=width)
    name = f"Lessons of {width}"
    await page.goto("/series")
    await page.locator("summary", has_text="New series").press("Enter")
    await page.get_by_label("Title").press_sequentially(name)
    await page.get_by_label("Title").press("Enter")
    await expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    series_id = page.url.split("/")[-2]
    await page.get_by_label("Description").press_sequentially("For beginners")
    await page.get_by_role("button", name="Save changes").press("Enter")
    await expect(page.get_by_text("Saved.")).to_be_visible()

    for video_id in (ready_video, second_video):
        await page.goto(f"/videos/{video_id}/edit")
        choice = page.get_by_role("combobox", name="Add to a series")
        await choice.focus()
        await choice.press_sequentially(name)
        await page.get_by_role("button", name="Add", exact=True).press("Enter")
        await expect(page.locator("#series").get_by_role("link", name=name)).to_be_visible()

    await page.goto(f"/series/{series_id}/edit")
    down = page.get_by_role("button", name="Move down: A ready video")
    await page.wait_for_load_state("networkidle")
    await down.press("Enter")
    await expect(page.locator(".series-row__title").first).to_have_text("A second video")
    # The focus stays on the button, so that the row can be moved on.
    await expect(down).to_be_focused()
    await expect(page.locator("[data-detail-live]")).to_have_text("Moved to 2 of 2.")

    await page.goto(f"/series/{series_id}")
    await expect(page.get_by_text("For beginners")).to_be_visible()
    assert await titles_of(page) == ["A second video", "A ready video"]
    await page.get_by_role("link", name="Play all").press("Enter")
    await page.wait_for_url(f"**/videos/{second_video}?series={series_id}*")
    await expect(page.locator("[data-up-next]")).to_contain_text("1 of 2")
    await expect(page.locator(".series-row[aria-current]")).to_contain_text("A second video")
    await wait_for(page, "!video.paused && video.currentTime > 0")
    # A reload would not start the video again.
    assert "#" not in page.url
    await read(page, AT_END)
    countdown = page.locator("[data-countdown]")
    await expect(countdown).to_contain_text(re.compile(r"Next in [1-5] s:\s+A ready video"))
    await page.wait_for_url(f"**/videos/{ready_video}?series={series_id}*", timeout=60_000)
    await wait_for(page, "!video.paused && video.currentTime > 0")
    # Nothing follows the last one.
    await expect(page.locator("[data-countdown]")).to_have_count(0)


async def test_countdown_is_cancelled_and_the_choice_is_kept(
    open_page: OpenPage, live_portal: LivePortal, ready_video: str, second_video: str
) -> None:
    page = await open_page(width=1280)
    series_id = await make_series(live_portal.base_url, "Kept", [ready_video, second_video])
    address = f"/videos/{ready_video}?series={series_id}"
    countdown = page.locator("[data-countdown]")
    for cancel in ("Escape", "button"):
        await open_player(page, address)
        await read(page, AT_END)
        await expect(countdown).to_contain_text("Next in")
        if cancel == "button":
            await page.get_by_role("button", name="Cancel").press("Enter")
        else:
            await page.keyboard.press("Escape")
        await expect(countdown).to_be_hidden()
    choice = page.get_by_role("checkbox", name="Play the next video automatically")
    await choice.uncheck()
    await open_player(page, address)
    await expect(choice).not_to_be_checked()
    await read(page, AT_END)
    # Without a countdown the next video is offered.
    await expect(countdown).to_contain_text(re.compile(r"^\s*Next:\s+A second video"))
    await page.get_by_role("link", name="Play now").press("Enter")
    await page.wait_for_url(f"**/videos/{second_video}?series={series_id}*")


async def test_nothing_starts_by_itself_for_people_who_want_less_motion(
    open_page: OpenPage, live_portal: LivePortal, ready_video: str, second_video: str
) -> None:
    page = await open_page(width=1280, reduced_motion="reduce")
    series_id = await make_series(live_portal.base_url, "Calm", [ready_video, second_video])
    await open_player(page, f"/videos/{ready_video}?series={series_id}")
    await read(page, AT_END)
    await expect(page.locator("[data-countdown]")).to_contain_text(re.compile(r"^\s*Next:"))


async def test_embedded_player_goes_on_with_the_next_video(
    open_page: OpenPage, live_portal: LivePortal, ready_video: str, second_video: str
) -> None:
    page = await open_page(width=640)
    series_id = await make_series(live_portal.base_url, "Framed", [ready_video, second_video])
    await open_player(page, f"/embed/{ready_video}?series={series_id}")
    await read(page, AT_END)
    await expect(page.locator("[data-countdown]")).to_be_visible()
    await page.get_by_role("link", name="Play now").click()
    await page.wait_for_url(f"**/embed/{second_video}?series={series_id}*")
    await wait_for(page, "!video.paused && video.currentTime > 0")


async def test_rows_are_dragged_and_removed(
    open_page: OpenPage, live_portal: LivePortal, ready_video: str, second_video: str
) -> None:
    page = await open_page(width=1280)
    series_id = await make_series(live_portal.base_url, "Drag", [ready_video, second_video])
    await page.goto(f"/series/{series_id}/edit")
    handle = page.locator("[data-handle]").first
    await expect(handle).to_be_visible()

    async def drag() -> None:
        await handle.hover()
        await page.mouse.down()
        target = await page.locator("[data-row]").last.bounding_box()
        assert target
        await page.mouse.move(target["x"] + 40, target["y"] + target["height"] - 4, steps=6)
        await expect(page.locator(".series-row__title").first).to_have_text("A second video")

    await drag()
    await page.keyboard.press("Escape")
    assert await titles_of(page) == ["A ready video", "A second video"]
    await page.mouse.up()
    await drag()
    await page.mouse.up()
    await expect(page.locator("[data-detail-live]")).to_have_text("Moved to 2 of 2.")
    assert await titles_of(page) == ["A second video", "A ready video"]
    await page.get_by_role("button", name="Remove from the series: A ready video").press("Enter")
    await expect(page.locator("[data-row]")).to_have_count(1)
    await expect(page.get_by_role("heading", name="Videos", exact=True)).to_be_focused()
    # The dialog asks before the series is deleted.
    await page.get_by_role("link", name="Delete…").press("Enter")
    await page.get_by_role("button", name="Delete series").press("Enter")
    await page.wait_for_url("**/series")
    await expect(page.get_by_role("link", name="Drag")).to_have_count(0)
