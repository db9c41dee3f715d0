"""The commands `portal accounts`, `tokens` and `audit`, and publishing with a token."""

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
    """Return the cells of the table that a command prints, headers first."""
    ended = await portal(environ, *arguments)
    assert (ended.code, ended.err) == (0, "")
    return [re.split(r"  +", line) for line in ended.out.splitlines()]


def error_of(ended: Ended) -> str:
    """Return the one-line error message of a command that failed."""
    assert (ended.code, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    return line


async def choose(app: Quart, ended: Ended) -> int:
    """Use the link on standard output to choose a password; return the status."""
    link = LINK.fullmatch(ended.out)
    assert link is not None, ended
    assert "It works once and expires in 7 days" in ended.err
    sender = Sender(app, {"Sec-Fetch-Site": "same-origin"})
    return (await sender.post(link[1], form={"password": PASSWORD})).status_code


async def signs_in(app: Quart, email: str = "ann@example.org") -> bool:
    return (await try_to_sign_in(Sender(app), email)).status_code == 303


async def test_first_account_closes_the_portal(app: Quart, environ: dict[str, str]) -> None:
    video = await make_row()
    refused = await portal(environ, "accounts", "add", "ann@example.org", "--role", "editor")
    assert error_of(refused) == "Error: The first account must have the role owner."
    assert "No accounts." in (await portal(environ, "accounts", "list")).out

    added = await portal(environ, *ADD_OWNER, "--name", " Ann  Hill")

    assert "Added the account ann@example.org with the role owner." in added.err
    assert "It owns all existing videos, and from now on changes" in added.err
    assert (await Sender(app).post("/api/videos/presign", **PRESIGN)).status_code == 401
    account = await people.get("ann@example.org")
    assert account.name == "Ann Hill"
    assert (await Video.get(id=video.id)).owner_id == account.id
    assert [await choose(app, added) for _ in range(2)] == [303, 404]
    assert await signs_in(app)


async def test_password_is_read_from_standard_input(app: Quart, environ: dict[str, str]) -> None:
    add = (*ADD_OWNER, "--password-stdin")
    weak = await portal(environ, *add, typed="ann@example.org\n")
    assert "easily guessed" in error_of(weak)
    assert not await Account.exists()
    added = await portal(environ, *add, typed=f"{PASSWORD}\n")
    assert (added.code, added.out) == (0, "")
    assert PASSWORD not in added.err
    assert await signs_in(app)
    again = await portal(environ, *add, typed=PASSWORD)
    assert error_of(again) == "Error: An account with this email address already exists."


async def test_accounts_are_listed_and_changed(app: Quart, environ: dict[str, str]) -> None:
    await make_account("ann")
    bob = await make_account("bob", Role.VIEWER, has_password=False)
    identity = {"issuer": "https://id.example", "subject": "bob"}
    await Identity.create(id=uuid4(), account_id=bob.id, **identity)
    sender = program(app, await token_of(bob, [Scope.WRITE]))
    assert [cells[:4] for cells in await table(environ, "accounts", "list")] == [
        ["EMAIL", "ROLE", "STATE", "SEEN"],
        ["ann@example.org", "owner", "active", "-"],
        ["bob@example.org", "viewer", "no password yet", "-"],
    ]
    records = (await document(environ, "accounts", "list"))["accounts"]
    members = "id email name role is_disabled has_password created_at seen_at"
    assert set(records[0]) == set(members.split())
    for arguments, words, status in (
        (("role", "BOB@example.org", "editor"), "now has the role editor", 200),
        (("disable", bob.email), "is disabled", 401),
        (("enable", bob.email), "is enabled", 200),
        (("unbind", bob.email), "is no longer linked", 200),
    ):
        changed = await portal(environ, "accounts", *arguments)
        assert (changed.code, changed.err) == (0, "")
        assert f"bob@example.org {words}" in changed.out
        assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == status
    assert not await Identity.exists()
    assert await choose(app, await portal(environ, "accounts", "reset", bob.email)) == 303
    assert await signs_in(app, bob.email)
    unknown = await portal(environ, "accounts", "unbind", "x@example.org")
    assert "This account doesn't exist" in error_of(unknown)


async def test_remove_asks_and_says_who_gets_the_videos(
    app: Quart, environ: dict[str, str]
) -> None:
    ann = await make_account("ann")
    bob = await make_account("bob", Role.EDITOR)
    video = await make_row(owner_id=bob.id)
    declined = await portal(environ, "accounts", "remove", "bob@example.org", typed="n\n")
    assert declined.code == 1
    question = "ann@example.org will own its videos (1). Remove bob@example.org?"
    assert question in declined.out
    assert await Account.exists(id=bob.id)
    removed = await portal(environ, "accounts", "remove", "bob@example.org", "--yes")
    assert removed.code == 0
    assert "ann@example.org now owns its videos (1)." in removed.out
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
    assert "shown only once" in added.err
    sender = program(app, added.out.strip())
    assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == 200

    heads, row = await table(environ, "tokens", "list")
    assert heads == ["ID", "ACCOUNT", "NAME", "SCOPES", "CREATED", "USED", "EXPIRES"]
    assert row[1:4] == ["ann@example.org", "nightly", "videos:read, videos:write"]
    assert row[6] == "in 30 d"
    [record] = (await document(environ, "tokens", "list"))["tokens"]
    members = "id email name scopes created_at expires_at used_at"
    assert set(record) == set(members.split())

    revoked = await portal(environ, "tokens", "revoke", record["id"])
    assert (revoked.code, revoked.out) == (0, f"Revoked the API token {record['id']}.\n")
    assert (await sender.post("/api/videos/presign", **PRESIGN)).status_code == 401
    assert not await ApiToken.exists()


async def test_audit_prints_actions_of_commands_with_a_limit_and_a_start(
    environ: dict[str, str],
) -> None:
    """The log has more entries than are read at once."""
    await add_lines(environ["DATABASE_URL"], 600)
    aged = "UPDATE events SET at = '2024-05-01T12:00:00Z'"
    await run_sql(environ["DATABASE_URL"], aged)
    assert (await portal(environ, *ADD_OWNER)).code == 0
    heads, newest, before, *older = await table(environ, "audit")
    assert heads == ["WHEN", "WHO", "FROM", "WHAT", "OBJECT", "MORE"]
    assert newest[1:5] == ["command", "-", "account.link_made", "ann@example.org"]
    assert before[3:] == ["account.added", "ann@example.org", "role: owner"]
    assert len(older) == 48
    assert len(await table(environ, "audit", "--limit", "3")) == 4
    for since, count in (("2024-05-01", 602), ("2024-05-01T12:00:01", 2)):
        ended = await portal(environ, "audit", "--json", "--since", since)
        actions = [json.loads(line)["action"] for line in ended.out.splitlines()]
        assert len(actions) == count
        assert actions[-2:] == ["account.added", "account.link_made"]
    wrong = await portal(environ, "audit", "--since", "yesterday")
    assert wrong.code == 2
    assert "--since" in wrong.err


async def test_publish_with_a_token_publishes_on_a_closed_portal(
    web: LivePortal, config: Config, short_video: Path
) -> None:
    """The token comes from a variable or an option; waiting requires another scope."""
    async with open_database(config):
        ann = await make_account("ann")
        secret = await token_of(ann, [Scope.WRITE])
        reading = await token_of(ann, [Scope.READ])
    environ = {"PORTAL_URL": web.base_url}
    publish = ("publish", str(short_video), "--category", "1")
    for variables, words in (
        ({}, "--token or in PORTAL_TOKEN"),
        ({"PORTAL_TOKEN": "portal_mistyped"}, "mistyped, revoked or expired. Create a new one"),
        ({"PORTAL_TOKEN": reading}, "lacks the scope videos:write. Create one that has it."),
    ):
        assert words in error_of(await portal({**environ, **variables}, *publish))
    waits = await portal({**environ, "PORTAL_TOKEN": f"{secret}\n"}, *publish)
    assert waits.code == 1
    assert "lacks the scope videos:read" in waits.err.splitlines()[-1]
    by_option = await portal(environ, *publish, "--no-wait", "--token", secret)
    assert by_option.code == 0, by_option.err
    assert secret not in by_option.out + by_option.err + waits.out + waits.err
    async with open_database(config):
        assert [video.owner_id for video in await Video.all()] == [ann.id, ann.id]
