"""The audit log: actors, limits on refused sign-ins, pages and filters."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from audit_lines import add_lines, lines
from signed_in import ADDRESS, make_account, person

from portal.accounts import sessions
from portal.accounts.audit import AuditQuery, act_as, read_all, read_page
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import ANYONE
from portal.config import Config
from portal.database.account_models import Role
from portal.database.connection import execute
from portal.errors import SignInRefused
from portal.events.log import AuditAction, record_action

pytestmark = pytest.mark.usefixtures("database")


async def ids(query: AuditQuery | None = None) -> list[int]:
    return [event.id async for event in read_all(query or AuditQuery())]


async def test_actor_is_set_for_the_current_task_only() -> None:
    """Concurrent requests keep their own actors."""
    ann = await make_account("ann")
    bob = await make_account("bob", Role.ADMIN)
    both = asyncio.Barrier(2)

    async def request(address: str, name: str) -> None:
        act_as(ANYONE, address=address)
        await both.wait()
        act_as(person(ann if name == "ann" else bob), address=address)
        await both.wait()
        await record_action(AuditAction.TOKEN_MADE, name)

    await asyncio.gather(request("192.0.2.1", "ann"), request("192.0.2.2", "bob"))
    await record_action(AuditAction.TOKEN_MADE, "neither")
    entries = (await lines())[2:]
    assert {entry["objectId"]: (entry["actorEmail"], entry["address"]) for entry in entries} == {
        "ann": (ann.email, "192.0.2.1"),
        "bob": (bob.email, "192.0.2.2"),
        "neither": (None, None),
    }


async def test_number_of_recorded_sign_in_failures_per_hour_is_limited(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "REFUSALS_AN_HOUR", 3)
    for number in range(5):
        with pytest.raises(SignInRefused):
            await sessions.require_password(
                f"{number}@example.org", "wrong", passwords=passwords, address=f"192.0.2.{number}"
            )
    emails = [entry["objectName"] for entry in await lines()]
    assert emails == ["0@example.org", "1@example.org", "2@example.org"]
    await execute("UPDATE events SET at = at - interval '61 minutes'")
    with pytest.raises(SignInRefused):
        await sessions.require_password("", "wrong", passwords=passwords, address=ADDRESS)
    assert len(await lines()) == 4


async def test_pages_stay_the_same_while_lines_are_added(config: Config) -> None:
    await add_lines(config.database_url, 25)
    expected = (await ids())[::-1]
    listed: list[int] = []
    before = None
    while True:
        events, before = await read_page(AuditQuery(), limit=10, before=before)
        listed += [event.id for event in events]
        await record_action(AuditAction.SIGNED_IN)
        if before is None:
            break
    assert listed == expected
    assert len(listed) == 25


async def test_entries_are_filtered_by_action_person_object_and_time(config: Config) -> None:
    await add_lines(config.database_url, 14)
    video_id = (await lines())[7]["objectId"]
    ann = await make_account("ann")
    act_as(person(ann), address=ADDRESS)
    bob = await make_account("bob", Role.EDITOR)
    added = await ids(AuditQuery(action="account.added"))
    assert len(added) == 2
    assert await ids(AuditQuery(person="ANN@example.org")) == added[1:]
    assert len(await ids(AuditQuery(person="person3@example.org"))) == 2
    assert await ids(AuditQuery(thing=str(bob.id).upper())) == added[1:]
    assert await ids(AuditQuery(thing="Bob@example.org")) == added[1:]
    assert await ids(AuditQuery(thing=video_id, action="account.added")) == []
    assert len(await ids(AuditQuery(thing=video_id))) == 1
    await execute("UPDATE events SET at = at - interval '2 days' WHERE id < %s", added[1])
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert await ids(AuditQuery(since=yesterday)) == added[1:]
