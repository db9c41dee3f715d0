"""Sessions begin, are seen, and end; each is of one account."""

import asyncio

import pytest
from signed_in import make_account, person, person_of, session_of

from portal.accounts import people, sessions
from portal.accounts.permissions import ANYONE
from portal.accounts.tokens import digest
from portal.database.account_models import Account, Session
from portal.database.connection import execute, fetch_rows
from portal.database.states import Role

pytestmark = pytest.mark.usefixtures("database")

AGE = "UPDATE sessions SET seen_at = now() - %s::interval"


@pytest.fixture
async def ann() -> Account:
    return await make_account("ann")


async def test_session_is_known_by_its_secret_alone(ann: Account) -> None:
    secret = await session_of(ann)
    found = await person_of(secret)
    assert (found.account_id, found.role, found.email) == (ann.id, Role.OWNER, ann.email)
    assert found.scopes is None
    assert found.is_signed_in
    kept = await Session.get(id=found.session_id)
    assert secret not in str(dict(kept))
    for other in ("", secret[:-1], secret + "x", secret.swapcase(), kept.digest, str(kept.id)):
        assert await person_of(other) == ANYONE, other


async def test_ended_session_is_nobodys_and_the_others_go_on(ann: Account) -> None:
    first, second = await session_of(ann), await session_of(ann)
    await sessions.end(first)
    await sessions.end("none at all")
    assert await person_of(first) == ANYONE
    assert (await person_of(second)).is_signed_in


async def test_others_end_and_this_one_stays(ann: Account) -> None:
    bob = await make_account("bob")
    own = [await session_of(ann) for _ in range(3)]
    bobs = await session_of(bob)
    this, *others = own
    await sessions.end_others(await person_of(this))
    assert (await person_of(this)).is_signed_in
    assert [await person_of(it) for it in others] == [ANYONE, ANYONE]
    assert (await person_of(bobs)).is_signed_in


async def test_session_unused_for_thirty_days_is_void(ann: Account) -> None:
    secret = await session_of(ann)
    await execute(AGE, "29 days 23 hours")
    assert (await person_of(secret)).is_signed_in
    # That was a use of it.
    await execute("UPDATE sessions SET seen_at = seen_at - interval '29 days'")
    assert (await person_of(secret)).is_signed_in
    await execute(AGE, "30 days 1 second")
    assert await person_of(secret) == ANYONE
    assert await person_of(secret) == ANYONE


async def test_use_is_recorded_once_a_minute(ann: Account) -> None:
    secret = await session_of(ann)
    await person_of(secret)
    await execute(AGE, "20 seconds")
    before = (await Session.get(digest=digest(secret))).seen_at
    await person_of(secret)
    assert (await Session.get(digest=digest(secret))).seen_at == before
    await execute(AGE, "61 seconds")
    await execute("UPDATE accounts SET seen_at = NULL")
    await person_of(secret)
    assert (await Session.get(digest=digest(secret))).seen_at > before
    assert (await Account.get(id=ann.id)).seen_at is not None


async def test_disabled_accounts_sessions_end_for_good(ann: Account) -> None:
    bob = await make_account("bob", Role.EDITOR)
    secret = await session_of(bob)
    await people.disable(bob.id, by=person(ann))
    assert await person_of(secret) == ANYONE
    # One that was begun at the last moment is no use either.
    late = await session_of(bob)
    assert await person_of(late) == ANYONE
    await people.enable(bob.id, by=person(ann))
    assert await person_of(secret) == ANYONE


async def test_what_has_run_out_is_deleted_and_nothing_else(ann: Account) -> None:
    kept, idle = await session_of(ann), await session_of(ann)
    await execute(AGE + " WHERE digest = %s", "31 days", digest(idle))
    await execute(
        "INSERT INTO sign_in_failures (email, address, at) VALUES "
        "('old', 'a', now() - interval '25 hours'), ('new', 'a', now() - interval '23 hours')"
    )
    await execute(
        "INSERT INTO one_time_links (id, digest, role, created_at, expires_at) VALUES "
        "(gen_random_uuid(), 'old', 'editor', now(), now() - interval '1 second'), "
        "(gen_random_uuid(), 'new', 'editor', now(), now() + interval '1 hour')"
    )
    # Two janitors at once do no harm.
    await asyncio.gather(sessions.delete_expired(), sessions.delete_expired())
    assert [it.digest for it in await Session.all()] == [digest(kept)]
    assert [row["email"] for row in await fetch_rows("SELECT * FROM sign_in_failures")] == ["new"]
    assert [row["digest"] for row in await fetch_rows("SELECT * FROM one_time_links")] == ["new"]
