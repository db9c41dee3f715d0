"""Pages in the reader's language: complete, without overflow, from left and from right."""

import re
from pathlib import Path
from pprint import pformat

import pytest
from chromium import OWNER, READY_SEARCH, OpenPage, fits, play_past, save_screenshots
from library_rows import Rows
from page_languages import untranslated
from playwright.async_api import Page, expect
from running_portal import IMPRINT, LivePortal

# Browsers log the refused requests for missing and deleted pages as errors.
pytestmark = pytest.mark.complaint("status of 4(01|04|05|10|22|29)")

# Texts of the fixtures, the name of the site, and its link.
OWN_WORDS = [
    "A ready video",
    "A waiting video",
    "A failed video",
    "A film",
    "A video",
    "A series",
    "Imprint",
    IMPRINT,
    "Portal",
    OWNER,
    "notes.mp4",
    "127.0.0.1",
    "localhost",
    # Keys.
    "JL",
    "nothing like this",
]
PAGES_OF_PEOPLE = (
    "/account",
    "/people",
    "/groups",
    "/hand-ins",
    "/series",
    "/?whose=shared",
    "/approvals",
    "/audit",
    "/webhooks",
    "/webhooks/new",
    "/videos",
    "/upload",
    "/record",
)
# Pages of a video whose texts differ with accounts.
PAGES_OF_OWNED_VIDEOS = ("", "/edit", "/statistics", "/cuts", "/delete")
# Pages have one column at the first width, and several at the second. Mirrored texts are as long as
# English ones, which another test checks at all widths.
MIRRORED_WIDTHS = (320, 1440)


def in_language(address: str, language: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}lang={language}"


async def test_every_text_of_every_page_is_translated(
    open_page: OpenPage, addresses: dict[str, str]
) -> None:
    page = await open_page(reduced_motion="reduce")
    missing = {}
    # Other tests add videos.
    for name, address in {**addresses, "library": READY_SEARCH}.items():
        await page.goto(in_language(address, "xx"))
        if name == "ready":
            await play_past(page, 0)
        await page.wait_for_load_state("networkidle")
        if texts := await untranslated(page, OWN_WORDS):
            missing[name] = texts
        await fits(page, name)
        await save_screenshots(page, f"xx-{name}")
    assert not missing, pformat(missing, width=150)


async def test_every_text_for_people_with_accounts_is_translated(
    owner: Page, owned_portal: LivePortal
) -> None:
    rows = Rows(owned_portal.environ["DATABASE_URL"])
    video = await rows.add(700, "A video")
    of_the_video = (f"/videos/{video}{path}" for path in PAGES_OF_OWNED_VIDEOS)
    missing = {}
    for path in (*PAGES_OF_PEOPLE, *of_the_video):
        await owner.goto(in_language(path, "xx"))
        await owner.wait_for_load_state("networkidle")
        if texts := await untranslated(owner, OWN_WORDS):
            missing[path] = texts
        await fits(owner, path)
    await owner.context.clear_cookies()
    for path in ("/sign-in", "/welcome/none", "/set-up"):
        await owner.goto(in_language(path, "xx"))
        if texts := await untranslated(owner, OWN_WORDS):
            missing[path] = texts
    assert not missing, pformat(missing, width=150)


async def test_texts_that_scripts_change_are_translated(
    page: Page, ready_video: str, notes: Path, short_video: Path
) -> None:
    missing = {}

    async def look(state: str) -> None:
        await page.wait_for_load_state("networkidle")
        if texts := await untranslated(page, [*OWN_WORDS, short_video.name, short_video.stem]):
            missing[state] = texts

    await page.goto(in_language("/upload", "xx"))
    chosen = page.locator("input[type=file]").first
    await chosen.set_input_files([notes])
    await expect(page.locator("[data-line]")).to_have_count(1)
    await look("refused file")
    await chosen.set_input_files([short_video])
    await expect(page.locator("[data-line]")).to_have_count(2)
    await look("upload")
    await page.locator("[data-submit]").click()
    await look("missing details")
    await page.locator("[data-line] [data-action=remove]:visible").last.click()
    await look("cancelled")
    await page.goto(in_language("/?q=nothing+like+this", "xx"))
    await look("no results")
    await page.goto(in_language(f"/videos/{ready_video}/edit", "xx"))
    await page.locator("[name=title]").fill("Another title")
    await look("unsaved changes")
    await page.goto(in_language(f"/videos/{ready_video}/chapters/edit", "xx"))
    await page.locator("[data-does=add]").click()
    await look("chapters")
    await page.goto(in_language(f"/videos/{ready_video}/cuts", "xx"))
    await play_past(page, 0)
    await look("cuts")
    assert not missing, pformat(missing, width=150)


async def test_pages_from_right_to_left_fit(open_page: OpenPage, addresses: dict[str, str]) -> None:
    page = await open_page(reduced_motion="reduce")
    for name, address in addresses.items():
        await page.goto(in_language(address, "xr"))
        await expect(page.locator("html")).to_have_attribute("dir", "rtl")
        if name == "ready":
            await play_past(page, 0)
            bar = page.locator("media-control-bar.player__bar")
            assert await bar.evaluate("(bar) => getComputedStyle(bar).direction") == "ltr"
        await fits(page, name, MIRRORED_WIDTHS)
        await save_screenshots(page, f"xr-{name}")


async def test_choice_in_the_footer_lasts(page: Page) -> None:
    await page.goto("/upload")
    await page.get_by_role("button", name="Deutsch").click()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await page.goto("/")
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await expect(page.get_by_role("button", name="Deutsch")).to_have_attribute(
        "aria-current", "true"
    )
    await expect(page).to_have_url(re.compile("/$"))


@pytest.mark.parametrize("path", ["/videos/{}", "/embed/{}"])
async def test_language_is_chosen_in_the_players_menu(
    page: Page, ready_video: str, path: str
) -> None:
    await page.goto(path.format(ready_video))
    await play_past(page, 0)
    await page.locator("media-settings-menu-button").press("Enter")
    await page.get_by_role("menuitem", name="Page language").press("Enter")
    await page.get_by_role("menuitemradio", name="Français").press("Enter")
    await expect(page.locator("html")).to_have_attribute("lang", "fr")
