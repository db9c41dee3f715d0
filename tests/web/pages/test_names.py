"""By whom a video is: the name that people give themselves, and never their e-mail address."""

import html
import re

import pytest
from account_pages import fault_of, page, send, value_of
from page_rows import READY, make_row
from quart import Quart
from signed_in import Sender, make_account, signed_in

from portal.accounts import people
from portal.database.account_models import MAX_NAME_LENGTH, Account

pytestmark = pytest.mark.shared_app

EVIL = "<b>Ann</b> \u202eevil"


def byline(text: str) -> str:
    """Below the title of a video's page."""
    found = re.search(r'<p class="video-page__byline">.*?</p>', text, re.DOTALL)
    assert found is not None
    shown = re.sub(r'<span id="\w+"\s+hidden>.*?</span>', "", found[0], flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", shown).split()))


@pytest.fixture
async def ann() -> Account:
    """The owner."""
    return await make_account("ann")


async def rename(sender: Sender, name: str, status: int = 303) -> str:
    return await send(sender, "/account/name", {"name": name}, status)


async def test_watch_page_says_by_whom_and_never_tells_the_address(
    app: Quart, anyone: Sender, ann: Account
) -> None:
    video = await make_row(**READY, owner_id=ann.id)
    watch, owner = f"/videos/{video.id}", await signed_in(app, ann)
    text = await page(anyone, watch)
    assert re.fullmatch(r"Published [^y]* UTC", byline(text))
    await rename(owner, "  Ann\n of the  Hill ")
    text = await page(anyone, watch)
    assert byline(text).endswith("by Ann of the Hill")
    assert ann.email not in text
    assert "Ann" not in byline(await page(anyone, f"/videos/{(await make_row(2)).id}"))
    # As text, which turns nothing around.
    await rename(owner, EVIL)
    text = await page(anyone, watch)
    assert "&lt;b&gt;Ann&lt;/b&gt;" in text
    assert "\u202e" not in text
    await rename(owner, "")
    assert "by" not in byline(await page(anyone, watch)).split()


async def test_cards_and_people_are_told_apart_by_name(
    app: Quart, anyone: Sender, ann: Account
) -> None:
    videos = [await make_row(number, **READY, owner_id=ann.id) for number in (1, 2)]
    owner = await signed_in(app, ann)
    people_page = await page(owner, "/people")
    assert f"<bdi>{ann.email}</bdi>" in people_page
    await rename(owner, "Ann of the Hill")
    for path, cards in (("/", 2), (f"/videos/{videos[0].id}/related", 1)):
        text = await page(anyone, path)
        assert text.count("<bdi>Ann of the Hill</bdi> ·") == cards
        assert ann.email not in text
    assert "<bdi>Ann of the Hill</bdi>" in await page(owner, "/people")


async def test_name_has_a_length(app: Quart, ann: Account) -> None:
    sender = await signed_in(app, ann)
    await rename(sender, "x" * MAX_NAME_LENGTH)
    assert "Your name is changed." in await page(sender, "/account?done=name")
    text = await rename(sender, "y" * (MAX_NAME_LENGTH + 1), 422)
    assert fault_of(text, "own-name") == "Give a name of at most 100 characters."
    assert value_of(text, "own-name") == "y" * (MAX_NAME_LENGTH + 1)
    assert value_of(await page(sender, "/account"), "own-name") == "x" * MAX_NAME_LENGTH


@pytest.mark.parametrize("name", ["\0", "\ud800", " \u200b ", "\x85"])
def test_what_nobody_can_read_or_keep_is_no_name(name: str) -> None:
    assert people.plain_name(name) == ""
