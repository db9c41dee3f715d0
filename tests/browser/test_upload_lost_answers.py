"""Publishing over a line that loses the portal's answers: one video, with what was typed last."""

import shutil
from pathlib import Path

import pytest
from api_client import rows
from playwright.async_api import Page, Route, expect
from running_portal import LivePortal
from upload_page import (
    CREATION,
    fill_in,
    is_uploaded,
    open_upload,
    press_publish,
    publish_button,
    start_upload,
)

# Answers are lost here.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("Failed to load resource")]


@pytest.fixture
def own_film(short_video: Path, tmp_path: Path) -> Path:
    """A video of a name that no other test uses."""
    return Path(shutil.copyfile(short_video, tmp_path / f"{tmp_path.name}.mp4"))


async def _publish_without_an_answer(page: Page, path: Path, *, title: str) -> None:
    """The portal gets the request (and does it, if it is right), but its answer is lost."""

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route(CREATION, lose, times=1)
    await start_upload(page, path)
    await fill_in(page, title=title)
    await is_uploaded(page)
    await publish_button(page).click()
    await expect(page.get_by_role("alert")).to_contain_text("be reached")


async def _titles(live_portal: LivePortal, path: Path) -> list[str]:
    """Those of all videos made from a file of this name."""
    query = "SELECT title FROM videos WHERE file_name = %s"
    return [title for (title,) in await rows(live_portal.environ["DATABASE_URL"], query, path.name)]


@pytest.mark.parametrize("is_left", [False, True], ids=["same page", "another visit"])
async def test_details_changed_after_a_lost_answer_belong_to_the_same_video(
    page: Page, live_portal: LivePortal, own_film: Path, is_left: bool
) -> None:
    await _publish_without_an_answer(page, own_film, title="The habour")
    if is_left:
        context = page.context
        await page.close()
        page = await context.new_page()
        await open_upload(page)
        await expect(page.get_by_text("Ready to publish")).to_be_visible()
    await page.get_by_label("Title").fill("The harbour")
    await press_publish(page, title="The harbour")
    assert await _titles(live_portal, own_film) == ["The harbour"]


async def test_refusal_that_was_lost_does_not_stand_in_the_way_of_what_is_right(
    page: Page, live_portal: LivePortal, own_film: Path
) -> None:
    await _publish_without_an_answer(page, own_film, title="t" * 201)
    await page.get_by_label("Title").fill("Short enough")
    await press_publish(page)
    assert await _titles(live_portal, own_film) == ["Short enough"]
