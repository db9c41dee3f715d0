"""Owners of videos: the name that people choose, and never their email address."""

import pytest
from page_rows import READY, make_row
from page_texts import fault_of, page, send, value_of
from quart import Quart
from signed_in import Sender, signed_in

from portal.database.account_models import MAX_NAME_LENGTH, Account

pytestmark = pytest.mark.shared_app


async def rename(sender: Sender, name: str, status: int = 303) -> str:
    return await send(sender, "/account/name", {"name": name}, status)


async def test_pages_show_the_owners_name_but_never_the_address(
    app: Quart, anyone: Sender, olga: Account
) -> None:
    videos = [await make_row(number, **READY, owner_id=olga.id) for number in (1, 2)]
    watch = f"/videos/{videos[0].id}"
    owner = await signed_in(app, olga)
    assert olga.email in await page(owner, "/people")
    assert "by <bdi>" not in await page(anyone, watch)
    await rename(owner, "  Ann\n of the  Hill ")
    assert "by <bdi>Ann of the Hill</bdi>" in " ".join((await page(anyone, watch)).split())
    for path, cards in (("/", 2), (f"{watch}/related", 1), (watch, 0)):
        text = await page(anyone, path)
        assert text.count("<bdi>Ann of the Hill</bdi> ·") == cards
        assert olga.email not in text
    assert "<bdi>Ann of the Hill</bdi>" in await page(owner, "/people")
    # The name is text, without marks that reverse direction.
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
