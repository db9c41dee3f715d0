"""Schedule of a video in the reader's time zone, across changes of daylight saving."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from chromium import OpenPage, axe_findings, open_workshop, save_panel, suits_everyone
from library_rows import Rows
from playwright.async_api import Page, expect
from running_portal import LivePortal

# Browsers log refused requests as errors.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of 4(09|22)")]

NUMBERS = count(7_000)
NEW_YORK = "America/New_York"
NEVER = {"publishAt": None, "unpublishAt": None, "deleteAt": None}


@pytest.fixture
async def video(idle_portal: LivePortal) -> str:
    """Address of a private video without files."""
    rows = Rows(idle_portal.environ["DATABASE_URL"])
    video_id = await rows.add(next(NUMBERS), "Harbour at dawn", status="failed")
    await rows.run("UPDATE versions SET failure_code = 'damaged' WHERE id = %s", video_id)
    await rows.run("UPDATE publications SET visibility = 'private' WHERE id = %s", video_id)
    return f"{idle_portal.base_url}/videos/{video_id}"


async def put(page: Page, video: str, **times: str) -> None:
    """Change the schedule as another program does."""
    address = f"{video.replace('/videos/', '/api/videos/')}/schedule"
    headers = {"If-Match": "*"}
    answer = await page.request.put(address, data={**NEVER, **times}, headers=headers)
    assert answer.ok


async def recorded(page: Page, video: str) -> dict[str, Any]:
    address = f"{video.replace('/videos/', '/api/videos/')}/schedule"
    times = await (await page.request.get(address)).json()
    return {name: at and at.removesuffix(":00.000000Z") for name, at in times.items()}


@pytest.mark.parametrize("slowdown", [1, 6])
async def test_times_are_those_of_the_reader_across_changes_of_daylight_saving(
    open_page: OpenPage, video: str, slowdown: int
) -> None:
    page = await open_page(timezone_id=NEW_YORK, locale="en-US")
    if slowdown > 1:
        session = await page.context.new_cdp_session(page)
        await session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    # Winter's and summer's time of a zone that changes on 14 March and 7 November 2027.
    await put(page, video, publishAt="2027-03-13T14:30:00Z", unpublishAt="2027-03-15T14:30:00Z")
    form = await open_workshop(page, video, "Schedule")
    public, private, deleted = (
        form.get_by_label(f"{words} on")
        for words in ("Make public", "Make private", "Delete for good")
    )
    await expect(public).to_have_value("2027-03-13T09:30")
    await expect(private).to_have_value("2027-03-15T10:30")
    await expect(deleted).to_have_value("")
    hints = page.locator("#schedule .field__hint")
    await expect(hints.nth(0)).to_have_text(
        "Saturday, March 13, 2027 at 9:30 AM EST (America/New_York)"
    )
    await expect(hints.nth(2)).to_have_text("Time zone: America/New_York")
    await expect(page.locator("[data-save-bar]")).to_be_hidden()

    await public.fill("2027-03-14T01:59")
    # Clocks skip this time.
    await private.fill("2027-03-14T02:30")
    await expect(hints.nth(1)).to_have_text(
        "Sunday, March 14, 2027 at 3:30 AM EDT (America/New_York)"
    )
    await deleted.fill("2027-11-07T01:30")
    await save_panel(page, "schedule")
    assert await recorded(page, video) == {
        "publishAt": "2027-03-14T06:59",
        "unpublishAt": "2027-03-14T07:30",
        "deleteAt": "2027-11-07T05:30",
    }
    await expect(private).to_have_value("2027-03-14T03:30")
    plan = page.locator("#schedule [data-state] span")
    await expect(plan.nth(1)).to_have_text("Becomes private on Mar 14, 2027, 3:30 AM.")
    await expect(page.locator("[data-save-bar]")).to_be_hidden()

    # The second one of a repeated time stays, as nobody has typed another one.
    await put(page, video, deleteAt="2027-11-07T06:30:00Z")
    await page.reload()
    await page.wait_for_load_state("networkidle")
    await expect(deleted).to_have_value("2027-11-07T01:30")
    await expect(hints.nth(2)).to_contain_text("1:30 AM EST")
    await private.fill("2027-07-04T12:00")
    await save_panel(page, "schedule")
    assert await recorded(page, video) == {
        "publishAt": None,
        "unpublishAt": "2027-07-04T16:00",
        "deleteAt": "2027-11-07T06:30",
    }
    await deleted.fill("")
    await save_panel(page, "schedule")
    assert (await recorded(page, video))["deleteAt"] is None


async def test_conflict_is_shown_and_saved_again_and_the_deletion_announced(
    open_page: OpenPage, video: str
) -> None:
    page = await open_page(timezone_id=NEW_YORK)
    form = await open_workshop(page, video, "Schedule")
    private = form.get_by_label("Make private on")
    await private.fill("2028-01-01T10:00")
    # Too late for the first form.
    await put(page, video, publishAt="2027-06-01T12:00:00Z")
    await page.get_by_role("button", name="Save changes").click()
    conflict = page.get_by_role("group", name="Someone else has changed the schedule:")
    await expect(conflict).to_be_focused()
    await expect(conflict).to_contain_text("Becomes public on")
    await expect(private).to_have_value("2028-01-01T10:00")
    assert await axe_findings(page, part="#schedule") == []
    await form.get_by_label("Make public on").fill("2001-01-01T10:00")
    await page.get_by_role("button", name="Save changes").click()
    await expect(form.get_by_text("Give a time in the future.")).to_be_visible()
    await expect(form.get_by_label("Make public on")).to_have_value("2001-01-01T10:00")
    await form.get_by_label("Make public on").fill("")
    soon = datetime.now(UTC).replace(year=datetime.now(UTC).year + 2)
    await form.get_by_label("Delete for good on").fill(soon.strftime("%Y-%m-%dT%H:%M"))
    await save_panel(page, "schedule")
    assert (await recorded(page, video))["unpublishAt"] == "2028-01-01T15:00"
    await suits_everyone(page, "schedule", part="#schedule")
