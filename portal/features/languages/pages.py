"""Choice of a language at the end of each page."""

from urllib.parse import parse_qsl, urlencode, urlsplit

from quart import Blueprint, redirect, request
from werkzeug.wrappers import Response

from portal.accounts import people
from portal.http.addresses import own_path
from portal.http.auth import Policy, policy, principal
from portal.http.cookies import LANGUAGE_COOKIE, LONGEST_LIFE_S
from portal.http.languages import PARAMETER, offered

blueprint = Blueprint("languages", __name__)


@blueprint.post("/language")
@policy(Policy.SELF)
async def choose() -> Response:
    """Keep a reader's language in a cookie and in the account, and return to the page.

    A language that is not available is ignored.
    """
    response = redirect(_page_address(), 303)
    language = (await request.form).get("language", "")
    if language not in offered():
        return response
    reader = await principal()
    if reader.is_signed_in and reader.account_id:
        await people.set_language(reader.account_id, language)
    # Scripts have no use for it, and other sites' requests need it in links only.
    response.set_cookie(
        LANGUAGE_COOKIE, language, max_age=LONGEST_LIFE_S, httponly=True, samesite="Lax"
    )
    return response


def _page_address() -> str:
    """Return the address of the page, without the parameter that counts more than the choice.

    The header names the page, since some addresses hold secrets, which no form should repeat.
    """
    page = urlsplit(request.headers.get("Referer", ""))
    values = [pair for pair in parse_qsl(page.query) if pair[0] != PARAMETER]
    return own_path(page._replace(scheme="", netloc="", query=urlencode(values)).geturl())
