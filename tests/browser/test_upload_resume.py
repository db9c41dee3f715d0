"""Going on with an upload of an earlier visit, with everything that was typed."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from chromium import record_requests
from playwright.async_api import BrowserContext, Page, Route, expect
from upload_page import (
    STORAGE,
    choose,
    fill_in,
    open_upload,
    padded,
    press_publish,
    row,
    start_upload,
    video_is_opened,
)

# Uploads are broken off here.
pytestmark = pytest.mark.complaint("Failed to load resource")

MIB = 2**20


@pytest.fixture(scope="session")
def film(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video that takes seconds on a slow line."""
    path = tmp_path_factory.mktemp("resume") / "harbour.mp4"
    return padded(short_video, path, 1_200_000)


@pytest.fixture(scope="session")
def large_film(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video large enough to be sent in parts."""
    path = tmp_path_factory.mktemp("resume") / "large harbour.mp4"
    return padded(short_video, path, 66 * MIB)


async def _begin(page: Page, film: Path, *, title: str) -> None:
    """Fill in everything while storage is out of reach.

    The context cuts it off, not the page: a page that is being closed loses its
    routes first, and a retry in that moment would arrive.
    """
    await page.context.route(STORAGE, lambda route: route.abort())
    await start_upload(page, film)
    await expect(row(page, film.name)).to_contain_text("trying again by itself")
    await fill_in(page, title=title)


async def _leave(page: Page, context: BrowserContext) -> Page:
    """Close the tab, as a crash would, and come back in another."""
    await page.close()
    await context.unroute_all()
    again = await context.new_page()
    await open_upload(again)
    return again


async def test_upload_goes_on_in_another_visit_with_what_was_typed(
    page: Page, film: Path, short_video: Path, tmp_path: Path
) -> None:
    await _begin(page, film, title="The harbour")
    page = await _leave(page, page.context)

    place = row(page, film.name)
    await expect(place.get_by_text("Unfinished upload")).to_be_visible()
    await expect(place).to_contain_text("1.")  # MB
    await expect(place).to_contain_text("Begun today at")
    await expect(place.get_by_label("Title")).to_have_value("The harbour")
    await expect(place.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(place.get_by_role("checkbox").first).to_be_checked()
    await expect(place.get_by_label("Tags")).to_have_value("sea, sun")

    again = place.locator("input[type=file]")
    await place.get_by_role("button", name="Publish video").click()
    await expect(place).to_contain_text("Choose the file again to go on.")
    await expect(again).to_be_focused()
    await again.set_input_files(short_video)
    await expect(place).to_contain_text(f"This is “{short_video.name}”")
    changed = tmp_path / film.name
    changed.write_bytes(film.read_bytes()[:-1])
    await again.set_input_files(changed)
    await expect(place).to_contain_text("has the right name but another size")
    changed.write_bytes(film.read_bytes()[:-1] + b"x")
    await again.set_input_files(changed)
    await expect(place).to_contain_text("right name and size, but its content is another")

    await again.set_input_files(film)
    await expect(place.get_by_text("Uploaded", exact=True)).to_be_visible()
    await press_publish(place, title="The harbour")


@pytest.mark.slow
async def test_large_upload_says_how_far_it_is_and_sends_the_rest(
    page: Page, large_film: Path
) -> None:
    await page.context.route(re.compile("partNumber=[3-9]"), lambda route: route.abort())
    await open_upload(page)
    async with page.expect_request_finished(
        lambda sent: sent.method == "PUT" and "partNumber=2" in sent.url
    ):
        await choose(page, large_film)
    await page.get_by_role("checkbox").first.check()
    await expect(row(page, large_film.name)).to_contain_text("%")
    page = await _leave(page, page.context)
    place = row(page, large_film.name)
    await expect(place).to_contain_text("has arrived")
    sent = record_requests(page, method="PUT")
    # Chosen like a new file, it is known.
    await choose(page, large_film)
    await expect(place.get_by_text("Uploaded", exact=True)).to_be_visible()
    await expect(page.locator("[data-row]")).to_have_count(1)
    assert sent
    assert not any("partNumber=2" in url for url in sent)
    await expect(place.get_by_role("checkbox").first).to_be_checked()


@pytest.mark.slow
async def test_file_that_was_away_for_a_moment_goes_on_where_it_was(
    page: Page, large_film: Path
) -> None:
    sent = record_requests(page, method="PUT")
    late_parts = re.compile("/parts/[3-9]$")
    go_on = asyncio.Event()

    async def hold(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await page.route(late_parts, hold)
    chosen = large_film.stat()
    await open_upload(page)
    async with page.expect_request_finished(lambda put: "partNumber=2" in put.url):
        await choose(page, large_film)
    place = row(page, large_film.name)
    await place.get_by_label("Title").fill("On a stick")
    await place.get_by_role("checkbox").first.check()
    await place.get_by_role("button", name="Publish video").click()
    # A browser doesn't read a file that seems to have changed.
    os.utime(large_film, (1, 1))
    go_on.set()
    await expect(place.get_by_role("alert")).to_contain_text("be read any more")
    os.utime(large_film, ns=(chosen.st_atime_ns, chosen.st_mtime_ns))
    go_on.clear()
    async with page.expect_request(late_parts):
        await place.get_by_role("button", name="Try again").click()
    os.utime(large_film, (1, 1))
    go_on.set()
    await expect(place.get_by_role("alert")).to_contain_text("be read any more")
    # Chosen again it is known, and was to be published.
    os.utime(large_film, ns=(chosen.st_atime_ns, chosen.st_mtime_ns))
    await choose(page, large_film)
    await expect(page.locator("[data-row]")).to_have_count(1)
    await video_is_opened(page, "On a stick")
    assert len({url.partition("?")[0] for url in sent}) == 1
    assert len([url for url in sent if "partNumber=2" in url]) == 1


@pytest.mark.slow
async def test_stored_upload_is_published_without_its_file(page: Page, film: Path) -> None:
    await start_upload(page, film)
    await fill_in(page, title="Stored already")
    await expect(page.get_by_text("Uploaded", exact=True)).to_be_visible()
    page = await _leave(page, page.context)
    place = row(page, film.name)
    await expect(place).to_contain_text("only publishing is missing")
    await press_publish(place, title="Stored already")
    # It is done with.
    await open_upload(page)
    await expect(page.locator("[data-transfer]")).to_be_hidden()


@pytest.mark.slow
async def test_stored_uploads_together_are_shown_as_uploaded(
    page: Page, film: Path, short_video: Path
) -> None:
    await start_upload(page, film, short_video)
    await expect(page.locator("[data-batch]")).to_contain_text("2 of 2 uploaded")
    page = await _leave(page, page.context)
    batch = page.locator("[data-batch]")
    await expect(batch).to_contain_text("2 of 2 uploaded")
    await expect(batch.locator("[data-percent]")).to_have_text("Uploaded")
    await expect(batch.get_by_role("progressbar")).to_have_js_property("value", 1)


@pytest.mark.slow
async def test_discarded_upload_is_gone_for_good(page: Page, film: Path) -> None:
    await _begin(page, film, title="Not wanted")
    page = await _leave(page, page.context)
    place = row(page, film.name)
    async with page.expect_response(lambda answer: answer.request.method == "DELETE") as removed:
        await place.get_by_role("button", name="Discard").click()
    assert (await removed.value).status == 204
    await expect(page.locator("[data-drop] input")).to_be_focused()
    await expect(page.get_by_label("Title")).to_have_value("")
    page = await _leave(page, page.context)
    await expect(page.locator("[data-transfer]")).to_be_hidden()


@pytest.mark.slow
async def test_upload_of_another_tab_is_offered_once_that_is_closed(page: Page, film: Path) -> None:
    await _begin(page, film, title="Elsewhere")
    other = await page.context.new_page()
    await open_upload(other)
    await other.wait_for_load_state("networkidle")
    await expect(other.locator("[data-transfer]")).to_be_hidden()
    await page.close()
    await expect(row(other, film.name).get_by_text("Unfinished upload")).to_be_visible()
