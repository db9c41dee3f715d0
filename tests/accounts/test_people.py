"""Accounts are added, changed and removed, and the portal never is without an owner."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from itertools import product
from typing import Any

import pytest
from api_client import until_found
from page_rows import make_row, make_upload_row
from signed_in import (
    WAITING,
    make_account,
    person,
    person_of,
    program_of,
    quick_hash,
    session_of,
    token_of,
)

from portal.accounts import invitations, people
from portal.accounts.permissions import ANYONE, EVERYONES, Principal
from portal.config import Config
from portal.database.account_models import Account, OneTimeLink, Role
from portal.database.connection import transaction
from portal.database.models import Upload, Video
from portal.errors import (
    AccountExists,
    InvalidRequest,
    LastOwner,
    LinkNotValid,
    NotAllowed,
)
from portal.uploads.service import lock
from portal.webhooks import endpoints

pytestmark = pytest.mark.usefixtures("database")

# What takes an account's power away.
ENDINGS: dict[str, Callable[[Account, Principal], Awaitable[object]]] = {
    "removed": lambda account, by: people.remove(account.id, by=by),
    "disabled": lambda account, by: people.disable(account.id, by=by),
    "demoted": lambda account, by: people.change_role(account.id, Role.ADMIN, by=by),
}
# Everything that may be done to an account.
CHANGES: dict[str, Callable[[Account, Principal], Awaitable[Any]]] = {
    **ENDINGS,
    "enabled": lambda account, by: people.enable(account.id, by=by),
    "given a password": lambda account, by: invitations.offer_password(account.id, by=by),
}


async def owners_of(video: Video) -> tuple[object, object]:
    """Whose a video is, and whose its upload."""
    found = await Video.get(id=video.id)
    return found.owner_id, (await Upload.get(key=found.storage_key)).owner_id


async def count_active_owners() -> int:
    return await Account.filter(role=Role.OWNER, is_disabled=False).count()


async def test_first_account_is_an_owners_and_adopts_what_nobody_owns() -> None:
    video = await make_row()
    webhook = await endpoints.make("https://example.org/", ["video.ready"], account_id=None)
    with pytest.raises(InvalidRequest) as refused:
        await make_account("ann", Role.ADMIN)
    assert [fault.pointer for fault in refused.value.errors] == ["/role"]
    assert not await people.has_accounts()
    ann = await make_account("ann")
    assert await owners_of(video) == (ann.id, ann.id)
    assert (await endpoints.get(webhook.id)).account_id == ann.id
    later = await make_row(2)
    await make_account("bob")
    assert await owners_of(later) == (None, None)


async def test_of_two_first_accounts_at_once_one_is_made() -> None:
    made = await asyncio.gather(
        *(people.add_first(f"{name}@example.org", password_hash="h") for name in "abcde"),
        return_exceptions=True,
    )
    assert sum(isinstance(it, Account) for it in made) == 1
    assert sum(isinstance(it, AccountExists) for it in made) == 4


async def test_addresses_are_the_same_in_whatever_letters() -> None:
    ann = await people.add("  Ann.Lindgren@Example.ORG ", Role.OWNER)
    assert ann.email == "ann.lindgren@example.org"
    assert (await people.get("ANN.lindgren@example.org")).id == ann.id
    with pytest.raises(AccountExists):
        await people.add("ann.lindgren@example.org", Role.EDITOR)


@pytest.mark.parametrize(
    "email",
    [
        *("", "ann@", "@example.org", "a@b@c", "a b@example.org", "a@b\r\nBcc: c@d", "\x1b[2J@b"),
        # Of an account the whole address counts, not its beginning.
        "a" * 250 + "@example.org",
    ],
)
async def test_what_is_no_address_gets_no_account(email: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await people.add(email, Role.OWNER)
    assert [fault.pointer for fault in refused.value.errors] == ["/email"]


@pytest.mark.parametrize("ending", ENDINGS)
async def test_last_owner_stays(ending: str) -> None:
    ann = await make_account("ann")
    await make_account("bob", Role.ADMIN)
    disabled = await make_account("carl")
    await people.disable(disabled.id, by=person(ann))
    for by in (person(ann), EVERYONES):
        with pytest.raises(LastOwner):
            await ENDINGS[ending](ann, by)
    assert await count_active_owners() == 1
    await people.enable(disabled.id, by=person(ann))
    await ENDINGS[ending](ann, EVERYONES)
    assert await count_active_owners() == 1


@pytest.mark.parametrize("ending", ENDINGS)
async def test_of_two_owners_who_end_each_other_at_once_one_stays(ending: str) -> None:
    """The worst moment, five times: both are looked at before either is changed."""
    for number in range(5):
        ann, bob = [await make_account(f"{name}{number}") for name in ("ann", "bob")]
        rest = Account.filter(role=Role.OWNER).exclude(id__in=[ann.id, bob.id])
        await rest.update(role=Role.ADMIN)
        ended = await asyncio.gather(
            ENDINGS[ending](ann, person(bob)),
            ENDINGS[ending](bob, person(ann)),
            return_exceptions=True,
        )
        assert [isinstance(it, LastOwner) for it in ended].count(True) == 1
        assert [isinstance(it, Exception) for it in ended].count(True) == 1
        assert await count_active_owners() == 1


async def test_owners_are_changed_by_owners_and_everyone_else_by_admins() -> None:
    await make_account("ann")
    senders = {role: person(await make_account(role, role)) for role in Role}
    for number, (role, change, by) in enumerate(product(Role, CHANGES, [*Role, None])):
        victim, sender = await make_account(f"{number}", role), senders.get(by, ANYONE)
        if by is Role.OWNER or (by is Role.ADMIN and role is not Role.OWNER):
            await CHANGES[change](victim, sender)
            continue
        with pytest.raises(NotAllowed):
            await CHANGES[change](victim, sender)
        found = await Account.get(id=victim.id)
        assert (found.role, found.is_disabled) == (role, False), (change, by)
        assert not await OneTimeLink.exists(account_id=victim.id)


async def test_admin_makes_no_owners() -> None:
    await make_account("ann")
    bob, carl = await make_account("bob", Role.ADMIN), await make_account("carl", Role.EDITOR)
    for account in (bob, carl):
        with pytest.raises(NotAllowed, match="can make someone an owner"):
            await people.change_role(account.id, Role.OWNER, by=person(bob))
    with pytest.raises(NotAllowed, match="can invite owners"):
        await invitations.invite(Role.OWNER, by=person(bob))
    assert await count_active_owners() == 1


async def test_videos_go_to_who_removes_their_account_or_else_to_the_first_owner() -> None:
    bob, ann, carl = [await make_account(name) for name in ("bob", "ann", "carl")]
    await people.disable(bob.id, by=person(carl))
    ada = await make_account("ada", Role.ADMIN)
    ed, eve = [await make_account(name, Role.EDITOR) for name in ("ed", "eve")]
    cases = ((ed, person(ada), ada), (eve, EVERYONES, ann), (carl, person(carl), ann))
    for number, (account, by, heir) in enumerate(cases):
        video = await make_row(number, owner_id=account.id)
        await Upload.filter(key=video.storage_key).update(owner_id=account.id)
        await people.remove(account.id, by=by)
        assert await owners_of(video) == (heir.id, heir.id)


@pytest.mark.parametrize("is_early", [True, False])
async def test_video_published_while_its_account_is_removed_has_an_owner(
    config: Config, is_early: bool
) -> None:
    ann, bob = await make_account("ann"), await make_account("bob", Role.EDITOR)
    upload = await make_upload_row(bob.id)
    video = {"owner_id": bob.id, "storage_key": upload.key}
    # A task that is made inside the transaction would be part of it.
    outside = copy_context()
    async with transaction():
        # As publishing does.
        await lock(upload.id)
        if is_early:
            found = await make_row(**video)
        removal = asyncio.create_task(people.remove(bob.id, by=person(ann)), context=outside)
        await until_found(config.database_url, WAITING)
        if not is_early:
            found = await make_row(**video)
    await removal
    assert await owners_of(found) == (ann.id, ann.id)


@pytest.mark.parametrize("ending", ["removed", "disabled"])
async def test_account_that_ends_leaves_nothing_that_works(ending: str) -> None:
    ann, bob = await make_account("ann"), await make_account("bob", Role.EDITOR)
    session, token = await session_of(bob), await token_of(bob)
    link = await invitations.offer_password(bob.id, by=person(ann))
    await ENDINGS[ending](bob, person(ann))
    if ending == "disabled":
        # One that was begun at the last moment is no use either.
        assert await person_of(await session_of(bob)) == ANYONE
    assert await program_of(token) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)
    if ending == "disabled":
        await people.enable(bob.id, by=person(ann))
        assert await program_of(token) != ANYONE
    assert await person_of(session) == ANYONE


async def test_another_password_ends_sessions_and_links() -> None:
    ann = await make_account("ann")
    session, link = await session_of(ann), await invitations.offer_password(ann.id, by=person(ann))
    await people.set_password(ann, quick_hash("five brown little geese"))
    assert await person_of(session) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)
