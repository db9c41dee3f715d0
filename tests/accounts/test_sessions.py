"""Sessions begin, are seen, and end; each is of one account."""

import asyncio
from uuid import uuid4

import pytest
from signed_in import ADDRESS, make_account, person, person_of, session_of

from portal.accounts import people, rows, sessions
from portal.accounts.permissions import ANYONE
from portal.accounts.secrets import digest
from portal.database.account_models import MAX_DEVICE_LENGTH, Account, Session
from portal.database.connection import execute
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


async def test_secrets_are_never_the_same(ann: Account) -> None:
    secrets = {await session_of(ann) for _ in range(20)}
    assert len(secrets) == 20
    assert all(len(secret) == 43 for secret in secrets)


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


async def test_only_own_sessions_are_ended_one_by_one(ann: Account) -> None:
    bob = await make_account("bob")
    anns, bobs = await session_of(ann), await session_of(bob)
    ann_here, bob_here = await person_of(anns), await person_of(bobs)
    assert ann_here.session_id
    await sessions.end_one(bob_here, ann_here.session_id)
    await sessions.end_one(ann_here, uuid4())
    assert (await person_of(anns)).is_signed_in
    await sessions.end_one(ann_here, ann_here.session_id)
    assert await person_of(anns) == ANYONE


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


async def test_sessions_are_listed_the_last_used_first(ann: Account) -> None:
    bob = await make_account("bob")
    older, newer = await session_of(ann), await session_of(ann, address="203.0.113.9")
    await session_of(bob)
    await execute(AGE + " WHERE digest = %s", "1 hour", digest(older))
    this = await person_of(newer)
    found = await sessions.list_sessions(this)
    assert [it.address for it in found] == ["203.0.113.9", ADDRESS]
    assert [it.is_this for it in found] == [True, False]
    assert all(it.device == "a test" for it in found)


@pytest.mark.parametrize("device", ["", "x" * 10_000, "a\0b", "\r\nSet-Cookie: a=b", "\xff" * 300])
async def test_browser_may_call_itself_anything(ann: Account, device: str) -> None:
    secret = await sessions.begin(ann.id, device=device, address=ADDRESS)
    [found] = await sessions.list_sessions(await person_of(secret))
    assert found.device == device.replace("\0", "")[:MAX_DEVICE_LENGTH]


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
    await asyncio.gather(rows.forget_expired(), rows.forget_expired())
    assert [it.digest for it in await Session.all()] == [digest(kept)]
    assert [row["email"] for row in await rows.fetch_rows("SELECT * FROM sign_in_failures")] == [
        "new"
    ]
    assert [row["digest"] for row in await rows.fetch_rows("SELECT * FROM one_time_links")] == [
        "new"
    ]
