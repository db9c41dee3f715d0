"""Single sign-on by a provider that runs as a process of its own, over HTTP both ways."""

import asyncio
import re
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

from portal.accounts import identities, invitations, people
from portal.accounts.identities import LIFE_S
from portal.database.account_models import (
    MAX_NAME_LENGTH,
    Account,
    Identity,
    OneTimeLink,
    Session,
    SignOn,
)
from portal.database.states import Role

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


async def refused(app: Quart, subject: str, status: int = 403) -> str:
    """What the page says to who is not let in; nobody is signed in, and nothing is under way."""
    visitor = Visitor(app)
    answer = await visitor.sign_in(subject)
    text = await text_of(answer)
    assert answer.status_code == status, text
    assert not session_in(answer)
    assert not visitor.sign_on
    assert 'action="/sign-in"' in text, "a way back to the password"
    assert f'href="{LEAVE}?' in text or f'href="{LEAVE}"' in text, "and to another try"
    return text


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


async def test_first_account_is_none_that_the_provider_makes(app: Quart, issuer: str) -> None:
    """Even mapped to owner, and with the last account gone while one is under way."""
    subject = await someone(issuer, groups=["bosses"])
    async with with_provider(app, issuer, oidc_roles=(("bosses", "owner"),)) as app:
        olga = await make_account("olga")
        visitor = Visitor(app)
        back = await approved(await visitor.leave(), subject)
        await Account.filter(id=olga.id).delete()
        answer = await visitor.come_back(back)
    assert answer.status_code == 403
    assert await Account.all().count() == 0


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


async def test_name_is_taken_over_once_where_there_is_none(
    app: Quart, issuer: str, olga: Account
) -> None:
    edith = await make_account("edith", Role.EDITOR)
    subject = await someone(issuer, edith.email, name="Edith\0 Hill")
    assert is_signed_in(await Visitor(app).sign_in(subject))
    await edith.refresh_from_db()
    assert edith.name == "Edith Hill"
    await tell(issuer, subject, email=edith.email, email_verified=True, name="Someone")
    assert is_signed_in(await Visitor(app).sign_in(subject))
    named = await make_account("ed", Role.EDITOR)
    await people.rename(named.id, "Ed")
    assert is_signed_in(
        await Visitor(app).sign_in(await someone(issuer, named.email, name=["Eduard"]))
    )
    async with with_provider(app, issuer, oidc_default_role="viewer") as newcomers:
        new = await someone(issuer, "nina@example.org", name="N" * 200)
        assert is_signed_in(await Visitor(newcomers).sign_in(new))
    found = await Account.all().order_by("email").values_list("name", flat=True)
    assert list(found) == ["Ed", "Edith Hill", "N" * MAX_NAME_LENGTH, ""]


async def test_who_comes_again_is_known_by_the_subject(
    app: Quart, issuer: str, olga: Account
) -> None:
    """With another address at the provider, verified or not, and with another here."""
    edith = await make_account("edith", Role.EDITOR)
    subject = await someone(issuer, edith.email)
    assert is_signed_in(await Visitor(app).sign_in(subject))
    for changed in (
        {"email": "married@example.org", "email_verified": True},
        {"email": olga.email, "email_verified": True},
        {"email": olga.email, "email_verified": False},
        {},
    ):
        await tell(issuer, subject, **changed)
        found = await person_of(session_in(await Visitor(app).sign_in(subject)))
        assert found.account_id == edith.id, changed
    assert await Account.all().count() == 2


async def test_session_that_the_browser_had_ends(app: Quart, issuer: str, olga: Account) -> None:
    """A new identifier, as by password."""
    earlier = await session_of(olga)
    visitor = Visitor(app, earlier)
    answer = await visitor.sign_in(await someone(issuer, olga.email))
    assert session_in(answer) not in ("", earlier)
    assert not (await person_of(earlier)).is_signed_in
    assert (await person_of(session_in(answer))).account_id == olga.id


async def test_without_account_nobody_gets_in_unless_newcomers_may(
    app: Quart, issuer: str, olga: Account
) -> None:
    subject = await someone(issuer, "new@example.org")
    assert "There is no account of new@example.org" in await refused(app, subject)
    assert await Account.all().count() == 1
    async with with_provider(app, issuer, oidc_default_role="viewer") as app:
        answer = await Visitor(app).sign_in(subject)
    found = await person_of(session_in(answer))
    assert (found.email, found.role) == ("new@example.org", Role.VIEWER)
    account = await Account.get(email="new@example.org")
    assert account.password_hash is None


@pytest.mark.parametrize("verified", [False, None, "true", 1, "", [True]])
async def test_address_has_to_be_verified(
    app: Quart, issuer: str, olga: Account, verified: object
) -> None:
    """Else who claims someone's address at the provider would have that one's account."""
    subject = await someone(issuer, olga.email, email_verified=verified)
    async with with_provider(app, issuer, oidc_default_role="editor") as app:
        assert "does not say that it has verified" in await refused(app, subject)
    assert await Identity.all().count() == 0
    assert await Account.all().count() == 1


async def test_disabled_account_stays_out(app: Quart, issuer: str, olga: Account) -> None:
    """Before and after it was bound."""
    edith = await make_account("edith", Role.EDITOR)
    subject = await someone(issuer, edith.email)
    await people.disable(edith.id, by=person(olga))
    assert "Your account is disabled" in await refused(app, subject)
    assert await Identity.all().count() == 0
    await people.enable(edith.id, by=person(olga))
    assert is_signed_in(await Visitor(app).sign_in(subject))
    await people.disable(edith.id, by=person(olga))
    assert "Your account is disabled" in await refused(app, subject)
    assert await Session.all().count() == 0


async def test_account_with_an_address_that_nobody_checked_is_bound_by_its_own_session(
    app: Quart, issuer: str, olga: Account
) -> None:
    """Else who is invited could wait at someone's address until that one comes, with a role."""
    link = await invitations.invite(Role.VIEWER, by=person(olga))
    hasher = app.extensions["portal"].passwords
    mallory = await invitations.accept(
        link, email="boss@example.org", password=PASSWORD, passwords=hasher
    )
    subject = await someone(issuer, mallory.email, groups=["admins"])
    async with with_provider(app, issuer, **MAP) as app:
        assert "nobody has checked that the address belongs" in await refused(app, subject)
        for other in (await session_of(olga), "none"):
            answer = await Visitor(app, other).sign_in(subject)
            assert answer.status_code == 403
        assert await Identity.all().count() == 0
        await mallory.refresh_from_db()
        assert mallory.role is Role.VIEWER

        # Whoever has both the password and the address is the one.
        page = await text_of(await Visitor(app, await session_of(mallory)).get("/account"))
        assert re.search(rf'href="{LEAVE}\?next=/account">Use single sign-on', page)
        answer = await Visitor(app, await session_of(mallory)).sign_in(
            subject, next_path="/account"
        )
        assert answer.headers["Location"] == "/account"
        found = await person_of(session_in(answer))
        assert (found.account_id, found.role) == (mallory.id, Role.ADMIN)
        assert is_signed_in(await Visitor(app).sign_in(subject)), "from now on without"
        page = await text_of(await Visitor(app, await session_of(mallory)).get("/account"))
        assert "Your account is bound to you" in page
        assert "Use single sign-on" not in page


async def test_only_listed_domains_get_in(app: Quart, issuer: str, olga: Account) -> None:
    """Whether they have an account or not, and also who was bound before."""
    edith = await make_account("edith", Role.EDITOR)
    subject = await someone(issuer, edith.email)
    assert is_signed_in(await Visitor(app).sign_in(subject))
    settings: dict[str, Any] = {
        "oidc_domains": ("films.example",),
        "oidc_default_role": "viewer",
    }
    async with with_provider(app, issuer, **settings) as app:
        assert is_signed_in(await Visitor(app).sign_in(await someone(issuer, "a@Films.example")))
        strangers = ("b@evil.example", "b@evil.films.example", "b@films.example.evil.example")
        for email in (*strangers, "a@films.example@evil.example", edith.email):
            await refused(app, await someone(issuer, email))
        assert "may not sign in here this way" in await refused(app, subject)
        unverified = await someone(issuer, "c@films.example", email_verified=False)
        assert "does not say that it has verified" in await refused(app, unverified)


async def test_address_that_changes_hands_brings_no_account_along(
    app: Quart, issuer: str, olga: Account
) -> None:
    """Until someone unbinds it, or removes the account."""
    first, second = await someone(issuer, olga.email), await someone(issuer, olga.email)
    assert is_signed_in(await Visitor(app).sign_in(first))
    assert "belongs to someone else" in await refused(app, second)
    await identities.unbind(olga.id)
    assert is_signed_in(await Visitor(app).sign_in(second))
    assert "belongs to someone else" in await refused(app, first)


MAP: dict[str, Any] = {"oidc_roles": (("admins", "admin"), ("staff", "editor"), ("all", "viewer"))}


async def test_map_counts_with_each_sign_in(app: Quart, issuer: str, olga: Account) -> None:
    """Up, down, and not at all where nothing is mapped and newcomers get nothing."""
    edith = await make_account("edith", Role.EDITOR)
    await OneTimeLink.all().delete()
    subject = await someone(issuer, edith.email, groups=["admins"])

    async def role_with(groups: list[str], **settings: Any) -> Role | None:
        await tell(issuer, subject, email=edith.email, email_verified=True, groups=groups)
        async with with_provider(app, issuer, **settings):
            return (await person_of(session_in(await Visitor(app).sign_in(subject)))).role

    assert await role_with(["admins"]) is Role.EDITOR, "no map, no change"
    assert await role_with(["admins"], oidc_default_role="viewer") is Role.EDITOR
    assert await role_with(["admins"], **MAP) is Role.ADMIN
    assert await role_with(["all"], **MAP) is Role.VIEWER
    assert await role_with(["staff"], **MAP) is Role.EDITOR
    assert await role_with([], **MAP) is Role.EDITOR
    assert await role_with([], **MAP, oidc_default_role="viewer") is Role.VIEWER


async def test_owners_stay_owners_and_are_made_only_where_that_is_said(
    app: Quart, issuer: str, olga: Account
) -> None:
    async with with_provider(app, issuer, **MAP, oidc_default_role="viewer") as app:
        for groups in (["all"], ["admins"], []):
            subject = await someone(issuer, olga.email, groups=groups)
            await identities.unbind(olga.id)
            answer = await Visitor(app).sign_in(subject)
            assert (await person_of(session_in(answer))).role is Role.OWNER, groups
    bosses = {"oidc_roles": (("bosses", "owner"), ("staff", "editor"))}
    async with with_provider(app, issuer, **bosses) as app:
        answer = await Visitor(app).sign_in(await someone(issuer, groups=["staff", "bosses"]))
        assert (await person_of(session_in(answer))).role is Role.OWNER


async def test_two_newcomers_of_one_address_at_once_make_one_account(
    app: Quart, issuer: str, olga: Account
) -> None:
    subject = await someone(issuer, "twice@example.org")
    async with with_provider(app, issuer, oidc_default_role="viewer") as app:
        visitors = [Visitor(app) for _ in range(6)]
        backs = [await approved(await it.leave(), subject) for it in visitors]
        answers = await asyncio.gather(
            *(it.come_back(back) for it, back in zip(visitors, backs, strict=True))
        )
    assert all(map(is_signed_in, answers))
    assert await Account.filter(email="twice@example.org").count() == 1
    assert await Identity.all().count() == 1


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
