"""Cross-site request forgery: another site's page makes a signed-in browser send requests.

`tests/http/test_security.py` tests how such pages are recognized; these tests cover all
routes.
"""

import pytest
from guarded_routes import routes
from quart import Quart
from signed_in import Sender, make_upload, make_video, person_of, session_of, token_of

from portal.database.account_models import Account, ApiToken, Role
from portal.database.models import Video
from portal.http.cookies import PLAIN_COOKIE
from portal.http.server.context import SAFE_METHODS

ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}


@pytest.mark.parametrize("headers", [ELSEWHERE, {}], ids=["another site", "a silent browser"])
async def test_requests_of_other_sites_are_refused_by_all_routes(
    app: Quart, olga: Account, edith: Account, headers: dict[str, str]
) -> None:
    """The requests name existing objects."""
    session = await session_of(olga)
    await token_of(olga)
    video_id = str((await make_video(olga)).id)
    upload = await make_upload(olga)
    sender = Sender(app, {"Cookie": f"{PLAIN_COOKIE}={session}", **headers})
    unsafe = [route for route in routes(app) if route.method not in SAFE_METHODS]
    assert len(unsafe) > 30
    for route in unsafe:
        target = upload if route.is_about_upload else video_id
        path = route.path(target, account_id=str(edith.id))
        answer = await sender.ask(route.method, path, form={"role": "owner"})
        assert answer.status_code == 403, path
        assert "Set-Cookie" not in answer.headers, path
    assert (await person_of(session)).account_id == olga.id
    assert {account.role for account in await Account.all()} == {Role.OWNER, Role.EDITOR}
    assert await Video.all().count() == await ApiToken.all().count() == 1
