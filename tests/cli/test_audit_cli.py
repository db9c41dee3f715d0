"""`portal audit`, as an operator types it."""

import json

from api_client import run_sql
from audit_lines import add_lines, lines
from command_line import portal
from page_rows import make_row
from quart import Quart


async def test_commands_are_in_the_log_that_a_command_prints(environ: dict[str, str]) -> None:
    for arguments in (
        ("accounts", "add", "ann@example.org", "--role", "owner"),
        ("tokens", "add", "ann@example.org", "--name", "nightly", "--scope", "videos:read"),
    ):
        assert (await portal(environ, *arguments)).code == 0
    ended = await portal(environ, "audit")
    assert (ended.code, ended.err) == (0, "")
    heads, newest, middle, oldest = ended.out.splitlines()
    assert heads.split() == ["WHEN", "WHO", "FROM", "WHAT", "OBJECT", "MORE"]
    assert "command  -     token.made         nightly" in newest
    assert "account: ann@example.org, scopes: videos:read" in newest
    assert "account.link_made" in middle
    assert "account.added" in oldest
    assert "role: owner" in oldest
    ended = await portal(environ, "audit", "--json")
    found = [json.loads(line) for line in ended.out.splitlines()]
    actions = ["account.added", "account.link_made", "token.made"]
    assert [it["action"] for it in found] == actions
    assert {it["actorKind"] for it in found} == {"command"}


async def test_videos_that_a_command_deletes_are_in_the_log(
    app: Quart, environ: dict[str, str]
) -> None:
    video, failed = await make_row(), await make_row(2, status="failed")
    assert (await portal(environ, "videos", "delete", str(video.id), "--yes")).code == 0
    assert (await portal(environ, "videos", "retry", str(failed.id))).code == 0
    found = [(it["actorKind"], it["action"], it["objectId"]) for it in await lines()]
    assert found == [
        ("command", "video.deleted", str(video.id)),
        ("command", "video.retried", str(failed.id)),
    ]


async def test_lines_are_limited_in_words_and_by_time(environ: dict[str, str]) -> None:
    await add_lines(environ["DATABASE_URL"], 1200)
    assert len((await portal(environ, "audit")).out.splitlines()) == 51
    assert len((await portal(environ, "audit", "--limit", "3")).out.splitlines()) == 4
    aged = "UPDATE audit_events SET at = '2024-05-01T12:00:00Z' WHERE id % 2 = 0"
    await run_sql(environ["DATABASE_URL"], aged)
    for since, count in (
        ("2024-05-01", 1200),
        ("2024-05-01T12:00:01", 600),
    ):
        ended = await portal(environ, "audit", "--json", "--since", since)
        assert len(ended.out.splitlines()) == count


async def test_wrong_time_is_told_with_the_remedy(environ: dict[str, str]) -> None:
    ended = await portal(environ, "audit", "--since", "yesterday")
    assert ended.code == 2
    assert "%Y-%m-%d" in ended.err
    assert "--since" in ended.err
