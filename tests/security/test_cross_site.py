"""Forged requests (CSRF): another site's page has a signed-in browser send something.

What tells such a page is in `tests/web/server/test_security.py`; here every address asks it.
"""

import pytest
from guarded_routes import routes
from quart import Quart
from signed_in import Sender, make_upload, make_video, person_of, session_of, token_of

from portal.database.account_models import Account, ApiToken, Role
from portal.database.models import Video
from portal.web.cookies import PLAIN_COOKIE
from portal.web.server.context import SAFE_METHODS

ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}


@pytest.mark.parametrize("headers", [ELSEWHERE, {}], ids=["another site", "a silent browser"])
async def test_signed_in_browser_is_no_tool_of_other_sites(
    app: Quart, olga: Account, edith: Account, headers: dict[str, str]
) -> None:
    """At every one of over thirty unsafe addresses, of things that there are."""
    session = await session_of(olga)
    await token_of(olga)
    video_id, upload = str((await make_video(olga)).id), await make_upload(olga)
    sender = Sender(app, {"Cookie": f"{PLAIN_COOKIE}={session}", **headers})
    unsafe = [it for it in routes(app) if it.method not in SAFE_METHODS]
    assert len(unsafe) > 30
    for route in unsafe:
        thing = upload if route.is_about_upload else video_id
        path = route.path(thing, account_id=str(edith.id))
        answer = await sender.ask(route.method, path, form={"role": "owner"})
        assert answer.status_code == 403, path
        assert "Set-Cookie" not in answer.headers, path
    assert (await person_of(session)).account_id == olga.id
    assert {it.role for it in await Account.all()} == {Role.OWNER, Role.EDITOR}
    assert await Video.all().count() == await ApiToken.all().count() == 1
