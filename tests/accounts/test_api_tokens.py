"""API tokens: what they may be used for, how long, and that revoking ends them."""

from typing import Any
from uuid import uuid4

import pytest
from signed_in import make_account, person, program_of, session_of, token_of

from portal.accounts import people, tokens
from portal.accounts.permissions import ANYONE
from portal.accounts.tokens import MAX_DAYS, TOKEN_PREFIX, digest
from portal.database.account_models import Account, ApiToken
from portal.database.connection import execute
from portal.database.states import Role, Scope
from portal.errors import InvalidRequest

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
async def ann() -> Account:
    return await make_account("ann")


async def is_refused(secret: str) -> bool:
    return await program_of(secret) == ANYONE


@pytest.mark.parametrize(
    "scopes", [*((scope,) for scope in Scope), tuple(Scope), (Scope.DELETE, Scope.READ)]
)
async def test_token_is_its_accounts_with_its_scopes(
    ann: Account, scopes: tuple[Scope, ...]
) -> None:
    secret = await token_of(ann, scopes)
    assert secret.startswith(TOKEN_PREFIX)
    found = await program_of(secret)
    assert (found.account_id, found.role, found.email) == (ann.id, Role.OWNER, ann.email)
    assert found.scopes == frozenset(scopes)
    assert not found.is_signed_in
    [kept] = await tokens.list_tokens(ann.id)
    assert secret not in str(dict(kept))


async def test_what_is_not_the_token_is_refused(ann: Account) -> None:
    secret = await token_of(ann)
    bare = secret.removeprefix(TOKEN_PREFIX)
    others = [
        *("", TOKEN_PREFIX, bare, secret[:-1], secret + "x", secret.swapcase(), secret.upper()),
        *(TOKEN_PREFIX + secret, TOKEN_PREFIX.upper() + bare, "Portal_" + bare, f" {secret}"),
        *(digest(secret), TOKEN_PREFIX + digest(secret), "\0", "\ud800", secret + "\0"),
        *(TOKEN_PREFIX + await session_of(ann), await session_of(ann)),
    ]
    for other in others:
        assert await is_refused(other), other
    assert not await is_refused(secret)


async def test_token_lasts_its_days_and_for_ever_without_any(ann: Account) -> None:
    short = await tokens.create(ann.id, name="short", scopes=[Scope.READ], days=1)
    lasting = await tokens.create(ann.id, name="lasting", scopes=[Scope.READ])
    age = "UPDATE api_tokens SET expires_at = expires_at - %s::interval"
    await execute(age, "23 hours 59 minutes")
    assert not await is_refused(short)
    await execute(age, "1 minute")
    assert await is_refused(short)
    await execute("UPDATE api_tokens SET created_at = now() - interval '20 years'")
    assert not await is_refused(lasting)
    assert {it.name for it in await tokens.list_tokens(ann.id)} == {"short", "lasting"}


async def test_revoked_token_is_refused_and_only_ones_own_are_revoked(ann: Account) -> None:
    bob = await make_account("bob")
    secret, other = await token_of(ann), await token_of(ann)
    token = await ApiToken.get(digest=digest(secret))
    assert not await tokens.revoke(token.id, account_id=bob.id)
    assert not await tokens.revoke(uuid4(), account_id=ann.id)
    assert not await is_refused(secret)
    assert await tokens.revoke(token.id, account_id=ann.id)
    assert not await tokens.revoke(token.id, account_id=ann.id)
    assert await is_refused(secret)
    assert not await is_refused(other)


async def test_disabled_accounts_token_is_refused(ann: Account) -> None:
    bob = await make_account("bob", Role.EDITOR)
    secret = await token_of(bob)
    await people.disable(bob.id, by=person(ann))
    assert await is_refused(secret)


async def test_use_is_recorded(ann: Account) -> None:
    secret = await token_of(ann)
    assert (await tokens.list_tokens(ann.id))[0].used_at is None
    await program_of(secret)
    first = (await tokens.list_tokens(ann.id))[0].used_at
    assert first
    await program_of(secret)
    assert (await tokens.list_tokens(ann.id))[0].used_at == first
    await execute("UPDATE api_tokens SET used_at = now() - interval '61 seconds'")
    await program_of(secret)
    last = (await tokens.list_tokens(ann.id))[0].used_at
    assert last
    assert last > first


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": " \u200b\u3164"}, "/name"),
        ({"name": "a\0b"}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["videos:everything"]}, "/scopes"),
        ({"scopes": ["videos:read", "owner"]}, "/scopes"),
        ({"scopes": ["VIDEOS:READ"]}, "/scopes"),
        ({"days": 0}, "/days"),
        ({"days": -1}, "/days"),
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


async def test_scope_admin_is_refused_to_accounts_that_administer_nothing(ann: Account) -> None:
    editor = await make_account("edith", Role.EDITOR)
    for scopes in ([Scope.ADMIN], list(Scope)):
        with pytest.raises(InvalidRequest) as refused:
            await tokens.create(editor.id, name="a test", scopes=scopes)
        assert refused.value.by_field == {
            "scopes": "The scope admin is for admins and owners; this account's role is editor."
        }
    assert await token_of(await make_account("bob", Role.ADMIN), [Scope.ADMIN])
