"""Playback links in a video's workshop, without scripts."""

import html
import re
from urllib.parse import urlsplit

import pytest
from page_texts import page
from playable_videos import ready_video, token_in
from quart import Quart
from signed_in import Sender, person, send_fields, signed_in

from portal.database.account_models import Account
from portal.database.models import Video
from portal.videos import playback_links
from portal.videos.playback_links import Viewer

pytestmark = pytest.mark.shared_app


async def section(sender: Sender, video: Video, query: str = "") -> str:
    """Return the text about links in the workshop of a video."""
    text = await page(sender, f"/videos/{video.id}/edit{query}")
    match = re.search(r'<section id="links".*?</section>', text, re.DOTALL)
    return html.unescape(match[0]) if match else ""


async def test_link_is_made_shown_and_revoked_without_scripts(
    app: Quart, olga: Account, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    assert "<li" not in await section(editor, video)
    response = await send_fields(
        editor, f"/videos/{video.id}/links", life="86400", label="The Times"
    )
    led_to = urlsplit(response.headers["Location"])
    assert (led_to.path, led_to.fragment) == (f"/videos/{video.id}/edit", "links")
    links_text = await section(editor, video, f"?{led_to.query}")
    player, stream = re.findall(r'<input[^>]*\bvalue="([^"]*)"', links_text)
    assert stream.endswith(f"/hls/{video.id}/master.m3u8")
    assert player.endswith(f"/embed/{video.id}")
    assert token_in(stream) == token_in(player)
    assert "edith@example.org" in links_text
    assert "The Times" in links_text
    # A new link is expanded; a later visit shows all links collapsed.
    assert re.search(r"<details[^>]*\bopen\b", links_text)
    assert not re.search(r"<details[^>]*\bopen\b", await section(editor, video))
    # Editors of the video see its links, and nobody else does.
    assert token_in(stream) in await section(await signed_in(app, olga), video)
    assert token_in(stream) not in await page(Sender(app), f"/videos/{video.id}?{led_to.query}")
    [action] = re.findall(r'action="(\S+/revoke)"', links_text)
    for _ in range(2):
        response = await editor.post(action)
        assert response.headers["Location"] == f"/videos/{video.id}/edit#links"
    assert "<li" not in await section(editor, video)


async def test_links_of_viewers_are_one_entry_without_addresses(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith)
    for number in "12":
        viewer = Viewer(number, f"Learner {number}")
        await playback_links.make(video.id, life_s=60, by=person(edith), viewer=viewer)
    links_text = await section(editor, video)
    assert links_text.count("Viewers of another system") == 1
    assert "/p/" not in links_text
    [action] = re.findall(r'action="(\S+/revoke)"', links_text)
    await editor.post(action)
    assert "<li" not in await section(editor, video)
