"""Single sign-on by a provider that runs as a process of its own, over HTTP both ways."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from api_client import run_sql
from quart import Quart
from signed_in import (
    PASSWORD,
    Sender,
    make_account,
    person,
    person_of,
    session_in,
    session_of,
    text_of,
)
from single_sign_on import (
    LEAVE,
    Visitor,
    approved,
    is_signed_in,
    provider_process,
    query_of,
    tell,
    with_provider,
)

from portal.accounts import invitations
from portal.accounts.identities import LIFE_S
from portal.database.account_models import (
    Account,
    Identity,
    Role,
    Session,
    SignOn,
)

# No two people of the provider's are alike.
_numbers = count(1)
pytestmark = pytest.mark.shared_app


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[str]:
    async with provider_process() as issuer:
        yield issuer


@pytest.fixture
async def app(app: Quart, issuer: str) -> AsyncIterator[Quart]:
    async with with_provider(app, issuer):
        yield app


async def someone(issuer: str, email: str = "ed@example.org", **claims: Any) -> str:
    """The subject of a new person of the provider's."""
    subject = f"person-{next(_numbers)}"
    await tell(issuer, subject, **{"email": email, "email_verified": True, **claims})
    return subject


async def test_form_offers_it_where_it_is_set_up(app: Quart, olga: Account) -> None:
    page = await text_of(await Sender(app).get("/sign-in?next=/upload"))
    assert "Sign in with single sign-on" in page
    assert f'href="{LEAVE}?next=/upload"' in page
    assert 'name="password"' in page


async def test_without_it_there_is_neither_button_nor_address(renewed_app: Quart) -> None:
    await make_account("olga")
    anyone = Sender(renewed_app)
    assert "single sign-on" not in await text_of(await anyone.get("/sign-in"))
    for path in (LEAVE, f"{LEAVE}/callback?state=x&code=y"):
        assert (await anyone.get(path)).status_code == 404


async def test_portal_without_accounts_has_no_single_sign_on(app: Quart, issuer: str) -> None:
    answer = await Sender(app).get(LEAVE)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in")
    page = await text_of(await Sender(app).get("/sign-in"))
    assert "single sign-on" not in page
    assert await SignOn.all().count() == 0


async def test_who_has_an_account_signs_in_and_goes_on(
    app: Quart, issuer: str, olga: Account
) -> None:
    edith = await make_account("edith", Role.EDITOR)
    subject = await someone(issuer, "Edith@Example.org")
    visitor = Visitor(app)

    answer = await visitor.sign_in(subject, next_path="/upload?a=1")

    assert is_signed_in(answer)
    assert answer.headers["Location"] == "/upload?a=1"
    assert not visitor.sign_on
    found = await person_of(session_in(answer))
    assert (found.account_id, found.role) == (edith.id, Role.EDITOR)
    [identity] = await Identity.all()
    assert (identity.issuer, identity.subject) == (issuer, subject)
    [session] = await Session.all()
    assert session.address == "198.51.100.7"
    await edith.refresh_from_db()
    assert edith.seen_at is not None


async def test_session_that_the_browser_had_ends(app: Quart, issuer: str, olga: Account) -> None:
    """A new identifier, as by password."""
    earlier = await session_of(olga)
    visitor = Visitor(app, earlier)
    answer = await visitor.sign_in(await someone(issuer, olga.email))
    assert session_in(answer) not in ("", earlier)
    assert not (await person_of(earlier)).is_signed_in
    assert (await person_of(session_in(answer))).account_id == olga.id


async def test_who_is_not_let_in_is_told_why_and_led_on(
    app: Quart, issuer: str, olga: Account
) -> None:
    visitor = Visitor(app)
    answer = await visitor.sign_in(await someone(issuer, "new@example.org"))
    text = await text_of(answer)
    assert (answer.status_code, session_in(answer), visitor.sign_on) == (403, "", "")
    assert "There is no account of new@example.org" in text
    assert 'action="/sign-in"' in text, "a way back to the password"
    assert f'href="{LEAVE}' in text, "and to another try"


async def test_account_with_an_address_that_nobody_checked_is_bound_from_its_own_page(
    app: Quart, issuer: str, olga: Account
) -> None:
    link = await invitations.invite(Role.VIEWER, by=person(olga))
    hasher = app.extensions["portal"].passwords
    vi = await invitations.accept(link, email="vi@example.org", password=PASSWORD, passwords=hasher)
    subject = await someone(issuer, vi.email)
    for other in (await session_of(olga), "none"):
        assert (await Visitor(app, other).sign_in(subject)).status_code == 403
    page = await text_of(await Visitor(app, await session_of(vi)).get("/account"))
    assert f'href="{LEAVE}?next=/account">Use single sign-on' in page
    answer = await Visitor(app, await session_of(vi)).sign_in(subject, next_path="/account")
    assert answer.headers["Location"] == "/account"
    assert (await person_of(session_in(answer))).account_id == vi.id
    page = await text_of(await Visitor(app, session_in(answer)).get("/account"))
    assert "Your account is bound to you" in page
    assert "Use single sign-on" not in page


async def test_who_refuses_there_is_told_so(app: Quart, issuer: str, olga: Account) -> None:
    visitor = Visitor(app)
    address = await visitor.leave()
    state = query_of(address)["state"]
    # The provider sends no state with this; one that does is played here.
    assert "error=access_denied" in await approved(address, action="deny")
    answer = await visitor.get(f"{LEAVE}/callback?error=access_denied&state={state}")
    assert answer.status_code == 403
    assert "it or you refused" in await text_of(answer)


async def test_what_is_under_way_ends_after_ten_minutes(
    app: Quart, issuer: str, olga: Account
) -> None:
    subject, visitor = await someone(issuer, olga.email), Visitor(app)
    back = await approved(await visitor.leave(), subject)
    url = app.extensions["portal"].config.database_url
    await run_sql(url, f"UPDATE sign_ons SET expires_at = expires_at - interval '{LIFE_S} s'")
    answer = await visitor.come_back(back)
    assert answer.status_code == 400
    assert "is too old. Start again" in await text_of(answer)
