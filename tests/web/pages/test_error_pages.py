"""Every error that people meet is one page: what it is, what to do, and a way on."""

import pytest
from quart import Quart

from portal import errors
from portal.errors import PortalError
from portal.web.errors import error_page

pytestmark = pytest.mark.shared_app


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.NotSignedIn("Sign in."), "After signing in"),
        (errors.NotFound(), "Search for the video by its name"),
        (PortalError(), "pass the reference below on"),
        (errors.Unavailable(), "It was not your doing. Wait"),
    ],
    ids=lambda it: str(it.status) if isinstance(it, PortalError) else "",
)
async def test_page_of_an_error_says_what_to_do(app: Quart, error: PortalError, words: str) -> None:
    async with app.test_request_context("/"):
        page = await error_page(error, viewer=None)
    assert words in page
    assert f"Error {error.status}" in page
    assert error.detail in page
    # One picture, and one thing to press; those that look for something may search as well.
    [_, message] = page.split('aria-labelledby="problem-title"')
    message, _ = message.split("</section>")
    assert message.count('class="empty__art"') == 1
    assert message.count('<a class="button"') == 1
    assert ('role="search"' in message) == (error.status == 404)
