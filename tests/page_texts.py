"""Requests for pages and forms, and the texts and faults on them."""

import html
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from quart import Response
from signed_in import Sender, send_fields, text_of


async def page(sender: Sender, path: str, status: int = 200) -> str:
    """Request a page, check its status, and return its text."""
    return await shown(await sender.get(path), status)


async def send(sender: Sender, path: str, form: Mapping[str, Any], status: int = 422) -> str:
    """Send a form, check the status, and return the text of the page."""
    return await shown(await send_fields(sender, path, **form), status)


async def shown(response: Response, status: int = 200) -> str:
    """Check the status of a response, and return its text."""
    text = await text_of(response)
    assert response.status_code == status, text
    return text


def words_of(text: str) -> str:
    """Return the words of a page or fragment, without tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def fault_of(text: str, field: str) -> str:
    """Return the error below a field; check that the field is marked invalid exactly then."""
    error = re.search(rf'id="{field}-error"[^>]*>([^<]*)<', text)
    assert error is not None
    if field != "scopes":
        tag = re.search(rf'<input[^>]*id="{field}"[^>]*>', text)
        assert tag is not None
        assert ('aria-invalid="true"' in tag[0]) is bool(error[1])
    return html.unescape(error[1])


def value_of(text: str, field: str) -> str:
    """Return the value of a field."""
    tag = re.search(rf'<input[^>]*id="{field}"[^>]*>', text)
    assert tag is not None
    value = re.search(r'value="([^"]*)"', tag[0])
    return html.unescape(value[1]) if value else ""


class Reader(HTMLParser):
    """Parser that returns the tags and the text of markup, as a browser sees them."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
