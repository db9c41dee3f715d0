"""What the tests of pages share: asking for a page, sending a form, what it says, and faults."""

import html
import re
from collections.abc import Mapping
from typing import Any

from quart import Response
from signed_in import Sender, send_fields, text_of


async def page(sender: Sender, path: str, status: int = 200) -> str:
    """The text of a page."""
    return await shown(await sender.get(path), status)


async def send(sender: Sender, path: str, form: Mapping[str, Any], status: int = 422) -> str:
    """The text of the page that answers a form."""
    return await shown(await send_fields(sender, path, **form), status)


async def shown(response: Response, status: int = 200) -> str:
    """The text of an answer with this status."""
    text = await text_of(response)
    assert response.status_code == status, text
    return text


def words_of(text: str) -> str:
    """What a page or a fragment says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def fault_of(text: str, field: str) -> str:
    """What is said below a field; the field itself says that it is wrong exactly then."""
    found = re.search(rf'id="{field}-error"[^>]*>([^<]*)<', text)
    assert found is not None
    if field != "scopes":
        tag = re.search(rf'<input[^>]*id="{field}"[^>]*>', text)
        assert tag is not None
        assert ('aria-invalid="true"' in tag[0]) is bool(found[1])
    return html.unescape(found[1])


def value_of(text: str, field: str) -> str:
    """What a field holds."""
    tag = re.search(rf'<input[^>]*id="{field}"[^>]*>', text)
    assert tag is not None
    value = re.search(r'value="([^"]*)"', tag[0])
    return html.unescape(value[1]) if value else ""
