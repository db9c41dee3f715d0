"""My videos: what who is signed in has published, beside the whole library."""

import html
import re

import pytest
from account_pages import page
from library_pages import add_video, all_titles, read
from page_rows import READY
from quart import Quart
from signed_in import Sender, make_account, signed_in, token_of
from signed_in import program as program_of

from portal.database.account_models import Account
from portal.database.states import Role, Visibility
from portal.web.pages.library import PAGE_SIZE

pytestmark = pytest.mark.shared_app


@pytest.fixture
async def ann() -> Account:
    """The first owner."""
    return await make_account("ann")


@pytest.fixture
async def ed(ann: Account) -> Account:
    """An editor."""
    return await make_account("ed", Role.EDITOR)


def tabs_of(text: str) -> list[str]:
    """The names of the tabs above the library, the open one with a star."""
    found = re.findall(r'<a class="tab"\s+href="[^"]+"\s*(aria-current="page")?\s*>([^<]+)<', text)
    return [f"{name}{'*' if current else ''}" for current, name in found]


async def test_editor_finds_all_own_videos_and_no_others(
    app: Quart, ann: Account, ed: Account
) -> None:
    for number, visibility in enumerate(Visibility):
        await add_video(f"Ed {visibility}", number, owner_id=ed.id, visibility=visibility)
    await add_video("Ann public", 4, owner_id=ann.id)
    for account, own in ((ed, {"Ed public", "Ed unlisted", "Ed private"}), (ann, {"Ann public"})):
        sender = await signed_in(app, account)
        found = await read(sender, own="on")
        assert set(found.titles) == own
        assert "<h1>My videos</h1>" in found.text
        assert tabs_of(found.text) == ["All videos", "My videos*"]
        assert f"{len(own)} video" in found.text
        whole = await read(sender)
        assert "<h1>Library</h1>" in whole.text
        assert tabs_of(whole.text) == ["All videos*", "My videos"]
        assert len(whole.titles) == 4


async def test_search_filters_and_order_stay_among_own_videos(
    app: Quart, ann: Account, ed: Account
) -> None:
    for number, title in enumerate(("Sea one", "Sea two", "Hill")):
        await add_video(title, number, owner_id=ed.id, tags="coast", category_ids=[3], **READY)
    await add_video("Sea of Ann", 9, owner_id=ann.id, tags="coast", category_ids=[3], **READY)
    sender = await signed_in(app, ed)
    assert (await read(sender, own="on", q="sea")).titles == ["Sea two", "Sea one"]
    assert (await read(sender, own="on", tag="coast", sort="title")).titles == [
        "Hill",
        "Sea one",
        "Sea two",
    ]
    text = (await read(sender, own="on", q="sea", tag="coast", category="3", status="ready")).text
    form = text[text.index("<form") : text.index("</form>")]
    assert re.search(r'<input type="hidden" name="own" value="on">', form)
    assert 'class="results__clear" href="/?own=on"' in text
    without_tag = re.search(r'class="tag-filter" href="([^"]+)"', text)
    assert without_tag is not None
    assert html.unescape(without_tag[1]) == "/?q=sea&category=3&status=ready&own=on"
    nothing = (await read(sender, own="on", q="xyzzy")).text
    assert "No videos found" in nothing
    assert 'href="/?own=on">Clear search and filters' in nothing
    assert (
        "None of your videos matches these filters."
        in (await read(sender, own="on", status="failed")).text
    )


async def test_pages_of_own_videos_hold_own_videos(app: Quart, ann: Account, ed: Account) -> None:
    for number in range(PAGE_SIZE + 2):
        await add_video(f"Ed {number}", number, owner_id=ed.id)
        await add_video(f"Ann {number}", number, owner_id=ann.id)
    sender = await signed_in(app, ed)
    first = await read(sender, own="on")
    assert first.next is not None
    assert first.next.startswith("/?own=on&after=")
    second = await read(sender, first.next)
    assert second.titles == ["Ed 1", "Ed 0"]
    assert second.first == "/?own=on"
    assert second.previous is not None
    assert second.previous.startswith("/?own=on&before=")
    assert set(await all_titles(sender, own="on")) == {f"Ed {n}" for n in range(PAGE_SIZE + 2)}


async def test_who_has_published_nothing_yet_is_led_to_it(
    app: Quart, ann: Account, ed: Account
) -> None:
    sender = await signed_in(app, ed)
    for _ in range(2):
        text = await page(sender, "/?own=on")
        assert "You have not published anything yet" in text
        assert text.count('<a class="button" href="/upload">') == 1
        assert tabs_of(text) == ["All videos", "My videos*"]
        assert 'role="search"' not in text
        # The same beside what others have published.
        await add_video("Ann's", owner_id=ann.id)


async def test_who_may_not_publish_has_no_videos_of_their_own(app: Quart, anyone: Sender) -> None:
    await add_video("Everyone's")
    # Nobody at all, on a portal without accounts.
    await _sees_the_whole_library(anyone)
    ann = await make_account("ann")
    viewer = await signed_in(app, await make_account("vi", Role.VIEWER))
    for sender in (anyone, viewer):
        await _sees_the_whole_library(sender)
    assert (await read(await signed_in(app, ann), own="yes")).titles == ["Everyone's"]


async def _sees_the_whole_library(sender: Sender) -> None:
    for query in ({}, {"own": "on"}):
        found = await read(sender, "/", **query)
        assert found.titles == ["Everyone's"]
        assert "<h1>Library</h1>" in found.text
        assert tabs_of(found.text) == []
        assert "own=on" not in found.text
        assert 'name="own"' not in found.text


async def test_program_that_asks_for_the_page_sees_no_tabs(app: Quart, ann: Account) -> None:
    await add_video("Everyone's")
    assert tabs_of(await page(program_of(app, await token_of(ann)), "/")) == []
