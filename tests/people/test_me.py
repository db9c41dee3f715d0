"""Requests can ask which account they act for, and with which role and scopes."""

from datetime import UTC, datetime, timedelta

import pytest
from api_client import Client, answered, problem
from quart import Quart
from signed_in import Sender, make_account, program, signed_in, token_of

from portal.accounts import tokens
from portal.database.account_models import Account, Role, Scope

pytestmark = pytest.mark.shared_app

NOBODY = dict.fromkeys(("accountId", "email", "role", "tokenName", "expiresAt"))


async def test_on_a_portal_without_accounts_everyone_is_an_owner(client: Client) -> None:
    me = await answered(await client.get("/api/me"))
    assert me == {**NOBODY, "role": "owner", "scopes": list(Scope)}


async def test_caller_gets_account_role_and_scopes(app: Quart, olga: Account) -> None:
    anyone = await answered(await Sender(app).get("/api/me"))
    assert anyone == {**NOBODY, "scopes": ["videos:read"]}
    person = await answered(await (await signed_in(app, olga)).get("/api/me"))
    account = {"accountId": str(olga.id), "email": olga.email, "role": "owner"}
    assert person == {**NOBODY, **account, "scopes": list(Scope)}


async def test_token_gets_its_name_scopes_and_expiry(app: Quart, olga: Account) -> None:
    secret = await tokens.create(olga.id, name="nightly", scopes=["videos:write"], days=7)
    response = await program(app, secret).get("/api/me")
    me = await answered(response)
    assert (me["role"], me["tokenName"], me["scopes"]) == ("owner", "nightly", ["videos:write"])
    life = datetime.fromisoformat(me["expiresAt"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < life < timedelta(days=7)
    assert "no-store" in response.headers["Cache-Control"]
    # A scope from a time with another role does nothing, and is not told.
    edith = await make_account("edith", Role.EDITOR)
    demoted = await answered(await program(app, await token_of(edith)).get("/api/me"))
    assert demoted["scopes"] == ["videos:read", "videos:write", "videos:delete"]
    assert demoted["expiresAt"] is None
    await problem(await program(app, "portal_none").get("/api/me"), 401, "invalid_token")
