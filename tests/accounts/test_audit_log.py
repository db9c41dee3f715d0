"""The audit log keeps who did what, bounded under a flood and for as long as was asked for."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from api_client import rows, run_sql
from audit_lines import about, add_lines, lines, told, video_of
from signed_in import ADDRESS, make_account, person

from portal.accounts import people
from portal.accounts.audit import (
    AuditAction,
    AuditQuery,
    act_as,
    note,
    read_all,
    read_page,
)
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import ANYONE, EVERYONES
from portal.accounts.sessions import require_password
from portal.config import Config
from portal.database.states import Role
from portal.errors import SignInRefused

pytestmark = pytest.mark.usefixtures("database")


async def ids(query: AuditQuery | None = None) -> list[int]:
    return [it.id async for it in read_all(query or AuditQuery())]


async def test_what_is_done_outside_of_a_request_is_done_by_a_command() -> None:
    ann = await make_account("ann")
    await people.disable((await make_account("bob", Role.ADMIN)).id, by=EVERYONES)
    first, _, last = await lines()
    command = {"actorKind": "command", "actorId": None, "actorEmail": None, "address": None}
    assert told(first).items() >= {"action": "account.added", **about(ann), **command}.items()
    assert told(last).items() >= {"action": "account.disabled", **command}.items()
    moment = datetime.fromisoformat(first["at"])
    assert abs(datetime.now(UTC) - moment) < timedelta(seconds=30)


async def test_who_acts_is_known_in_a_task_and_not_beyond_it() -> None:
    """Requests that are answered at the same time don't get mixed up."""
    ann, bob = await make_account("ann"), await make_account("bob", Role.ADMIN)
    both = asyncio.Barrier(2)

    async def request(address: str, name: str) -> None:
        act_as(ANYONE, address=address)
        await both.wait()
        act_as(person(ann if name == "ann" else bob), address=address)
        await both.wait()
        await note(AuditAction.VIDEO_EDITED, name)

    await asyncio.gather(request("192.0.2.1", "ann"), request("192.0.2.2", "bob"))
    await note(AuditAction.VIDEO_EDITED, "neither")
    found = {it["objectId"]: (it["actorEmail"], it["address"]) for it in (await lines())[2:]}
    assert found == {
        "ann": (ann.email, "192.0.2.1"),
        "bob": (bob.email, "192.0.2.2"),
        "neither": (None, None),
    }


async def test_failed_tries_of_an_hour_leave_so_many_lines_and_their_number() -> None:
    act_as(ANYONE, address=ADDRESS)
    for number in range(REFUSALS_AN_HOUR + 5):
        await sessions._note_refused(f"{number}@example.org")
    found = await lines()
    assert len(found) == REFUSALS_AN_HOUR
    assert found[-1]["objectName"] == f"{REFUSALS_AN_HOUR - 1}@example.org"
    assert [it["detail"] for it in found] == [*[{}] * (REFUSALS_AN_HOUR - 1), {"unlisted": "5"}]
    # What else happens meanwhile has its lines.
    await note(AuditAction.SIGNED_IN)
    assert len(await lines()) == REFUSALS_AN_HOUR + 1


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("nobody@example.org", "nobody@example.org"),
        (" Nobody@Example.org", "nobody@example.org"),
        ("ann@intranet", "ann@intranet"),
        ("bob@intranet", None),
        ("four calm green boats", None),
        ("P@ssw0rd!Secret", None),
        ("Tr0ub4dor&3", None),
        ("", None),
        ("a@example.org\n", "a@example.org"),
        ("a\x00@example.org", "a@example.org"),
        ("a\x1b@example.org", None),
    ],
)
async def test_what_is_no_address_is_not_kept(
    typed: str, kept: str | None, passwords: Passwords
) -> None:
    """A password that was typed in the wrong place."""
    await people.add("ann@intranet", Role.OWNER, password_hash="h")
    with pytest.raises(SignInRefused):
        await require_password(typed, "wrong", passwords=passwords, address=ADDRESS)
    refused = (await lines())[-1]
    assert (refused["action"], refused["objectName"]) == ("account.sign_in_refused", kept)


async def test_pages_stay_the_same_while_lines_are_added(config: Config) -> None:
    await add_lines(config.database_url, 25)
    expected = (await ids())[::-1]
    seen, before = list[int](), None
    while True:
        page = await read_page(AuditQuery(), limit=10, before=before)
        seen += [it.id for it in page.events]
        await note(AuditAction.SIGNED_IN)
        if page.older is None:
            break
        before = page.older
    assert seen == expected
    assert len(seen) == 25


async def test_lines_are_found_by_action_person_object_and_time(config: Config) -> None:
    await add_lines(config.database_url, 14)
    ann = await make_account("ann")
    act_as(person(ann), address=ADDRESS)
    bob = await make_account("bob", Role.EDITOR)
    added = await ids(AuditQuery(action="account.added"))
    assert len(added) == 2
    assert await ids(AuditQuery(person="ann@example.org")) == added[1:]
    assert await ids(AuditQuery(person="ANN@example.org")) == added[1:]
    assert len(await ids(AuditQuery(person="person3@example.org"))) == 2
    assert await ids(AuditQuery(thing=str(bob.id))) == added[1:]
    assert await ids(AuditQuery(thing=str(bob.id).upper())) == added[1:]
    assert await ids(AuditQuery(thing="Bob@example.org")) == added[1:]
    assert await ids(AuditQuery(thing=video_of(7), action="account.added")) == []
    assert len(await ids(AuditQuery(thing=video_of(7)))) == 1
    await run_sql(
        config.database_url,
        f"UPDATE audit_events SET at = at - interval '2 days' WHERE id < {added[1]}",
    )
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert await ids(AuditQuery(since=yesterday)) == added[1:]


async def test_queries_of_a_large_log_use_its_indexes(config: Config) -> None:
    """Twenty thousand lines: neither a page nor a failed try reads more than it needs."""
    await add_lines(config.database_url, 20_000)
    await run_sql(config.database_url, "ANALYZE audit_events")
    queries = (
        AuditQuery(),
        AuditQuery(action="account.added"),
        AuditQuery(person="person3@example.org"),
        AuditQuery(thing=video_of(7)),
        AuditQuery(person="person3@example.org", thing=video_of(7)),
    )
    texts = [query.lines.order_by("-id").limit(51).sql(params_inline=True) for query in queries]

    for text in texts:
        plan = "\n".join(row for (row,) in await rows(config.database_url, f"EXPLAIN {text}"))
        assert "Seq Scan" not in plan, plan
