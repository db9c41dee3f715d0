"""Hostile texts stay text on every page and fragment.

`tests/browser/test_hostile_pages.py` tests what scripts make of them.
"""

import re
from urllib.parse import quote

import pytest
from guarded_routes import routes
from hostile_texts import ELSEWHERE, MARKUP, TITLES, make_hostile_videos
from page_texts import Reader, page, words_of
from quart import Quart
from signed_in import Sender, text_of

from portal.text import shown

pytestmark = pytest.mark.shared_app()

# Tags, attributes and addresses that no template has.
FOREIGN_TAGS = {"base", "iframe", "math", "style"}
# Types of modules, which have addresses, and of data, which browsers don't run.
SCRIPT_TYPES = ("module", "application/ld+json")
ADDRESSES = ("href", "src", "action", "formaction", "hx-get", "hx-post")
FOREIGN_SCHEMES = ("javascript:", "data:", "vbscript:", "file:")


def is_foreign(tag: str, attributes: dict[str, str | None]) -> bool:
    """Return whether a tag comes from a typed text."""
    foreign = (*FOREIGN_SCHEMES, f"//{ELSEWHERE}")
    addresses = [attributes.get(name) or "" for name in ADDRESSES]
    return (
        tag in FOREIGN_TAGS
        or (tag == "script" and attributes.get("type") not in SCRIPT_TYPES)
        or (tag == "meta" and "http-equiv" in attributes)
        or any(name.startswith("on") for name in attributes)
        or any(address.lower().startswith(foreign) for address in addresses)
    )


def foreign_tags(markup: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the tags of a page that come from typed texts."""
    return [tag for tag in Reader(markup).tags if is_foreign(*tag)]


async def test_typed_text_never_becomes_markup(app: Quart, anyone: Sender) -> None:
    waiting, failed, ready = await make_hostile_videos()
    pages = [route for route in routes(app) if route.method == "GET" and route.rule[:5] != "/api/"]
    paths = {route.path(str(video.id)) for route in pages for video in (ready, failed)}
    paths |= {f"/videos/{video.id}" for video in waiting}
    paths |= {f"/library/progress?id={video.id}" for video in (ready, failed)}
    for text in (quote(title, safe="") for title in TITLES):
        paths |= {f"/?q={text}&tag={text}&status={text}", f"/videos?q={text}", f"/{text}"}
    # Unescaped texts would be found.
    assert all(map(foreign_tags, (MARKUP[0], MARKUP[1], *MARKUP[12:19])))
    html_count = 0
    for path in sorted(paths):
        response = await anyone.get(path)
        assert response.status_code < 500, path
        if response.mimetype == "text/html":
            html_count += 1
            assert foreign_tags(await text_of(response)) == [], path
    assert html_count > 60


async def test_titles_are_shown_without_controls(app: Quart, anyone: Sender) -> None:
    waiting, _, _ = await make_hostile_videos()
    for title, video in zip(TITLES, waiting, strict=True):
        text = await page(anyone, f"/videos/{video.id}")
        words = " ".join(shown(title).split())
        [heading] = re.findall(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)
        assert words_of(heading) == words
        [name] = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
        assert words_of(name) == f"{words} · Portal"
