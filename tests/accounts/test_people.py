"""Accounts are added, changed and removed, and the portal never is without an owner."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import pytest
from api_client import until_found
from page_rows import make_row
from signed_in import (
    WAITING,
    make_account,
    make_upload,
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
from portal.database.account_models import Account, OneTimeLink
from portal.database.connection import execute, transaction
from portal.database.models import Upload, Video
from portal.database.states import Role
from portal.errors import (
    AccountExists,
    AccountNotFound,
    InvalidRequest,
    LastOwner,
    LinkNotValid,
    NotAllowed,
)
from portal.uploads.rows import LOCK

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
    return found.owner_id, (await Upload.get(key=found.upload_id)).owner_id


async def make_own(account: Account) -> Video:
    video = await make_row(owner_id=account.id)
    await Upload.filter(key=video.upload_id).update(owner_id=account.id)
    return video


async def powerful_owners() -> int:
    return await Account.filter(role=Role.OWNER, is_disabled=False).count()


@pytest.mark.parametrize("role", [Role.ADMIN, Role.EDITOR, Role.VIEWER])
async def test_first_account_has_to_be_an_owners(role: Role) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await make_account("ann", role)
    assert [fault.pointer for fault in refused.value.errors] == ["/role"]
    assert not await people.AccountsExist()()


async def test_first_account_adopts_what_nobody_owns() -> None:
    video = await make_row()
    assert await owners_of(video) == (None, None)
    ann = await make_account("ann")
    assert await owners_of(video) == (ann.id, ann.id)
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
    assert await Account.all().count() == 1


async def test_addresses_are_the_same_in_whatever_letters() -> None:
    ann = await people.add("  Ann.Lindgren@Example.ORG ", Role.OWNER)
    assert ann.email == "ann.lindgren@example.org"
    assert (await people.get("ANN.lindgren@example.org")).id == ann.id
    with pytest.raises(AccountExists):
        await people.add("ann.lindgren@example.org", Role.EDITOR)
    with pytest.raises(AccountNotFound):
        await people.get("ann@example.org")


@pytest.mark.parametrize(
    "email",
    [
        *("", " ", "ann", "ann@", "@example.org", "a@b@c", "a b@example.org"),
        *("a@exa mple.org", "a@b\r\nBcc: c@d", "a\x00@", "a\x7f@b", "\x1b[2J@b"),
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
    assert await powerful_owners() == 1
    await people.enable(disabled.id, by=person(ann))
    await ENDINGS[ending](ann, EVERYONES)
    assert await powerful_owners() == 1


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
        assert await powerful_owners() == 1


@pytest.mark.parametrize("change", CHANGES)
async def test_admin_can_not_touch_owners(change: str) -> None:
    ann, bob = await make_account("ann"), await make_account("bob")
    admin = person(await make_account("carl", Role.ADMIN))
    for owner in (ann, bob):
        with pytest.raises(NotAllowed, match="Only an owner"):
            await CHANGES[change](owner, admin)
    assert await powerful_owners() == 2
    assert not await OneTimeLink.exists()


@pytest.mark.parametrize("change", CHANGES)
async def test_admin_manages_everyone_else(change: str) -> None:
    await make_account("ann")
    admin = person(await make_account("bob", Role.ADMIN))
    for role in (Role.ADMIN, Role.EDITOR, Role.VIEWER):
        await CHANGES[change](await make_account(role, role), admin)


async def test_admin_makes_no_owners() -> None:
    await make_account("ann")
    bob, carl = await make_account("bob", Role.ADMIN), await make_account("carl", Role.EDITOR)
    for account in (bob, carl):
        with pytest.raises(NotAllowed, match="makes owners"):
            await people.change_role(account.id, Role.OWNER, by=person(bob))
    with pytest.raises(NotAllowed, match="invites owners"):
        await invitations.invite(Role.OWNER, by=person(bob))
    assert await powerful_owners() == 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER, None])
async def test_who_does_not_administer_changes_nobody(change: str, role: Role | None) -> None:
    await make_account("ann")
    victim = await make_account("bob", Role.VIEWER)
    by = person(await make_account("carl", role)) if role else ANYONE
    with pytest.raises(NotAllowed):
        await CHANGES[change](victim, by)
    assert (await Account.get(id=victim.id)).role is Role.VIEWER
    assert not (await Account.get(id=victim.id)).is_disabled


async def test_removed_accounts_videos_go_to_who_removes_it() -> None:
    await make_account("ann")
    bob, carl = await make_account("bob", Role.ADMIN), await make_account("carl", Role.EDITOR)
    video = await make_own(carl)
    await people.remove(carl.id, by=person(bob))
    assert await owners_of(video) == (bob.id, bob.id)


@pytest.mark.parametrize("by_itself", [True, False])
async def test_videos_go_to_the_first_owner_where_nobody_else_removes(by_itself: bool) -> None:
    bob = await make_account("bob")
    ann = await make_account("ann")
    carl = await make_account("carl")
    await people.disable(bob.id, by=person(carl))
    video = await make_own(carl)
    await people.remove(carl.id, by=person(carl) if by_itself else EVERYONES)
    assert await owners_of(video) == (ann.id, ann.id)


@pytest.mark.parametrize("is_early", [True, False])
async def test_video_published_while_its_account_is_removed_has_an_owner(
    config: Config, is_early: bool
) -> None:
    ann, bob = await make_account("ann"), await make_account("bob", Role.EDITOR)
    video, upload = {"owner_id": bob.id}, f"videos/{await make_upload(bob)}.mp4"
    # A task that is made inside the transaction would be part of it.
    outside = copy_context()
    async with transaction():
        # As publishing does.
        await execute(LOCK, upload)
        if is_early:
            found = await make_row(**video, upload_id=upload)
        removal = asyncio.create_task(people.remove(bob.id, by=person(ann)), context=outside)
        await until_found(config.database_url, WAITING)
        if not is_early:
            found = await make_row(**video, upload_id=upload)
    await removal
    assert await owners_of(found) == (ann.id, ann.id)


async def test_removed_account_leaves_nothing_that_works() -> None:
    ann, bob = await make_account("ann"), await make_account("bob", Role.EDITOR)
    session, token = await session_of(bob), await token_of(bob)
    link = await invitations.offer_password(bob.id, by=person(ann))
    await people.remove(bob.id, by=person(ann))
    assert await person_of(session) == ANYONE
    assert await program_of(token) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)


async def test_another_role_counts_at_once_for_sessions_and_tokens() -> None:
    ann, bob = await make_account("ann"), await make_account("bob", Role.EDITOR)
    session, token = await session_of(bob), await token_of(bob)
    for role in (Role.VIEWER, Role.ADMIN, Role.OWNER):
        await people.change_role(bob.id, role, by=person(ann))
        assert (await person_of(session)).role is role
        assert (await program_of(token)).role is role


async def test_another_password_ends_sessions_and_links() -> None:
    ann = await make_account("ann")
    session, link = await session_of(ann), await invitations.offer_password(ann.id, by=person(ann))
    await people.set_password(ann, quick_hash("five brown little geese"))
    assert await person_of(session) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)
