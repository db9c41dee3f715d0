"""`portal accounts`, `tokens` and `audit`, as an operator types them; publishing with a token."""

import json
import re
from pathlib import Path
from uuid import uuid4

from api_client import run_sql
from audit_lines import add_lines
from command_line import Ended, document, portal
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
ADD_OWNER = ("accounts", "add", "ann@example.org", "--role", "owner")


async def table(environ: dict[str, str], *arguments: str) -> list[list[str]]:
    """The cells of what is printed, the heads first."""
    ended = await portal(environ, *arguments)
    assert (ended.code, ended.err) == (0, "")
    return [re.split(r"  +", line) for line in ended.out.splitlines()]


def told(ended: Ended) -> str:
    """The one line of a command that could not be carried out."""
    assert (ended.code, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    return line


async def choose(app: Quart, ended: Ended) -> int:
    """Use up the link that alone went to standard output; returns the status."""
    found = LINK.fullmatch(ended.out)
    assert found is not None, ended
    assert "It works once, for 7 days" in ended.err
    sender = Sender(app, {"Sec-Fetch-Site": "same-origin"})
    return (await sender.post(found[1], form={"password": PASSWORD})).status_code


async def signs_in(app: Quart, email: str = "ann@example.org") -> bool:
    return (await try_to_sign_in(Sender(app), email)).status_code == 303


async def test_first_account_closes_the_portal(app: Quart, environ: dict[str, str]) -> None:
    video = await make_row()
    refused = await portal(environ, "accounts", "add", "ann@example.org", "--role", "editor")
    assert told(refused) == "Error: The first account has to be an owner's."
    assert "no accounts" in (await portal(environ, "accounts", "list")).out

    added = await portal(environ, *ADD_OWNER, "--name", " Ann  Hill")

    assert "ann@example.org has an account with the role owner." in added.err
    assert "from now on changes need an account, and all videos" in added.err
    assert (await Sender(app).post("/api/videos/presign", **PRESIGN)).status_code == 401
    account = await people.get("ann@example.org")
    assert account.name == "Ann Hill"
    assert (await Video.get(id=video.id)).owner_id == account.id
    assert [await choose(app, added) for _ in range(2)] == [303, 404]
    assert await signs_in(app)


async def test_password_is_read_from_standard_input(app: Quart, environ: dict[str, str]) -> None:
    add = (*ADD_OWNER, "--password-stdin")
    weak = await portal(environ, *add, typed="ann@example.org\n")
    assert "easily guessed" in told(weak)
    assert not await Account.exists()
    added = await portal(environ, *add, typed=f"{PASSWORD}\n")
    assert (added.code, added.out) == (0, "")
    assert PASSWORD not in added.err
    assert await signs_in(app)
    again = await portal(environ, *add, typed=PASSWORD)
    assert told(again) == "Error: An account with this email address already exists."


async def test_accounts_are_listed_and_changed(app: Quart, environ: dict[str, str]) -> None:
    await make_account("ann")
    bob = await make_account("bob", Role.VIEWER, has_password=False)
    identity = {"issuer": "https://id.example", "subject": "bob"}
    await Identity.create(id=uuid4(), account_id=bob.id, **identity)
    sender = program(app, await token_of(bob, [Scope.WRITE]))
    assert [it[:4] for it in await table(environ, "accounts", "list")] == [
        ["EMAIL", "ROLE", "STATE", "SEEN"],
        ["ann@example.org", "owner", "active", "-"],
        ["bob@example.org", "viewer", "no password yet", "-"],
    ]
    found = (await document(environ, "accounts", "list"))["accounts"]
    assert set(found[0]) == {
        *("id", "email", "name", "role", "is_disabled", "has_password", "created_at", "seen_at")
    }
    for arguments, words, status in (
        (("role", "BOB@example.org", "editor"), "has the role editor now", 200),
        (("disable", bob.email), "is disabled", 401),
        (("enable", bob.email), "is enabled", 200),
        (("unbind", bob.email), "is bound to nobody", 200),
    ):
        changed = await portal(environ, "accounts", *arguments)
        assert (changed.code, changed.err) == (0, "")
        assert f"bob@example.org {words}" in changed.out
        assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == status
    assert not await Identity.exists()
    assert await choose(app, await portal(environ, "accounts", "reset", bob.email)) == 303
    assert await signs_in(app, bob.email)
    unknown = await portal(environ, "accounts", "unbind", "x@example.org")
    assert "This account doesn't exist" in told(unknown)


async def test_remove_asks_and_says_who_gets_the_videos(
    app: Quart, environ: dict[str, str]
) -> None:
    ann = await make_account("ann")
    bob = await make_account("bob", Role.EDITOR)
    video = await make_row(owner_id=bob.id)
    kept = await portal(environ, "accounts", "remove", "bob@example.org", typed="n\n")
    assert kept.code == 1
    assert "Its videos (1) go to ann@example.org. Remove bob@example.org?" in kept.out
    assert await Account.exists(id=bob.id)
    removed = await portal(environ, "accounts", "remove", "bob@example.org", "--yes")
    assert removed.code == 0
    assert "Its videos (1) belong to ann@example.org now." in removed.out
    assert not await Account.exists(id=bob.id)
    assert (await Video.get(id=video.id)).owner_id == ann.id


async def test_token_is_printed_once_and_works_until_revoked(
    app: Quart, environ: dict[str, str]
) -> None:
    await make_account("ann")
    scopes = ("--scope", "videos:write", "--scope", "videos:read")
    named = ("ann@example.org", "--name", "nightly", "--days", "30")
    added = await portal(environ, "tokens", "add", *named, *scopes)
    assert added.code == 0, added.err
    assert "shown this once" in added.err
    sender = program(app, added.out.strip())
    assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == 200

    heads, row = await table(environ, "tokens", "list")
    assert heads == ["ID", "ACCOUNT", "NAME", "SCOPES", "MADE", "USED", "EXPIRES"]
    assert row[1:4] == ["ann@example.org", "nightly", "videos:read, videos:write"]
    assert row[6] == "in 30 d"
    [found] = (await document(environ, "tokens", "list"))["tokens"]
    assert set(found) == {*("id", "email", "name", "scopes", "created_at", "expires_at", "used_at")}

    revoked = await portal(environ, "tokens", "revoke", found["id"])
    assert (revoked.code, revoked.out) == (0, f"{found['id']} is revoked.\n")
    assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == 401
    assert not await ApiToken.exists()


async def test_audit_prints_what_commands_did_limited_in_words_and_by_time(
    environ: dict[str, str],
) -> None:
    """More lines than are read at once."""
    await add_lines(environ["DATABASE_URL"], 600)
    aged = "UPDATE events SET at = '2024-05-01T12:00:00Z'"
    await run_sql(environ["DATABASE_URL"], aged)
    assert (await portal(environ, *ADD_OWNER)).code == 0
    heads, newest, before, *rest = await table(environ, "audit")
    assert heads == ["WHEN", "WHO", "FROM", "WHAT", "OBJECT", "MORE"]
    assert newest[1:5] == ["command", "-", "account.link_made", "ann@example.org"]
    assert before[3:] == ["account.added", "ann@example.org", "role: owner"]
    assert len(rest) == 48
    assert len(await table(environ, "audit", "--limit", "3")) == 4
    for since, count in (("2024-05-01", 602), ("2024-05-01T12:00:01", 2)):
        ended = await portal(environ, "audit", "--json", "--since", since)
        found = [json.loads(line) for line in ended.out.splitlines()]
        assert len(found) == count
        assert [it["action"] for it in found[-2:]] == ["account.added", "account.link_made"]
    wrong = await portal(environ, "audit", "--since", "yesterday")
    assert wrong.code == 2
    assert "--since" in wrong.err


async def test_publish_with_a_token_publishes_on_a_closed_portal(
    web: LivePortal, config: Config, short_video: Path
) -> None:
    """By a variable and by an option; waiting takes another scope."""
    async with open_database(config):
        ann = await make_account("ann")
        secret = await token_of(ann, [Scope.WRITE])
        reading = await token_of(ann, [Scope.READ])
    environ = {"PORTAL_URL": web.base_url}
    publish = ("publish", str(short_video), "--category", "1")
    for given, words in (
        ({}, "--token or in PORTAL_TOKEN"),
        ({"PORTAL_TOKEN": "portal_mistyped"}, "mistyped, revoked or expired. Create a new one"),
        ({"PORTAL_TOKEN": reading}, "lacks the scope videos:write. Create one that has it."),
    ):
        assert words in told(await portal({**environ, **given}, *publish))
    waits = await portal({**environ, "PORTAL_TOKEN": f"{secret}\n"}, *publish)
    assert waits.code == 1
    assert "lacks the scope videos:read" in waits.err.splitlines()[-1]
    by_option = await portal(environ, *publish, "--no-wait", "--token", secret)
    assert by_option.code == 0, by_option.err
    assert secret not in by_option.out + by_option.err + waits.out + waits.err
    async with open_database(config):
        assert [video.owner_id for video in await Video.all()] == [ann.id, ann.id]
