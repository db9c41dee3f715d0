"""Going on with an upload of an earlier visit, with everything that was typed."""

import os
import re
from pathlib import Path

import pytest
from chromium import hold_requests, record_requests
from playwright.async_api import BrowserContext, Page, expect
from upload_page import (
    STORAGE,
    choose,
    choose_category,
    chosen_categories,
    details,
    fill_in,
    is_published,
    is_uploaded,
    line,
    open_upload,
    padded,
    press_publish,
    publish_button,
    start_upload,
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
    await expect(line(page, film.name)).to_contain_text("trying again by itself")
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

    place, form = line(page, film.name), details(page)
    await expect(place).to_contain_text("Unfinished")
    await expect(place).to_contain_text("1.")  # MB
    await expect(form).to_contain_text(re.compile(r"Started (today|on \d+ \w+) at"))
    await expect(form.get_by_label("Title")).to_have_value("The harbour")
    await expect(form.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(form.get_by_label("Tags")).to_have_value("sea, sun")
    # Nothing can be published before the file is there.
    await expect(publish_button(page)).to_be_hidden()

    again = form.get_by_label("Choose the file again")
    await again.set_input_files(short_video)
    await expect(form).to_contain_text(f"This is “{short_video.name}”")
    await expect(again).to_be_focused()
    changed = tmp_path / film.name
    changed.write_bytes(film.read_bytes()[:-1])
    await again.set_input_files(changed)
    await expect(form).to_contain_text("has the right name but another size")
    changed.write_bytes(film.read_bytes()[:-1] + b"x")
    await again.set_input_files(changed)
    await expect(form).to_contain_text("right name and size, but its content is another")

    await again.set_input_files(film)
    await is_uploaded(page, film.name)
    await press_publish(page, title="The harbour")


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
    await choose_category(page)
    await expect(line(page, large_film.name)).to_contain_text("%")
    page = await _leave(page, page.context)
    place = line(page, large_film.name)
    await expect(details(page)).to_contain_text("have arrived")
    await expect(place).to_contain_text(re.compile(r"Unfinished at [1-9]\d%"))
    sent = record_requests(page, method="PUT")
    # Chosen like a new file, it is known.
    await choose(page, large_film)
    # It never seems to begin anew.
    await expect(place).not_to_contain_text("Starting")
    await is_uploaded(page, large_film.name)
    await expect(page.locator("[data-line]")).to_have_count(1)
    assert sent
    assert not any("partNumber=2" in url for url in sent)
    await expect(chosen_categories(page)).to_have_text(["Music"])


@pytest.mark.slow
async def test_file_that_was_away_for_a_moment_goes_on_where_it_was(
    page: Page, large_film: Path
) -> None:
    sent = record_requests(page, method="PUT")
    late_parts = re.compile("/parts/[3-9]$")
    go_on = await hold_requests(page, late_parts)
    chosen = large_film.stat()
    await open_upload(page)
    async with page.expect_request_finished(lambda put: "partNumber=2" in put.url):
        await choose(page, large_film)
    place, alert = line(page, large_film.name), details(page).get_by_role("alert")
    await page.get_by_label("Title").fill("On a stick")
    await choose_category(page)
    await publish_button(page).click()
    # A browser doesn't read a file that seems to have changed.
    os.utime(large_film, (1, 1))
    go_on.set()
    await expect(alert).to_contain_text("be read any more")
    os.utime(large_film, ns=(chosen.st_atime_ns, chosen.st_mtime_ns))
    go_on.clear()
    async with page.expect_request(late_parts):
        await place.get_by_role("button", name="Try again").click()
    os.utime(large_film, (1, 1))
    go_on.set()
    await expect(alert).to_contain_text("be read any more")
    # Chosen again it is known, and was to be published.
    os.utime(large_film, ns=(chosen.st_atime_ns, chosen.st_mtime_ns))
    await choose(page, large_film)
    await expect(page.locator("[data-line]")).to_have_count(1)
    await is_published(page, "On a stick")
    assert len({url.partition("?")[0] for url in sent}) == 1
    assert len([url for url in sent if "partNumber=2" in url]) == 1


@pytest.mark.slow
async def test_stored_upload_is_published_without_its_file(page: Page, film: Path) -> None:
    await start_upload(page, film)
    await fill_in(page, title="Stored already")
    await is_uploaded(page)
    page = await _leave(page, page.context)
    await expect(line(page, film.name)).to_contain_text("Ready to publish")
    await press_publish(page, title="Stored already")
    # It is done with.
    await open_upload(page)
    await page.wait_for_load_state("networkidle")
    await expect(page.locator("[data-line]")).to_have_count(0)
