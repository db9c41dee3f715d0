"""Whose session ends in the middle of something: signing in again in the same tab loses nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chromium import OpenPage, axe_findings
from playwright.async_api import Locator, Page, Request, Route, expect
from running_portal import LivePortal, fresh_portal
from upload_page import (
    choose,
    details,
    fill_in,
    is_published,
    is_uploaded,
    open_line,
    padded,
    press_publish,
    publish_button,
    slow_down,
)

# Browsers report answers that refuse something.
pytestmark = [pytest.mark.slow, pytest.mark.complaint("status of (401|404|409|422)")]

OWNER = "ann@example.org"
EDITOR = "ed@example.org"
PASSWORD = "four calm green boats"
MIB = 2**20


@pytest.fixture(scope="module")
async def portal(services: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal without a worker."""
    async with fresh_portal(services) as portal:
        yield portal


@pytest.fixture
async def owner(page: Page, portal: LivePortal) -> Page:
    """The upload page in a browser in which the portal's owner is signed in."""
    form = {"email": OWNER, "password": PASSWORD, "next": "/upload"}
    # The first test makes the account; for the others this is not found.
    await page.context.request.post(f"{portal.base_url}/set-up", form=form)
    if not await page.context.cookies(portal.base_url):
        await page.context.request.post(f"{portal.base_url}/sign-in", form=form)
    await page.goto(f"{portal.base_url}/upload")
    await page.locator("[data-upload-form][data-ready]").wait_for()
    return page


@pytest.fixture(scope="module")
def big_file(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of five parts."""
    return padded(short_video, tmp_path_factory.mktemp("big") / "big.mp4", 70 * MIB)


@pytest.fixture
def second_video(short_video: Path, tmp_path: Path) -> Path:
    return padded(short_video, tmp_path / "second.mp4", 1000)


async def sign_out(page: Page) -> None:
    """End the session in another tab."""
    base_url = "/".join(page.url.split("/")[:3])
    headers = {"Origin": base_url}
    answer = await page.context.request.post(f"{base_url}/sign-out", headers=headers)
    assert answer.ok


def dialog_of(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Sign in again")


async def sign_in(page: Page, *, email: str = OWNER, password: str = PASSWORD) -> None:
    """Fill in the dialog, and send it."""
    dialog = dialog_of(page)
    await dialog.get_by_label("E-mail address").fill(email)
    await dialog.get_by_role("textbox", name="Password").fill(password)
    await dialog.get_by_role("button", name="Sign in", exact=True).click()


async def test_parts_go_on_while_the_dialog_is_open_and_afterwards(
    owner: Page, big_file: Path
) -> None:
    sent: list[str] = []
    put: list[str] = []
    turn, has_three = asyncio.Lock(), asyncio.Event()

    async def sign_first(route: Route) -> None:
        """The session ends once three parts are signed, each of which has its answer by then."""
        async with turn:
            if len(sent) == 3:
                await sign_out(owner)
            sent.append(route.request.url)
            if len(sent) > 3:
                await route.continue_()
            else:
                await route.fulfill(response=await route.fetch())

    def finished(request: Request) -> None:
        if request.method == "PUT":
            put.append(request.url)
        if len(put) == 3:
            has_three.set()

    owner.on("requestfinished", finished)
    await owner.route("**/api/uploads/*/parts/*", sign_first)
    await slow_down(owner, 8_000_000)
    await choose(owner, big_file)
    await dialog_of(owner).wait_for()
    await slow_down(owner, 0)
    await asyncio.wait_for(has_three.wait(), 60)
    await expect(dialog_of(owner)).to_be_visible()
    await expect(details(owner).get_by_role("alert")).to_have_count(0)
    await sign_in(owner)
    await is_uploaded(owner)
    # Nothing was sent twice.
    assert len(put) == len(set(put)) == 5
    await fill_in(owner, title="In parts")
    await press_publish(owner, title="In parts")


async def test_another_person_is_told_and_nothing_is_done_in_their_name(
    owner: Page, portal: LivePortal, open_page: OpenPage, big_file: Path, second_video: Path
) -> None:
    await make_editor(owner, portal, open_page)
    await choose(owner, second_video)
    await is_uploaded(owner)
    await sign_out(owner)
    await choose(owner, big_file)
    await sign_in(owner, email=EDITOR)
    alert = dialog_of(owner).get_by_role("alert")
    await expect(alert).to_contain_text(f"You are signed in as {EDITOR} now")
    await expect(alert).to_contain_text(f"Sign in as {OWNER}")
    await owner.keyboard.press("Escape")
    await open_line(owner, big_file.name)
    trouble = details(owner).locator("[data-trouble]")
    await expect(trouble).to_contain_text("as someone else than before")
    await open_line(owner, second_video.name)
    await fill_in(owner, title="Ann's own")
    await publish_button(owner).click()
    # That of the other lacks a category.
    await open_line(owner, second_video.name)
    refusal = details(owner).locator("[data-submit-trouble]")
    await expect(refusal).to_contain_text("as someone else than before")
    assert await axe_findings(owner) == []
    await expect(owner.get_by_label("Title")).to_have_value("Ann's own")
    listed = await owner.context.request.get(f"{portal.base_url}/?q=Ann's+own")
    assert 'id="card-' not in await listed.text()

    await refusal.get_by_role("link", name="Sign in").click()
    await sign_in(owner)
    await is_published(owner, "Ann's own")
    await is_uploaded(owner, big_file.name)


async def make_editor(owner: Page, portal: LivePortal, open_page: OpenPage) -> None:
    """Invite someone, who accepts."""
    request = owner.context.request
    made = await request.post(
        f"{portal.base_url}/people/invitations",
        form={"role": "editor"},
        headers={"Origin": portal.base_url},
    )
    found = re.search(r"/welcome/[\w-]+", await made.text())
    assert found is not None
    guest = await open_page()
    await guest.goto(portal.base_url + found[0])
    await guest.get_by_label("E-mail address").fill(EDITOR)
    await guest.get_by_role("textbox", name="Password").fill(PASSWORD)
    await guest.get_by_role("button", name="Choose password and sign in").click()
    await guest.get_by_role("link", name="Account").wait_for()
