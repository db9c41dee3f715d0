"""Actions and locators of the upload page."""

from pathlib import Path

from chromium import TRANSCODE_TIMEOUT_MS
from playwright.async_api import CDPSession, Locator, Page, expect


def padded(video: Path, path: Path, size_bytes: int) -> Path:
    """Write a video with padding (a `free` box), so that its upload takes some time."""
    padding = bytes(size_bytes)
    box = (len(padding) + 8).to_bytes(4, "big") + b"free" + padding
    path.write_bytes(video.read_bytes() + box)
    return path


async def slow_down(page: Page, bytes_per_s: int) -> CDPSession:
    """Slow the page's uploads down; they run freely again once the session is detached."""
    session = await page.context.new_cdp_session(page)
    conditions = {"offline": False, "latency": 5, "downloadThroughput": -1}
    conditions["uploadThroughput"] = bytes_per_s
    await session.send("Network.emulateNetworkConditions", conditions)
    return session


async def open_upload(page: Page) -> None:
    """Open the upload page, and wait until its scripts listen."""
    await page.goto("/upload")
    await page.locator("[data-upload-form][data-ready]").wait_for()


async def choose(page: Page, *paths: Path) -> None:
    await page.locator("[data-drop] input").set_input_files(list(paths))


async def start_upload(page: Page, *paths: Path) -> None:
    await open_upload(page)
    await choose(page, *paths)


def publish_button(page: Page) -> Locator:
    """Return the button that publishes all complete uploads."""
    return page.locator("[data-submit]")


async def press_publish(page: Page, *, title: str) -> None:
    await publish_button(page).click()
    await is_published(page, title)


async def is_published(page: Page, title: str) -> None:
    await expect(open_link(page, title)).to_be_visible()


def open_link(page: Page, title: str) -> Locator:
    """Return the link from a published upload to its page."""
    place = page.get_by_role("listitem").filter(has_text=title)
    return place.get_by_role("link", name="Open", exact=True)


async def open_video(page: Page, title: str) -> None:
    """Follow the link from a published upload to its page."""
    await open_link(page, title).click()
    await page.wait_for_url("**/videos/*")
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)


async def is_ready(page: Page, name: str) -> None:
    """Wait until the published video of a file can be watched."""
    ready = line(page, name)
    await expect(ready).to_contain_text("Ready to watch", timeout=TRANSCODE_TIMEOUT_MS)


async def publish_and_open(page: Page, path: Path) -> None:
    """Publish a file that is chosen already, and open its page."""
    await choose_category(page)
    await publish_button(page).click()
    await is_ready(page, path.name)
    await open_video(page, path.stem)


def line(page: Page, name: str) -> Locator:
    """Return the line of a file in the list."""
    return page.get_by_role("listitem", name=name, exact=True)


def details(page: Page) -> Locator:
    """Return the form with the details of the open upload."""
    return page.locator("form[data-details]")


async def open_line(page: Page, name: str) -> Locator:
    """Open the details of a file, and return their form."""
    await line(page, name).locator("[data-open]").click()
    await expect(details(page).get_by_role("heading", name=name, exact=True)).to_be_visible()
    return details(page)


def category_field(place: Page | Locator) -> Locator:
    """Return the search field for categories."""
    return place.get_by_role("combobox", name="Categories")


async def choose_category(page: Page, name: str = "Music") -> None:
    """Choose one more category."""
    await category_field(page).click()
    await page.get_by_role("option", name=name, exact=True).click()
    await page.keyboard.press("Escape")


def chosen_categories(page: Page) -> Locator:
    """Return the chosen categories."""
    return page.locator("[data-multi-chips] [data-words]")


async def is_uploaded(page: Page, *names: str) -> None:
    """Wait until these files are uploaded, by default the first."""
    for place in [line(page, name) for name in names] or [page.locator("[data-line]").first]:
        await expect(place.get_by_text("Uploaded", exact=True)).to_be_visible()


async def fill_in(page: Page, *, title: str) -> None:
    """Fill in all details of the open upload."""
    place = details(page)
    await place.get_by_label("Title").fill(title)
    await place.get_by_label("Description").fill("By the sea.\nTwice.")
    await choose_category(page)
    await place.get_by_label("Tags").fill("sea, sun")
