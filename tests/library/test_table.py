"""My videos: a table of what someone may change, sorted, searched and paged as the library is."""

import html
import re

import pytest
from library_pages import FAILED, LibraryHtml, add_video, read
from page_rows import READY
from page_texts import page
from quart import Quart
from signed_in import Sender, signed_in

from portal.database.account_models import Account
from portal.database.models import Visibility

pytestmark = pytest.mark.shared_app

TABLE = "/videos"


def tabs_of(text: str) -> list[str]:
    """The names of the tabs above the library, the open one with a star."""
    matches = re.findall(
        r'<a class="tab"\s+href="[^"]+"\s*(aria-current="page")?\s*>([^<]+)<', text
    )
    return [f"{name}{'*' if current else ''}" for current, name in matches]


def heads_of(library: LibraryHtml) -> dict[str, tuple[str, str]]:
    """Return the sorting of each column, and the address that sorts by it."""
    head = r'class="videos__(\w+)"\s*(?:aria-sort="(\w+)")?\s*>\s*<a[^>]* href="([^"]+)"'
    matches = re.findall(head, library.text)
    return {name: (sort, html.unescape(url)) for name, sort, url in matches}


async def test_editor_finds_all_own_videos_and_no_others(
    app: Quart, olga: Account, edith: Account
) -> None:
    """Admins can list everyone's videos. test_private_videos checks which ones."""
    await add_video("Edith's", 1, owner_id=edith.id)
    await add_video("Olga's", 2, owner_id=olga.id)
    for account, own in ((edith, "Edith's"), (olga, "Olga's")):
        sender = await signed_in(app, account)
        listing = await read(sender, TABLE)
        assert listing.titles == [own]
        assert "<h1>My videos</h1>" in listing.text
        tabs = [
            "All videos",
            "Series",
            "Shared with me",
            "My videos",
            "Hand-in links",
            "Statistics",
        ]
        for there, path in (("My videos", TABLE), ("All videos", "/")):
            marked = [f"{name}*" if name == there else name for name in tabs]
            assert tabs_of((await read(sender, path)).text) == marked


async def test_row_shows_the_facts_of_a_video(app: Quart, edith: Account) -> None:
    ready = {**READY, "visibility": Visibility.UNLISTED, "owner_id": edith.id}
    video = await add_video("<b>Quoted</b>", 1, **ready)
    await add_video("Broken", 0, owner_id=edith.id, **FAILED)
    text = await page(await signed_in(app, edith), TABLE)
    [first, second] = re.findall(r'<tr id="row-.*?</tr>', text, re.DOTALL)
    assert f'href="/videos/{video.id}/edit">&lt;b&gt;Quoted&lt;/b&gt;</a>' in first
    assert re.search(r"Ready.*Unlisted.*1:02:05.*1\.2 MB.*4 Mar 2026", first, re.DOTALL)
    assert f'src="/videos/{video.id}/poster.jpg' in first
    assert re.search(r"Failed.*It is damaged\.", second, re.DOTALL)


async def test_columns_sort_from_either_end(anyone: Sender) -> None:
    broken = {**FAILED, "visibility": "unlisted", "duration_s": 5}
    await add_video("Caesar", 0, size_bytes=90, **broken)
    await add_video("Anton", 1, size_bytes=80, views=1200)
    ready = {**READY, "visibility": "private", "duration_s": 60.0}
    await add_video("Berta", 2, size_bytes=7, views=3, **ready)
    for column, there in (
        ("title", ["Anton", "Berta", "Caesar"]),
        ("state", ["Caesar", "Anton", "Berta"]),
        ("visibility", ["Berta", "Anton", "Caesar"]),
        ("length", ["Berta", "Caesar", "Anton"]),
        ("size", ["Caesar", "Anton", "Berta"]),
        ("views", ["Anton", "Berta", "Caesar"]),
        ("date", ["Berta", "Anton", "Caesar"]),
    ):
        sort, url = heads_of(await read(anyone, TABLE, sort="oldest"))[column]
        assert sort == ("ascending" if column == "date" else "")
        first = await read(anyone, url)
        sort, url = heads_of(first)[column]
        assert first.titles == there
        second = await read(anyone, url)
        assert {sort, heads_of(second)[column][0]} == {"ascending", "descending"}
        assert second.titles == there[::-1]


async def test_search_and_filters_stay_among_own_videos(
    app: Quart, olga: Account, edith: Account
) -> None:
    for number, (title, owner) in enumerate((("Sea", edith), ("Hill", edith), ("Sea too", olga))):
        await add_video(title, number, owner_id=owner.id, tags="coast", **READY)
    listing = await read(await signed_in(app, edith), TABLE, q="sea", tag="coast")
    assert listing.titles == ["Sea"]
    assert 'class="results__clear" href="/videos"' in listing.text
    [without_tag] = re.findall(r'class="tag-filter" href="([^"]+)"', listing.text)
    assert html.unescape(without_tag) == "/videos?q=sea"
