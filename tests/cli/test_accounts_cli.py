"""`portal accounts` and `portal tokens`, as an operator types them, and publishing with a token."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from command_line import Ended, portal
from page_rows import make_row
from quart import Quart
from running_portal import LivePortal
from signed_in import PASSWORD, Sender, make_account, program, token_of, try_to_sign_in

from portal.accounts import people
from portal.config import Config
from portal.database.account_models import Account, ApiToken, Identity, Role, Scope
from portal.database.connection import open_database
from portal.database.models import Video

PRESIGN = {"json": {"fileName": "a.mp4", "contentType": "video/mp4"}}
LINK = re.compile(r"http://\S+(/welcome/[\w-]{43})\n")
TO_PUBLISH = ("--category", "1", "--no-wait")


async def document(environ: dict[str, str], *arguments: str) -> Any:
    ended = await portal(environ, *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def told(ended: Ended) -> str:
    """The one line of a command that could not be carried out."""
    assert ended.code == 1
    assert ended.out == ""
    [line] = ended.err.splitlines()
    return line


def welcome(ended: Ended) -> str:
    """The path of the link that a command printed, and nothing else but words beside it."""
    assert ended.code == 0, ended.err
    assert "It works once, for 7 days" in ended.err
    found = LINK.fullmatch(ended.out)
    assert found is not None, ended.out
    return found[1]


async def choose(app: Quart, path: str, password: str = PASSWORD) -> int:
    """Use a link up; returns the status."""
    sender = Sender(app, {"Sec-Fetch-Site": "same-origin"})
    return (await sender.post(path, form={"password": password})).status_code


async def test_first_account_closes_the_portal(app: Quart, environ: dict[str, str]) -> None:
    video = await make_row()
    refused = await portal(environ, "accounts", "add", "ann@example.org", "--role", "editor")
    assert told(refused) == "Error: The first account has to be an owner's."
    assert (await Sender(app).post("/api/videos/presign", **PRESIGN)).status_code == 200
    ended = await portal(environ, "accounts", "list")
    assert "no accounts" in ended.out

    named = ("--name", " Ann  Hill")
    added = await portal(environ, "accounts", "add", " Ann@Example.org", "--role", "owner", *named)

    assert "ann@example.org has an account with the role owner." in added.err
    assert "from now on changes need an account, and all videos" in added.err
    assert (await Sender(app).post("/api/videos/presign", **PRESIGN)).status_code == 401
    account = await people.get("ann@example.org")
    assert account.name == "Ann Hill"
    assert (await Video.get(id=video.id)).owner_id == account.id
    assert await choose(app, welcome(added)) == 303
    assert await choose(app, welcome(added)) == 404
    assert (await try_to_sign_in(Sender(app), "ann@example.org")).status_code == 303


async def test_password_is_read_from_standard_input(app: Quart, environ: dict[str, str]) -> None:
    add = ("accounts", "add", "ann@example.org", "--role", "owner", "--password-stdin")
    weak = await portal(environ, *add, typed="ann@example.org\n")
    assert "easily guessed" in told(weak)
    assert "12 characters or more" in told(await portal(environ, *add, typed="\n"))
    assert not await Account.exists()

    added = await portal(environ, *add, typed=f"{PASSWORD}\n")

    assert added.code == 0
    assert added.out == ""
    assert "link" not in added.err
    assert PASSWORD not in added.err
    assert (await try_to_sign_in(Sender(app), "ann@example.org")).status_code == 303
    again = await portal(environ, *add, typed=PASSWORD)
    assert told(again) == "Error: There is an account with this e-mail address already."


async def test_accounts_are_listed_without_secrets(app: Quart, environ: dict[str, str]) -> None:
    await make_account("ann")
    await make_account("bob", Role.EDITOR, has_password=False)
    listed = await portal(environ, "accounts", "list")
    heads, ann, bob = (re.split(r"  +", line) for line in listed.out.splitlines())
    assert heads == ["EMAIL", "ROLE", "STATE", "SEEN", "ADDED"]
    assert ann[:4] == ["ann@example.org", "owner", "active", "-"]
    assert bob[:4] == ["bob@example.org", "editor", "no password yet", "-"]

    found = await document(environ, "accounts", "list")

    assert [account["email"] for account in found["accounts"]] == [ann[0], bob[0]]
    assert set(found["accounts"][0]) == {
        *("id", "email", "name", "role", "is_disabled", "has_password", "created_at", "seen_at")
    }


async def test_roles_and_states_are_changed(app: Quart, environ: dict[str, str]) -> None:
    await make_account("ann")
    bob = await make_account("bob", Role.VIEWER)
    token = await token_of(bob, [Scope.WRITE])

    changed = await portal(environ, "accounts", "role", "BOB@example.org", "editor")
    assert (changed.code, changed.out) == (0, "bob@example.org has the role editor now.\n")
    assert (await program(app, token).post("/api/videos/presign", **PRESIGN)).status_code == 200
    disabled = await portal(environ, "accounts", "disable", "bob@example.org")
    assert "is disabled" in disabled.out
    assert (await program(app, token).post("/api/videos/presign", **PRESIGN)).status_code == 401
    listed = await portal(environ, "accounts", "list")
    assert "disabled" in listed.out.splitlines()[-1]
    enabled = await portal(environ, "accounts", "enable", "bob@example.org")
    assert "is enabled" in enabled.out
    assert (await program(app, token).post("/api/videos/presign", **PRESIGN)).status_code == 200


async def test_reset_leaves_the_password_until_the_link_is_used(
    app: Quart, environ: dict[str, str]
) -> None:
    await make_account("ann")
    path = welcome(await portal(environ, "accounts", "reset", "ann@example.org"))
    assert (await try_to_sign_in(Sender(app), "ann@example.org")).status_code == 303
    assert await choose(app, path, "another calm green boat") == 303
    assert (await try_to_sign_in(Sender(app), "ann@example.org")).status_code == 422


async def test_unbind_lets_another_of_the_provider_have_the_account(
    app: Quart, environ: dict[str, str]
) -> None:
    ann = await make_account("ann")
    who = {"issuer": "https://id.example", "subject": "ann"}
    await Identity.create(id=uuid4(), account_id=ann.id, **who)
    ended = await portal(environ, "accounts", "unbind", ann.email)
    assert (ended.code, ended.err) == (0, "")
    assert ann.email in ended.out
    assert await Identity.all().count() == 0
    assert "There is no such account" in told(
        await portal(environ, "accounts", "unbind", "x@example.org")
    )


async def test_remove_asks_and_says_who_gets_the_videos(
    app: Quart, environ: dict[str, str]
) -> None:
    ann = await make_account("ann")
    await make_account("cid")
    bob = await make_account("bob", Role.EDITOR)
    videos = [await make_row(number, owner_id=bob.id) for number in (1, 2)]

    kept = await portal(environ, "accounts", "remove", "bob@example.org", typed="n\n")
    assert kept.code == 1
    assert "Its videos (2) go to ann@example.org. Remove bob@example.org?" in kept.out
    assert "Aborted" in kept.err
    assert await Account.exists(id=bob.id)

    removed = await portal(environ, "accounts", "remove", "bob@example.org", "--yes")
    assert removed.code == 0
    assert "Its videos (2) belong to ann@example.org now." in removed.out
    assert not await Account.exists(id=bob.id)
    for video in videos:
        assert (await Video.get(id=video.id)).owner_id == ann.id


async def test_token_is_printed_once_and_works_until_revoked(
    app: Quart, environ: dict[str, str]
) -> None:
    await make_account("ann")
    scopes = ("--scope", "videos:write", "--scope", "videos:read")
    added = await portal(
        environ, "tokens", "add", "ann@example.org", "--name", "nightly", *scopes, "--days", "30"
    )
    assert added.code == 0, added.err
    assert "shown this once" in added.err
    token = added.out.strip()
    assert re.fullmatch(r"portal_[\w-]{43}", token)
    assert (await program(app, token).post("/api/videos/presign", **PRESIGN)).status_code == 200

    listed = await portal(environ, "tokens", "list")
    heads, row = (re.split(r"  +", line) for line in listed.out.splitlines())
    assert heads == ["ID", "ACCOUNT", "NAME", "SCOPES", "MADE", "USED", "EXPIRES"]
    assert row[1:4] == ["ann@example.org", "nightly", "videos:read, videos:write"]
    assert row[6] == "in 30 d"
    [found] = (await document(environ, "tokens", "list"))["tokens"]
    assert found["id"] == row[0]
    assert set(found) == {*("id", "email", "name", "scopes", "created_at", "expires_at", "used_at")}

    revoked = await portal(environ, "tokens", "revoke", row[0])
    assert (revoked.code, revoked.out) == (0, f"{row[0]} is revoked.\n")
    assert (await program(app, token).post("/api/videos/presign", **PRESIGN)).status_code == 401
    assert not await ApiToken.exists()


@pytest.fixture
async def closed(web: LivePortal, config: Config) -> LivePortal:
    """A running portal without a worker, whose only account is an owner's."""
    async with open_database(config):
        await make_account("ann")
    return web


async def token(config: Config, *scopes: Scope) -> str:
    async with open_database(config):
        return await token_of(await people.get("ann@example.org"), scopes)


async def test_publish_with_a_token_publishes_on_a_closed_portal(
    closed: LivePortal, config: Config, short_video: Path
) -> None:
    environ = {"PORTAL_URL": closed.base_url}
    publish = ("publish", str(short_video), *TO_PUBLISH)

    refused = await portal(environ, *publish)
    assert "--token or in PORTAL_TOKEN" in told(refused)
    secret = await token(config, Scope.WRITE)
    by_variable = await portal({**environ, "PORTAL_TOKEN": f"{secret}\n"}, *publish)
    by_option = await portal(environ, *publish, "--token", secret)

    for ended in (by_variable, by_option):
        assert ended.code == 0, ended.err
        assert secret not in ended.out + ended.err
    async with open_database(config):
        ann = await people.get("ann@example.org")
        owners = [video.owner_id for video in await Video.all()]
    assert owners == [ann.id, ann.id]


async def test_publish_tells_what_to_do_about_a_token(
    closed: LivePortal, config: Config, short_video: Path
) -> None:
    environ = {"PORTAL_URL": closed.base_url}
    publish = ("publish", str(short_video), "--category", "1")
    mistyped = await portal({**environ, "PORTAL_TOKEN": "portal_mistyped"}, *publish)
    assert "mistyped, revoked or expired. Make a new one" in told(mistyped)
    secret = await token(config, Scope.READ)
    lacking = await portal({**environ, "PORTAL_TOKEN": secret}, *publish)
    assert "lacks the scope videos:write. Make one that has it." in told(lacking)
    # To wait is to read.
    secret = await token(config, Scope.WRITE)
    lacking = await portal({**environ, "PORTAL_TOKEN": secret}, *publish)
    assert lacking.code == 1
    assert "lacks the scope videos:read" in lacking.err.splitlines()[-1]
