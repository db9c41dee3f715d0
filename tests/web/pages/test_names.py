"""By whom a video is: the name that people give themselves, and never their e-mail address."""

import html
import re

import pytest
from account_pages import fault_of, page, send, value_of
from page_rows import READY, make_row
from quart import Quart
from signed_in import Sender, signed_in

from portal.database.account_models import MAX_NAME_LENGTH, Account

pytestmark = pytest.mark.shared_app


def byline(text: str) -> str:
    """Below the title of a video's page."""
    found = re.search(r'<p class="video-page__byline">.*?</p>', text, re.DOTALL)
    assert found is not None
    shown = re.sub(r'<span id="\w+"\s+hidden>.*?</span>', "", found[0], flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", shown).split()))


async def rename(sender: Sender, name: str, status: int = 303) -> str:
    return await send(sender, "/account/name", {"name": name}, status)


async def test_pages_say_by_whom_and_never_tell_the_address(
    app: Quart, anyone: Sender, olga: Account
) -> None:
    videos = [await make_row(number, **READY, owner_id=olga.id) for number in (1, 2)]
    watch, owner = f"/videos/{videos[0].id}", await signed_in(app, olga)
    assert re.fullmatch(r"Published [^y]* UTC", byline(await page(anyone, watch)))
    assert f"<bdi>{olga.email}</bdi>" in await page(owner, "/people")
    await rename(owner, "  Ann\n of the  Hill ")
    assert byline(await page(anyone, watch)).endswith("by Ann of the Hill")
    for path, cards in (("/", 2), (f"{watch}/related", 1), (watch, 0)):
        text = await page(anyone, path)
        assert text.count("<bdi>Ann of the Hill</bdi> ·") == cards
        assert olga.email not in text
    assert "<bdi>Ann of the Hill</bdi>" in await page(owner, "/people")
    # As text, which turns nothing around.
    await rename(owner, "<b>Ann</b> \u202eevil")
    text = await page(anyone, watch)
    assert "&lt;b&gt;Ann&lt;/b&gt;" in text
    assert "\u202e" not in text


async def test_name_has_a_length(app: Quart, olga: Account) -> None:
    sender = await signed_in(app, olga)
    await rename(sender, "x" * MAX_NAME_LENGTH)
    text = await rename(sender, "y" * (MAX_NAME_LENGTH + 1), 422)
    assert fault_of(text, "own-name") == "Give a name of at most 100 characters."
    assert value_of(text, "own-name") == "y" * (MAX_NAME_LENGTH + 1)
    assert value_of(await page(sender, "/account"), "own-name") == "x" * MAX_NAME_LENGTH
