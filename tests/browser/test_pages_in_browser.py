"""Layout, focus and accessibility of every page, at all widths."""

import re
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest
from chromium import (
    OWNER,
    PASSWORD,
    SMALL_TARGETS,
    TRANSCODE_TIMEOUT_MS,
    OpenPage,
    play_past,
    publish_file,
    suits_everyone,
)
from jinja2 import ChoiceLoader, FileSystemLoader
from library_rows import Rows
from playwright.async_api import Page, Route, expect
from quart import Quart, render_template
from running_portal import LivePortal, until
from statistics_rows import ADD_DAYS, ADD_PERIOD

# Browsers log the refused requests for missing and deleted pages as errors.
pytestmark = pytest.mark.complaint("status of 4(04|05|10|29)")

# Links in entries of the audit log that are lower than the least height (WCAG 2.5.8).
SMALL_ENTRIES = """() => [...document.querySelectorAll(".audit-log td a")]
    .map((link) => [link.textContent, link.getBoundingClientRect().height])
    .filter(([, height]) => height < 24)"""
# Numbers the visible controls of a page, and returns the numbers.
MARK_USABLE = """() => [...document.querySelectorAll(
    "a[href], button, input, select, textarea, summary, media-play-button, media-mute-button, "
    + "media-time-range, media-settings-menu-button, media-fullscreen-button")]
    .filter((element) => element.checkVisibility(
        { visibilityProperty: true, opacityProperty: true })
        && !element.disabled && !element.closest("[hidden], [inert]")
        && (element.tabIndex >= 0 || element.shadowRoot?.querySelector("input")))
    .map(({ dataset }, number) => { dataset.mark = String(number); return dataset.mark; })"""
# The focused element, and whether its focus is visible.
FOCUSED = """() => {
    const element = document.activeElement;
    if (element === document.body) return null;
    const inner = element.shadowRoot?.querySelectorAll("*") ?? [];
    const parts = [element, ...inner, element.nextElementSibling];
    const isOutlined = (part) => part && [null, "::before", "::after"].some((pseudo) => {
        const style = getComputedStyle(part, pseudo);
        return style.outlineStyle !== "none" && style.outlineWidth !== "0px"
            || style.boxShadow !== "none";
    });
    return { mark: element.dataset.mark ?? element.tagName, is_shown: parts.some(isOutlined),
             html: element.outerHTML.slice(0, 200) };
}"""
# Leaves two operations in each section of the API's documentation. Their markup is alike, and axe
# would take longer for all of them than for all other pages.
REMOVE_OPERATIONS = """() => document.querySelectorAll("details.operation:nth-of-type(n + 3)")
    .forEach((operation) => operation.remove())"""
DOCS = Path(__file__).resolve().parents[2] / "docs"


async def test_times_are_shown_in_the_readers_language(
    open_page: OpenPage, ready_video: str
) -> None:
    page = await open_page(timezone_id="Asia/Tokyo", locale="de-DE")
    await page.clock.install()
    await page.goto(f"/videos/{ready_video}")
    moment = page.locator("time").first
    await expect(moment).to_have_text(re.compile("^(jetzt|vor .+)$"))
    # The exact time is in the title.
    exact = re.compile(r"^\d\d\.\d\d\.\d{4}, \d\d:\d\d$")
    await expect(moment).to_have_attribute("title", exact)
    # Requests in flight would time out when the clock jumps.
    await expect(page.locator(".related--coming")).to_have_count(0)
    # The relative time is updated while the page is open.
    await page.clock.fast_forward("10:00:00")
    await expect(moment).to_have_text("vor 10 Stunden")


@pytest.mark.slow
async def test_polls_respect_retry_after(page: Page, waiting_video: str) -> None:
    polled_at: list[float] = []

    async def refuse(route: Route) -> None:
        polled_at.append(monotonic())
        await route.fulfill(status=429, headers={"Retry-After": "5"}, body="Slower.")

    await page.route("**/status", refuse)
    await page.goto(waiting_video)
    await until(lambda: len(polled_at) > 1, timeout_s=60)
    # Without Retry-After it polls every other second.
    assert polled_at[1] - polled_at[0] >= 5


@pytest.mark.slow
async def test_open_pages_of_a_deleted_video_say_so_and_stop_polling(
    open_page: OpenPage, idle_portal: LivePortal, short_video: Path
) -> None:
    video_id = await publish_file(idle_portal.base_url, short_video, "Soon deleted")
    detail = await open_page()
    frame = await open_page()
    await detail.goto(f"{idle_portal.base_url}/videos/{video_id}")
    await frame.goto(f"{idle_portal.base_url}/embed/{video_id}")
    await expect(detail.locator("#status")).to_contain_text("In queue")
    await detail.request.delete(f"{idle_portal.base_url}/api/videos/{video_id}")

    message = "This video is no longer available"
    await expect(detail.get_by_role("heading", name=message)).to_be_focused()
    main = detail.get_by_role("main")
    await expect(main.get_by_role("link")).to_have_text(["Go to the library"])
    await expect(main.get_by_role("button")).to_have_count(0)
    await expect(frame.get_by_role("heading")).to_have_text(message)
    for page in (detail, frame):
        await expect(page.locator("video, dialog, [hx-get], [hx-post]")).to_have_count(0)


async def test_focus_stays_on_the_page_when_a_failed_video_is_retried(
    page: Page, idle_portal: LivePortal
) -> None:
    rows = Rows(idle_portal.environ["DATABASE_URL"])
    video_id = await rows.add(900, "Tried again", status="failed")
    await rows.run("UPDATE versions SET failure_code = 'transcode_failed' WHERE id = %s", video_id)
    await page.goto(f"{idle_portal.base_url}/videos/{video_id}")
    await page.get_by_role("button", name="Try again").press("Enter")
    await expect(page.locator("#status")).to_contain_text("In queue")
    await expect(page.locator("#main")).to_be_focused()


async def test_every_page_is_accessible_at_all_widths(
    open_page: OpenPage, addresses: dict[str, str]
) -> None:
    """Every page fits all widths and has no violations of axe."""
    page = await open_page(reduced_motion="reduce")
    for name, address in addresses.items():
        await page.goto(address)
        if name == "ready":
            await play_past(page, 0)
        for table in await page.get_by_text("Show as table").all():
            await table.click()
        if name == "docs":
            await page.evaluate(REMOVE_OPERATIONS)
        await suits_everyone(page, name)


@pytest.mark.parametrize("name", ["library", "ready"])
@pytest.mark.slow
async def test_all_controls_are_reached_by_keyboard_and_show_the_focus(
    page: Page, addresses: dict[str, str], name: str
) -> None:
    await page.goto(addresses[name])
    if name == "library":
        # Cards are replaced when their videos become ready.
        polling = page.locator("#library-poll[hx-get]")
        await expect(polling).to_have_count(0, timeout=TRANSCODE_TIMEOUT_MS)
    else:
        # The player's scripts have started by then.
        await expect(page.locator("media-mute-button")).to_have_attribute("tabindex", "0")
    controls = set(await page.evaluate(MARK_USABLE))
    assert controls
    reached: set[str] = set()
    # Scrollable areas and parts of a player also take the focus.
    for _ in range(2 * len(controls) + 10):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(FOCUSED)
        if focused is not None:
            assert focused["is_shown"], focused
            reached.add(focused["mark"])
    assert controls <= reached


@pytest.mark.slow
async def test_controls_are_large_enough_for_touch(
    owned_portal: LivePortal, open_page: OpenPage
) -> None:
    base_url = owned_portal.base_url
    page = await open_page(width=360, height=800, has_touch=True, is_mobile=True, base_url=base_url)
    rows = Rows(owned_portal.environ["DATABASE_URL"])
    video = await rows.add(1, "A video")
    for video_id in (video, None):
        await rows.run(ADD_DAYS, video_id, 28)
    await rows.run(ADD_PERIOD, video)
    await page.request.post("/sign-in", form={"email": OWNER, "password": PASSWORD})
    begun = f"/videos/{video}/position"
    await page.request.post(begun, form={"position": "9"}, headers={"Origin": base_url})
    pages = ("", "/edit", "/statistics", "/chapters/edit", "/cuts", "/downloads", "/delete")
    of_the_video = [f"/videos/{video}{path}" for path in pages]
    for path in [
        "/",
        "/videos",
        "/statistics",
        "/account",
        "/people",
        "/groups",
        "/hand-ins",
        "/audit",
        "/webhooks",
        *of_the_video,
    ]:
        await page.goto(path)
        if path == "/":
            await expect(page.get_by_role("button", name="from Continue watching")).to_be_visible()
        assert await page.evaluate(SMALL_TARGETS) == [], path
        assert await page.evaluate(SMALL_ENTRIES) == [], path


async def test_components_are_accessible_in_every_state(app: Quart, open_page: OpenPage) -> None:
    loader = app.jinja_env.loader
    assert loader is not None
    app.jinja_env.loader = ChoiceLoader([loader, FileSystemLoader(DOCS)])
    async with app.test_request_context("/components"):
        seen_at = datetime(2026, 5, 4, 8, tzinfo=UTC)
        components = await render_template("components.html", seen_at=seen_at)
    page = await open_page(reduced_motion="reduce")
    await page.route("**/components", lambda route: route.fulfill(body=components))
    await page.goto("/components")
    await suits_everyone(page, "components")


@pytest.mark.complaint("Failed to load resource")
async def test_script_that_was_not_fetched_is_tried_again(page: Page) -> None:
    is_lost = True

    async def lose(route: Route) -> None:
        await (route.abort() if is_lost else route.continue_())

    await page.route(re.compile(r"/static/chunk-page-[^/]+\.js$"), lose)
    await page.goto("/upload")
    message = page.get_by_role("alert").filter(has_text="A part of this page")
    retry = message.get_by_role("button", name="Try again")
    await expect(retry).to_be_visible()
    is_lost = False
    await retry.click()
    await page.locator("[data-upload-form][data-ready]").wait_for()
    await expect(message).to_be_hidden()
