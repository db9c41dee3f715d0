"""Sessions and API tokens: validity, use, expiry and revocation."""

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


async def test_session_is_valid_with_its_exact_secret_only(ann: Account) -> None:
    secret = await session_of(ann)
    owner = await person_of(secret)
    assert (owner.account_id, owner.role, owner.email) == (ann.id, Role.OWNER, ann.email)
    assert (owner.scopes, owner.is_signed_in) == (None, True)
    for other in ("", secret[:-1], secret + "x", secret.swapcase(), digest(secret)):
        assert await person_of(other) == ANYONE, other


async def test_token_is_valid_with_its_exact_text_only(ann: Account) -> None:
    scopes = (Scope.DELETE, Scope.READ)
    secret = await token_of(ann, scopes)
    assert secret.startswith(TOKEN_PREFIX)
    program = await program_of(secret)
    assert (program.account_id, program.role, program.email) == (ann.id, Role.OWNER, ann.email)
    assert (program.scopes, program.is_signed_in) == (frozenset(scopes), False)
    for other in (
        "",
        TOKEN_PREFIX,
        secret.removeprefix(TOKEN_PREFIX),
        secret[:-1],
        secret + "x",
        secret.swapcase(),
        digest(secret),
        "\0",
        "\ud800",
        TOKEN_PREFIX + await session_of(ann),
    ):
        assert await program_of(other) == ANYONE, other


async def test_session_expires_after_thirty_days_without_use(ann: Account) -> None:
    secret = await session_of(ann)
    await execute(AGE, "29 days 23 hours")
    assert (await person_of(secret)).is_signed_in
    # The previous line used the session.
    await execute("UPDATE sessions SET seen_at = seen_at - interval '29 days'")
    assert (await person_of(secret)).is_signed_in
    await execute(AGE, "30 days 1 second")
    assert await person_of(secret) == ANYONE


async def test_token_expires_after_its_days_or_never(ann: Account) -> None:
    short = await tokens.create(ann.id, name="short", scopes=[Scope.READ], days=1)
    lasting = await tokens.create(ann.id, name="lasting", scopes=[Scope.READ])
    age = "UPDATE api_tokens SET expires_at = expires_at - %s::interval"
    await execute(age, "23 hours 59 minutes")
    assert await program_of(short) != ANYONE
    await execute(age, "1 minute")
    assert await program_of(short) == ANYONE
    assert await program_of(lasting) != ANYONE
    assert {token.name for token in await tokens.list_tokens(ann.id)} == {"short", "lasting"}


async def test_use_is_recorded_once_a_minute(ann: Account) -> None:
    session = await session_of(ann)
    token = await token_of(ann)

    async def used() -> tuple[Any, ...]:
        await person_of(session)
        await program_of(token)
        session_row = await Session.get(digest=digest(session))
        token_row = await ApiToken.get(digest=digest(token))
        return session_row.seen_at, token_row.used_at

    await used()
    await execute(AGE, "20 seconds")
    before = await used()
    assert await used() == before
    await execute(AGE, "61 seconds")
    await execute("UPDATE api_tokens SET used_at = now() - interval '61 seconds'")
    await execute("UPDATE accounts SET seen_at = NULL")
    after = await used()
    assert all(later > earlier for later, earlier in zip(after, before, strict=True))
    assert (await Account.get(id=ann.id)).seen_at is not None


async def test_one_or_all_other_sessions_of_the_account_end(ann: Account) -> None:
    of_bob = await session_of(await make_account("bob"))
    current = await session_of(ann)
    first = await session_of(ann)
    second = await session_of(ann)
    owner = await person_of(current)
    for secret in (first, of_bob):
        session_id = (await person_of(secret)).session_id
        assert session_id is not None
        await sessions.end_one(owner, session_id)
    assert await person_of(first) == ANYONE
    assert await person_of(second) != ANYONE
    await sessions.end_others(owner)
    assert (await person_of(current)).is_signed_in
    assert await person_of(first) == ANYONE
    assert await person_of(second) == ANYONE
    assert (await person_of(of_bob)).is_signed_in


async def test_revoked_token_is_invalid_and_other_accounts_cannot_revoke_it(ann: Account) -> None:
    bob = await make_account("bob")
    secret = await token_of(ann)
    other = await token_of(ann)
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
async def test_invalid_token_is_refused_with_a_pointer(
    ann: Account, changes: dict[str, Any], pointer: str
) -> None:
    form = {"name": "a test", "scopes": ["videos:read"], **changes}
    with pytest.raises(InvalidRequest) as refused:
        await tokens.create(ann.id, **form)
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


async def test_only_expired_rows_are_deleted(ann: Account) -> None:
    active = await session_of(ann)
    idle = await session_of(ann)
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
    assert [session.digest for session in await Session.all()] == [digest(active)]
    assert [row["email"] for row in await fetch_rows("SELECT * FROM sign_in_failures")] == ["new"]
    assert [row["digest"] for row in await fetch_rows("SELECT * FROM one_time_links")] == ["new"]
