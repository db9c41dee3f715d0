"""What the tests of pages about accounts share: asking for a page, sending a form, faults."""

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from quart import Response
from signed_in import Sender, text_of

FORM_TYPE = "application/x-www-form-urlencoded"


async def page(sender: Sender, path: str, status: int = 200) -> str:
    """The text of a page."""
    return await answered(await sender.get(path), status)


async def send(sender: Sender, path: str, form: Mapping[str, Any], status: int = 422) -> str:
    """The text of the page that answers a form."""
    data, headers = urlencode(form, doseq=True), {"Content-Type": FORM_TYPE}
    return await answered(await sender.post(path, data=data, headers=headers), status)


async def answered(response: Response, status: int) -> str:
    text = await text_of(response)
    assert response.status_code == status, text
    return text


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
