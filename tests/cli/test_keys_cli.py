"""`portal keys`, as an operator types it, beside a portal that runs."""

import json
import re
from typing import Any

import pytest
from api_client import Client, answered
from command_line import portal
from playback_links import LIFE, age_keys, kids, links_of, ready_video, token_in
from quart import Quart
from running_portal import until

from portal.config import Config
from portal.database.models import Video
from portal.errors import PlaybackTokenRefused
from portal.videos.playback_tokens import header_of
from portal.videos.signing_keys import ROTATED_AFTER_S, SETTLE_S


async def made(client: Client, video: Video) -> tuple[str, str]:
    """The id and the token of a new link."""
    link = await answered(await client.post(links_of(video), json=LIFE), 201)
    return link["id"], token_in(link["playbackUrl"])


async def listed(environ: dict[str, str]) -> list[dict[str, Any]]:
    ended = await portal(environ, "keys", "list", "--json")
    assert ended.code == 0, ended.err
    found: list[dict[str, Any]] = json.loads(ended.out)["keys"]
    return found


async def verifies(app: Quart, token: str, video: Video) -> bool:
    keys = app.extensions["portal"].signing_keys
    try:
        await keys.verify(token, video_id=video.id)
    except PlaybackTokenRefused:
        return False
    return True


async def test_rotation_by_a_command_reaches_a_portal_that_runs(
    app: Quart, client: Client, config: Config, environ: dict[str, str]
) -> None:
    assert "no keys yet" in (await portal(environ, "keys", "list")).out
    video = await ready_video()
    _, old = await made(client, video)

    ended = await portal(environ, "keys", "rotate")

    assert ended.code == 0, ended.err
    new, before = await kids(config)
    assert ended.out == f"Key {new} signs within {ROTATED_AFTER_S:.0f} s. Links work as before.\n"
    await age_keys(config, SETTLE_S)

    async def is_signed_by_the_new() -> bool:
        _, token = await made(client, video)
        return token.startswith(header_of(new))

    await until(is_signed_by_the_new, timeout_s=10)
    assert await verifies(app, old, video)
    table = await portal(environ, "keys", "list")
    heads, *rows = (re.split(r"  +", line) for line in table.out.splitlines())
    assert heads == ["ID", "STATE", "LINKS", "MADE", "RETIRED"]
    assert [row[:2] for row in rows] == [[new, "signs"], [before, "verifies"]]
    found = await listed(environ)
    assert [set(key) for key in found] == [
        {"kid", "created_at", "retired_at", "links", "signs"}
    ] * 2
    assert [key["signs"] for key in found] == [True, False]
    assert found[1]["links"] >= 1
    assert (found[0]["retired_at"], found[1]["retired_at"] is None) == (None, False)


@pytest.mark.parametrize("how", ["--yes", "asked"])
async def test_revoked_keys_are_gone_with_their_links(
    app: Quart, client: Client, config: Config, environ: dict[str, str], how: str
) -> None:
    video = await ready_video()
    _, old = await made(client, video)
    assert await verifies(app, old, video)
    refused = await portal(environ, "keys", "rotate", "--revoke", typed="n\n")
    assert refused.code == 1
    assert "All playback links (1) stop working." in refused.out
    assert await verifies(app, old, video)

    options = ("--yes",) if how == "--yes" else ()
    ended = await portal(environ, "keys", "rotate", "--revoke", *options, typed="y\n")

    assert ended.code == 0, ended.err
    [kid] = await kids(config)
    assert f"Key {kid} signs now. Within 2 s no other is good for anything." in ended.out

    async def is_refused() -> bool:
        return not await verifies(app, old, video)

    await until(is_refused, timeout_s=10)
    assert (await answered(await client.get(links_of(video))))["links"] == []
    _, new = await made(client, video)
    assert new.startswith(header_of(kid))
    assert await verifies(app, new, video)
