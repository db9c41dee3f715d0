"""Sessions and API tokens: what they allow, how long, and what ends them."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from signed_in import make_account, person_of, program_of, session_of, token_of

from portal.accounts import sessions, tokens
from portal.accounts.permissions import ANYONE
from portal.accounts.tokens import MAX_DAYS, TOKEN_PREFIX, digest
from portal.database.account_models import Account, ApiToken, Role, Scope, Session
from portal.database.connection import execute, fetch_rows
from portal.errors import InvalidRequest

AGE = "UPDATE sessions SET seen_at = now() - %s::interval"


async def test_session_is_known_by_its_secret_alone(ann: Account) -> None:
    secret = await session_of(ann)
    found = await person_of(secret)
    assert (found.account_id, found.role, found.email) == (ann.id, Role.OWNER, ann.email)
    assert (found.scopes, found.is_signed_in) == (None, True)
    for other in ("", secret[:-1], secret + "x", secret.swapcase(), digest(secret)):
        assert await person_of(other) == ANYONE, other


async def test_token_is_known_by_its_text_alone(ann: Account) -> None:
    scopes = (Scope.DELETE, Scope.READ)
    secret = await token_of(ann, scopes)
    assert secret.startswith(TOKEN_PREFIX)
    found = await program_of(secret)
    assert (found.account_id, found.role, found.email) == (ann.id, Role.OWNER, ann.email)
    assert (found.scopes, found.is_signed_in) == (frozenset(scopes), False)
    for other in (
        *("", TOKEN_PREFIX, secret.removeprefix(TOKEN_PREFIX), secret[:-1], secret + "x"),
        *(secret.swapcase(), digest(secret), "\0", "\ud800", TOKEN_PREFIX + await session_of(ann)),
    ):
        assert await program_of(other) == ANYONE, other


async def test_session_unused_for_thirty_days_is_void(ann: Account) -> None:
    secret = await session_of(ann)
    await execute(AGE, "29 days 23 hours")
    assert (await person_of(secret)).is_signed_in
    # That was a use of it.
    await execute("UPDATE sessions SET seen_at = seen_at - interval '29 days'")
    assert (await person_of(secret)).is_signed_in
    await execute(AGE, "30 days 1 second")
    assert await person_of(secret) == ANYONE


async def test_token_lasts_its_days_and_for_ever_without_any(ann: Account) -> None:
    short = await tokens.create(ann.id, name="short", scopes=[Scope.READ], days=1)
    lasting = await tokens.create(ann.id, name="lasting", scopes=[Scope.READ])
    age = "UPDATE api_tokens SET expires_at = expires_at - %s::interval"
    await execute(age, "23 hours 59 minutes")
    assert await program_of(short) != ANYONE
    await execute(age, "1 minute")
    assert await program_of(short) == ANYONE
    assert await program_of(lasting) != ANYONE
    assert {it.name for it in await tokens.list_tokens(ann.id)} == {"short", "lasting"}


async def test_use_is_recorded_once_a_minute(ann: Account) -> None:
    session, token = await session_of(ann), await token_of(ann)

    async def used() -> tuple[Any, ...]:
        await person_of(session)
        await program_of(token)
        kept = await Session.get(digest=digest(session)), await ApiToken.get(digest=digest(token))
        return kept[0].seen_at, kept[1].used_at

    await used()
    await execute(AGE, "20 seconds")
    before = await used()
    assert await used() == before
    await execute(AGE, "61 seconds")
    await execute("UPDATE api_tokens SET used_at = now() - interval '61 seconds'")
    await execute("UPDATE accounts SET seen_at = NULL")
    after = await used()
    assert all(it > earlier for it, earlier in zip(after, before, strict=True))
    assert (await Account.get(id=ann.id)).seen_at is not None


async def test_others_end_and_this_one_stays(ann: Account) -> None:
    """One of them, and then all."""
    bobs = await session_of(await make_account("bob"))
    this, *others = [await session_of(ann) for _ in range(3)]
    owner = await person_of(this)
    for secret in (others[0], bobs):
        ended = (await person_of(secret)).session_id
        assert ended is not None
        await sessions.end_one(owner, ended)
    assert [await person_of(it) == ANYONE for it in others] == [True, False]
    await sessions.end_others(owner)
    assert (await person_of(this)).is_signed_in
    assert [await person_of(it) for it in others] == [ANYONE, ANYONE]
    assert (await person_of(bobs)).is_signed_in


async def test_revoked_token_is_refused_and_only_ones_own_are_revoked(ann: Account) -> None:
    bob = await make_account("bob")
    secret, other = await token_of(ann), await token_of(ann)
    token = await ApiToken.get(digest=digest(secret))
    assert not await tokens.revoke(token.id, account_id=bob.id)
    assert not await tokens.revoke(uuid4(), account_id=ann.id)
    assert await program_of(secret) != ANYONE
    assert await tokens.revoke(token.id, account_id=ann.id)
    assert not await tokens.revoke(token.id, account_id=ann.id)
    assert await program_of(secret) == ANYONE
    assert await program_of(other) != ANYONE


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": " \u200b\u3164"}, "/name"),
        ({"name": "a\0b"}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["videos:read", "owner"]}, "/scopes"),
        ({"days": 0}, "/days"),
        ({"days": MAX_DAYS + 1}, "/days"),
    ],
)
async def test_token_that_can_not_be_is_told_why(
    ann: Account, changes: dict[str, Any], pointer: str
) -> None:
    given = {"name": "a test", "scopes": ["videos:read"], **changes}
    with pytest.raises(InvalidRequest) as refused:
        await tokens.create(ann.id, **given)
    assert [fault.pointer for fault in refused.value.errors] == [pointer]
    assert await tokens.list_tokens(ann.id) == []


@pytest.mark.parametrize(
    ("role", "usable"),
    [
        (Role.VIEWER, ["videos:read"]),
        (Role.EDITOR, ["videos:read", "videos:write", "videos:delete"]),
        (Role.ADMIN, list(Scope)),
    ],
)
async def test_scopes_that_the_role_can_not_use_are_refused(
    ann: Account, role: Role, usable: list[str]
) -> None:
    bob = await make_account("bob", role)
    assert await tokens.create(bob.id, name="a test", scopes=usable)
    for scope in set(Scope) - set(usable):
        with pytest.raises(InvalidRequest) as refused:
            await tokens.create(bob.id, name="a test", scopes=["videos:read", scope])
        message = refused.value.by_field["scopes"]
        assert message.startswith(f"This account's role is {role}, which can't use {scope}.")
        assert f"Choose from {', '.join(usable)}" in message


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
