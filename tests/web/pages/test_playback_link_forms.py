"""Playback links in a video's workshop, without scripts."""

import html
import re
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from account_pages import page
from api_client import answered
from playback_links import LIFE, links_of, ready_video, token_in
from quart import Quart
from signed_in import Sender, make_account, send_fields, signed_in

from portal.database.account_models import Account
from portal.database.models import Video
from portal.database.states import Role
from portal.videos import playback_links

pytestmark = pytest.mark.shared_app


async def section(sender: Sender, video: Video, query: str = "") -> str:
    """What the workshop of a video says of its links; empty for nothing."""
    text = await page(sender, f"/videos/{video.id}/edit{query}")
    found = re.search(r'<section id="links".*?</section>', text, re.DOTALL)
    return html.unescape(found[0]) if found else ""


async def test_link_is_made_shown_and_revoked_without_scripts(app: Quart, edith: Account) -> None:
    video, sender = await ready_video(edith), await signed_in(app, edith)
    assert "<li" not in await section(sender, video)
    response = await send_fields(sender, f"/videos/{video.id}/links", life="86400")
    address = urlsplit(response.headers["Location"])
    assert (address.path, address.fragment) == (f"/videos/{video.id}/edit", "links")
    shown = await section(sender, video, f"?{address.query}")
    [link] = await playback_links.list_links(video.id)
    stream, player = re.findall(r'<input[^>]*\bvalue="([^"]*)"', shown)
    assert stream.endswith(f"/hls/{video.id}/1/master.m3u8")
    assert player.endswith(f"/embed/{video.id}")
    assert token_in(stream) == token_in(player)
    assert "edith@example.org" in shown
    # What was just made is open; on the page as such none is.
    assert re.search(r"<details[^>]*\bopen\b", shown)
    assert not re.search(r"<details[^>]*\bopen\b", await section(sender, video))
    [action] = re.findall(r'action="(\S+/revoke)"', shown)
    for _ in range(2):
        response = await sender.post(action)
        assert response.headers["Location"] == f"/videos/{video.id}/edit#links"
    assert "<li" not in await section(sender, video)
    assert await playback_links.fetch_live_links([link.id]) == {}


async def test_only_who_may_edit_sees_links(app: Quart, edith: Account) -> None:
    video = await ready_video(edith)
    link = await answered(
        await (await signed_in(app, edith)).post(links_of(video), json=LIFE), status=201
    )
    others = [Sender(app), await signed_in(app, await make_account("mallory", Role.EDITOR))]
    for sender in others:
        text = await page(sender, f"/videos/{video.id}?link={link['id']}")
        assert token_in(link["playbackUrl"]) not in text
        for path in ("", f"/{link['id']}/revoke"):
            response = await sender.post(f"/videos/{video.id}/links{path}")
            assert response.status_code in (401, 403)
    admin = await signed_in(app, await make_account("adam", Role.ADMIN))
    assert token_in(link["playbackUrl"]) in await section(admin, video)
    assert await playback_links.fetch_live_links([UUID(link["id"])])
