"""Password links and invitations: single use, expiry after seven days, replacement."""

import asyncio
from typing import Any

import pytest
from signed_in import PASSWORD, make_account, person, person_of, session_of

from portal.accounts import invitations, people
from portal.accounts.invitations import LIFE_DAYS
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import ANYONE, EVERYONES
from portal.database.account_models import Account, OneTimeLink, Role
from portal.database.connection import execute
from portal.errors import AccountExists, InvalidRequest, LinkNotValid

NEW_PASSWORD = "five brown little geese"
AGE = "UPDATE one_time_links SET expires_at = expires_at - %s::interval"


async def accept(secret: str, passwords: Passwords, **changes: str) -> Account:
    form = {"email": "bob@example.org", "password": NEW_PASSWORD, **changes}
    return await invitations.accept(secret, passwords=passwords, **form)


async def refused(work: Any) -> bool:
    try:
        await work
    except LinkNotValid:
        return True
    return False


async def link_of(ann: Account, *, is_invitation: bool) -> str:
    """Create a link as Ann, for herself or for a new editor."""
    if is_invitation:
        return await invitations.invite(Role.EDITOR, by=person(ann))
    return await invitations.offer_password(ann.id, by=person(ann))


@pytest.mark.parametrize("role", [Role.OWNER, Role.VIEWER])
async def test_invitation_adds_one_account_with_its_role(
    ann: Account, passwords: Passwords, role: Role
) -> None:
    secret = await invitations.invite(role, by=person(ann))
    assert await invitations.look_up(secret) == ("", role)
    bob = await accept(secret, passwords)
    assert (bob.email, bob.role) == ("bob@example.org", role)
    assert await passwords.is_right(NEW_PASSWORD, bob.password_hash)
    assert await refused(accept(secret, passwords, email="carl@example.org"))
    assert await Account.all().count() == 2


async def test_link_sets_the_password_of_its_account_only(
    ann: Account, passwords: Passwords
) -> None:
    session = await session_of(ann)
    replaced = await invitations.offer_password(ann.id, by=EVERYONES)
    secret = await invitations.offer_password(ann.id, by=EVERYONES)
    assert await refused(invitations.look_up(replaced))
    assert await invitations.look_up(secret) == (ann.email, Role.OWNER)
    # The session stays valid until the link is used.
    assert (await person_of(session)).account_id == ann.id
    assert (await accept(secret, passwords, email="other@example.org")).id == ann.id
    account = await people.get(ann.email)
    assert await passwords.is_right(NEW_PASSWORD, account.password_hash)
    assert not await passwords.is_right(PASSWORD, account.password_hash)
    assert await person_of(session) == ANYONE
    assert await refused(accept(secret, passwords))


@pytest.mark.parametrize("is_invitation", [True, False])
async def test_one_of_many_concurrent_uses_of_a_link_succeeds(
    ann: Account, passwords: Passwords, is_invitation: bool
) -> None:
    secret = await link_of(ann, is_invitation=is_invitation)
    work = (
        accept(secret, passwords, email=f"{n}@example.org", password=f"{n} brown little geese")
        for n in range(5)
    )
    results = await asyncio.gather(*work, return_exceptions=True)
    [account] = [result for result in results if isinstance(result, Account)]
    assert sum(isinstance(result, LinkNotValid) for result in results) == 4
    assert await Account.all().count() == 1 + is_invitation
    password_hash = (await Account.get(id=account.id)).password_hash
    password = f"{results.index(account)} brown little geese"
    assert await passwords.is_right(password, password_hash)


@pytest.mark.parametrize("is_invitation", [True, False])
async def test_link_expires_after_seven_days(
    ann: Account, passwords: Passwords, is_invitation: bool
) -> None:
    secret = await link_of(ann, is_invitation=is_invitation)
    await execute(AGE, f"{LIFE_DAYS} days -1 minute")
    assert await invitations.look_up(secret)
    await execute(AGE, "1 minute")
    assert await refused(invitations.look_up(secret))
    assert await refused(accept(secret, passwords))
    assert await invitations.list_invitations() == []


async def test_link_stays_valid_after_an_invalid_form(ann: Account, passwords: Passwords) -> None:
    secret = await invitations.invite(Role.EDITOR, by=person(ann))
    with pytest.raises(InvalidRequest):
        await accept(secret, passwords, password="password1234")
    with pytest.raises(InvalidRequest):
        await accept(secret, passwords, email="nobody")
    with pytest.raises(AccountExists):
        await accept(secret, passwords, email="ANN@example.org ")
    assert (await accept(secret, passwords)).role is Role.EDITOR


async def test_revoked_invitation_is_invalid_and_password_links_are_not_revoked(
    ann: Account, passwords: Passwords
) -> None:
    invitation = await invitations.invite(Role.EDITOR, by=person(ann))
    offer = await invitations.offer_password(ann.id, by=person(ann))
    for link in await OneTimeLink.all():
        await invitations.revoke_invitation(link.id)
    assert await refused(accept(invitation, passwords))
    assert (await invitations.look_up(offer))[0] == ann.email


@pytest.mark.parametrize("way", ["demoted", "disabled", "removed"])
async def test_links_end_with_the_rights_of_their_maker(
    ann: Account, passwords: Passwords, way: str
) -> None:
    adam = await make_account("adam", Role.ADMIN)
    bob = await make_account("bob", Role.EDITOR)
    invitation = await invitations.invite(Role.ADMIN, by=person(adam))
    password_link = await invitations.offer_password(bob.id, by=person(adam))
    other = await invitations.invite(Role.EDITOR, by=person(ann))
    await people.change_role(adam.id, Role.ADMIN, by=person(ann))
    assert not await refused(invitations.look_up(invitation))
    if way == "demoted":
        await people.change_role(adam.id, Role.EDITOR, by=person(ann))
    elif way == "disabled":
        await people.disable(adam.id, by=person(ann))
    else:
        await people.remove(adam.id, by=person(ann))
    for secret in (invitation, password_link):
        assert await refused(accept(secret, passwords, email="eve@example.org"))
    assert not await refused(invitations.look_up(other))
