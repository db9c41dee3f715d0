"""Adding, changing and removing accounts; the portal always keeps an owner."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import pytest
from api_client import until_found
from page_rows import change_video, make_row, make_upload_row
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
from portal.database.connection import NOW, transaction
from portal.database.event_models import Event
from portal.database.models import Upload, Video
from portal.errors import AccountExists, InvalidRequest, LastOwner, LinkNotValid, NotAllowed
from portal.events.log import EventType
from portal.features.webhooks import endpoints
from portal.uploads.service import lock

pytestmark = pytest.mark.usefixtures("database")

# Changes after which an owner's account is no longer an active owner.
ENDINGS: dict[str, Callable[[Account, Principal], Awaitable[object]]] = {
    "removed": lambda account, by: people.remove(account.id, by=by),
    "disabled": lambda account, by: people.disable(account.id, by=by),
    "demoted": lambda account, by: people.change_role(account.id, Role.ADMIN, by=by),
}
# All changes of an account.
CHANGES: dict[str, Callable[[Account, Principal], Awaitable[Any]]] = {
    **ENDINGS,
    "enabled": lambda account, by: people.enable(account.id, by=by),
    "given a password": lambda account, by: invitations.offer_password(account.id, by=by),
}


async def owners_of(video: Video) -> tuple[object, object]:
    """Return the owners of a video and of its upload."""
    current = await Video.get(id=video.id)
    return current.owner_id, (await Upload.get(key=current.storage_key)).owner_id


async def count_active_owners() -> int:
    return await Account.filter(role=Role.OWNER, is_disabled=False).count()


async def test_first_account_is_an_owner_and_gets_all_objects_without_owner() -> None:
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


async def test_concurrent_requests_add_one_first_account() -> None:
    results = await asyncio.gather(
        *(people.add_first(f"{name}@example.org", password_hash="h") for name in "abcde"),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Account) for result in results) == 1
    assert sum(isinstance(result, AccountExists) for result in results) == 4


async def test_email_addresses_ignore_case_and_surrounding_spaces() -> None:
    ann = await people.add("  Ann.Lindgren@Example.ORG ", Role.OWNER)
    assert ann.email == "ann.lindgren@example.org"
    assert (await people.get("ANN.lindgren@example.org")).id == ann.id
    with pytest.raises(AccountExists):
        await people.add("ann.lindgren@example.org", Role.EDITOR)


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ann@",
        "@example.org",
        "a@b@c",
        "a b@example.org",
        "a@b\r\nBcc: c@d",
        "\x1b[2J@b",
        # An address that is too long is not shortened.
        "a" * 250 + "@example.org",
    ],
)
async def test_invalid_email_address_is_refused(email: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await people.add(email, Role.OWNER)
    assert [fault.pointer for fault in refused.value.errors] == ["/email"]


@pytest.mark.parametrize("ending", ENDINGS)
async def test_last_owner_is_kept(ending: str) -> None:
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
async def test_one_of_two_owners_who_remove_each_other_concurrently_stays(ending: str) -> None:
    """Repeated five times, because without the lock the outcome would depend on timing."""
    for number in range(5):
        ann, bob = [await make_account(f"{name}{number}") for name in ("ann", "bob")]
        older_owners = Account.filter(role=Role.OWNER).exclude(id__in=[ann.id, bob.id])
        await older_owners.update(role=Role.ADMIN)
        results = await asyncio.gather(
            ENDINGS[ending](ann, person(bob)),
            ENDINGS[ending](bob, person(ann)),
            return_exceptions=True,
        )
        assert [isinstance(result, LastOwner) for result in results].count(True) == 1
        assert [isinstance(result, Exception) for result in results].count(True) == 1
        assert await count_active_owners() == 1


@pytest.mark.parametrize("change", CHANGES)
async def test_only_those_who_may_manage_an_account_change_it(change: str) -> None:
    owner = person(await make_account("ann"))
    admin = person(await make_account("ada", Role.ADMIN))
    bob = await make_account("bob")
    ed = await make_account("ed", Role.EDITOR)
    for account, sender in ((bob, admin), (ed, person(ed)), (ed, ANYONE)):
        with pytest.raises(NotAllowed):
            await CHANGES[change](account, sender)
        unchanged = await Account.get(id=account.id)
        assert (unchanged.role, unchanged.is_disabled) == (account.role, False)
        assert not await OneTimeLink.exists(account_id=account.id)
    await CHANGES[change](bob, owner)
    await CHANGES[change](ed, admin)


async def test_admins_cannot_create_owners() -> None:
    await make_account("ann")
    bob = await make_account("bob", Role.ADMIN)
    carl = await make_account("carl", Role.EDITOR)
    for account in (bob, carl):
        with pytest.raises(NotAllowed, match="can make someone an owner"):
            await people.change_role(account.id, Role.OWNER, by=person(bob))
    with pytest.raises(NotAllowed, match="can invite owners"):
        await invitations.invite(Role.OWNER, by=person(bob))
    assert await count_active_owners() == 1


async def test_videos_of_a_removed_account_go_to_its_remover_or_the_first_owner() -> None:
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


async def test_each_video_of_a_removed_account_has_an_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(people, "BEQUEST", 2)
    ann = await make_account("ann")
    ed = await make_account("ed", Role.EDITOR)
    videos = [await make_row(number, owner_id=ed.id) for number in range(4)]
    await change_video(videos[0].id, deleted_at=NOW)
    await people.remove(ed.id, by=EVERYONES)
    events = await Event.filter(type=EventType.UPDATED)
    assert {event.video_id for event in events} == {video.id for video in videos[1:]}
    assert {(event.data or {})["owner_id"] for event in events} == {str(ann.id)}
    assert await Video.filter(owner_id=ann.id).count() == len(videos)


@pytest.mark.parametrize("is_early", [True, False])
async def test_video_published_while_its_account_is_removed_has_an_owner(
    config: Config, is_early: bool
) -> None:
    ann = await make_account("ann")
    bob = await make_account("bob", Role.EDITOR)
    upload = await make_upload_row(bob.id)
    # A task that is created inside the transaction would be part of it.
    outside = copy_context()
    async with transaction():
        # Publishing locks the upload first, too.
        await lock(upload.id)
        if is_early:
            video = await make_row(owner_id=bob.id, storage_key=upload.key)
        removal = asyncio.create_task(people.remove(bob.id, by=person(ann)), context=outside)
        await until_found(config.database_url, WAITING)
        if not is_early:
            video = await make_row(owner_id=bob.id, storage_key=upload.key)
    await removal
    assert await owners_of(video) == (ann.id, ann.id)


@pytest.mark.parametrize("ending", ["removed", "disabled"])
async def test_credentials_of_a_removed_or_disabled_account_are_invalid(ending: str) -> None:
    ann = await make_account("ann")
    bob = await make_account("bob", Role.EDITOR)
    session = await session_of(bob)
    token = await token_of(bob)
    link = await invitations.offer_password(bob.id, by=person(ann))
    await ENDINGS[ending](bob, person(ann))
    if ending == "disabled":
        # A session that begins at the same time is invalid as well.
        assert await person_of(await session_of(bob)) == ANYONE
    assert await program_of(token) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)
    if ending == "disabled":
        await people.enable(bob.id, by=person(ann))
        assert await program_of(token) != ANYONE
    assert await person_of(session) == ANYONE


async def test_new_password_ends_sessions_and_links() -> None:
    ann = await make_account("ann")
    session = await session_of(ann)
    link = await invitations.offer_password(ann.id, by=person(ann))
    await people.set_password(ann, quick_hash("five brown little geese"))
    assert await person_of(session) == ANYONE
    with pytest.raises(LinkNotValid):
        await invitations.look_up(link)
