"""Playback links in a video's workshop, without scripts."""

import html
import re
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from account_pages import page
from api_client import answered, run_sql
from playback_links import LIFE, links_of, ready_video, token_in
from quart import Quart
from signed_in import (
    Sender,
    make_account,
    make_video,
    send_fields,
    signed_in,
    text_of,
)

from portal.database.account_models import Account
from portal.database.models import Video
from portal.database.states import Role
from portal.videos import playback_links
from portal.web.pages.playback_link_views import LIVES, MAX_SHOWN

SECTION = re.compile(r'<section id="links".*?</section>', re.DOTALL)
FIELD = re.compile(
    r'<select([^>]*\bname="life"[^>]*)>.*?<p class="field__error"\s+id="link-life-error">(.*?)</p>',
    re.DOTALL,
)
pytestmark = pytest.mark.shared_app


async def section(sender: Sender, video: Video, query: str = "") -> str:
    """What the workshop of a video says of its links; empty for nothing."""
    found = SECTION.search(await page(sender, f"/videos/{video.id}/edit{query}"))
    return html.unescape(found[0]) if found else ""


async def make(sender: Sender, video: Video, life_s: int = 3600) -> str:
    """Make a link by the form; returns where that leads."""
    response = await send_fields(sender, f"/videos/{video.id}/links", life=str(life_s))
    assert response.status_code == 303
    return response.headers["Location"]


async def add_links(app: Quart, video: Video, count: int) -> None:
    """As many older ones, beside the one there is."""
    await run_sql(
        app.extensions["portal"].config.database_url,
        "INSERT INTO playback_links (id, video_id, kid, created_at, expires_at)"
        f" SELECT gen_random_uuid(), '{video.id}', kid, now() - interval '1 day',"
        f" now() + interval '1 day' FROM playback_links, generate_series(1, {count})"
        f" WHERE video_id = '{video.id}'",
    )


def fault_in(text: str) -> str:
    """What a page says at the form, which is marked then; empty for nothing."""
    [(attributes, fault)] = FIELD.findall(text)
    assert ('aria-invalid="true"' in attributes) is bool(fault)
    return html.unescape(fault)


def values(text: str) -> list[str]:
    """What the fields to be copied hold."""
    return re.findall(r'<input[^>]*\bvalue="([^"]*)"', text)


async def test_link_is_made_shown_and_revoked_without_scripts(app: Quart, edith: Account) -> None:
    video, sender = await ready_video(edith), await signed_in(app, edith)
    before = await section(sender, video)
    assert "<li" not in before
    assert re.findall(r'<option value="(\d+)"', before) == [str(life_s) for life_s in LIVES]
    assert f'action="/videos/{video.id}/links"' in before

    address = urlsplit(await make(sender, video, 86_400))

    assert (address.path, address.fragment) == (f"/videos/{video.id}/edit", "links")
    shown = await section(sender, video, f"?{address.query}")
    [link] = await playback_links.list_links(video.id)
    stream, player = values(shown)
    assert stream.endswith(f"/hls/{video.id}/1/master.m3u8")
    assert player.endswith(f"/embed/{video.id}")
    keys = app.extensions["portal"].signing_keys
    assert (await keys.verify(token_in(stream), video_id=video.id)).link_id == link.id
    assert token_in(stream) == token_in(player)
    assert "edith@example.org" in shown
    assert "<details" in shown
    # What was just made is open; on the page as such none is.
    assert re.search(r"<details[^>]*\bopen\b", shown)
    assert not re.search(r"<details[^>]*\bopen\b", await section(sender, video))
    for field in re.findall(r'data-copy="([^"]+)"', shown):
        assert shown.count(f'id="{field}"') == 1

    [action] = re.findall(r'action="(\S+/revoke)"', shown)
    response = await sender.post(action)

    assert (response.status_code, response.headers["Location"]) == (
        303,
        f"/videos/{video.id}/edit#links",
    )
    assert "<li" not in await section(sender, video)
    assert await playback_links.fetch_live_links([link.id]) == {}
    assert (await sender.post(action)).status_code == 303


@pytest.mark.parametrize("life_s", LIVES)
async def test_each_choice_is_a_life(app: Quart, edith: Account, life_s: int) -> None:
    video = await ready_video(edith)
    await make(await signed_in(app, edith), video, life_s)
    [link] = await playback_links.list_links(video.id)
    assert abs((link.expires_at - link.created_at).total_seconds() - life_s) < 60


@pytest.mark.parametrize("life", ["", "1", "3601", "-3600", "soon", "9" * 5000, "\uff13600"])
async def test_what_is_no_choice_is_refused(app: Quart, edith: Account, life: str) -> None:
    video, sender = await ready_video(edith), await signed_in(app, edith)
    response = await send_fields(sender, f"/videos/{video.id}/links", life=life)
    assert response.status_code == 422
    fault = fault_in(await text_of(response))
    assert fault == "Choose one of 1 hour, 1 day, 7 days, 30 days, 1 year."
    assert await playback_links.list_links(video.id) == []


async def test_form_says_when_there_are_as_many_links_as_may_be(app: Quart, edith: Account) -> None:
    video, sender = await ready_video(edith), await signed_in(app, edith)
    await make(sender, video)
    await add_links(app, video, 999)
    response = await send_fields(sender, f"/videos/{video.id}/links", life="3600")
    assert response.status_code == 409
    assert fault_in(await text_of(response)).startswith("This video has 1,000 playback links.")
    assert fault_in(await page(sender, f"/videos/{video.id}/edit")) == ""


async def test_wrong_choice_where_there_is_no_form_is_an_error(app: Quart) -> None:
    """Whoever sends one to an open portal is told, too."""
    video = await ready_video()
    response = await send_fields(Sender(app), f"/videos/{video.id}/links", life="1")
    assert response.status_code == 422
    assert "The request has faults" in await text_of(response)


async def test_only_who_may_edit_sees_links(app: Quart, edith: Account) -> None:
    video = await ready_video(edith)
    link = await answered(
        await (await signed_in(app, edith)).post(links_of(video), json=LIFE), status=201
    )
    others = [
        Sender(app),
        await signed_in(app, await make_account("mallory", Role.EDITOR)),
        await signed_in(app, await make_account("victor", Role.VIEWER)),
    ]
    for sender in others:
        text = await page(sender, f"/videos/{video.id}?link={link['id']}")
        assert 'id="links"' not in text
        assert token_in(link["playbackUrl"]) not in text
        for path in ("", f"/{link['id']}/revoke"):
            response = await sender.post(f"/videos/{video.id}/links{path}")
            assert response.status_code in (401, 403)
    admin = await signed_in(app, await make_account("adam", Role.ADMIN))
    assert token_in(link["playbackUrl"]) in await section(admin, video)
    assert await playback_links.fetch_live_links([UUID(link["id"])])


async def test_video_that_is_not_ready_has_no_section(app: Quart, edith: Account) -> None:
    video, sender = await make_video(edith), await signed_in(app, edith)
    assert await section(sender, video) == ""
    response = await send_fields(sender, f"/videos/{video.id}/links", life="3600")
    assert response.status_code == 409
    assert "Make a link once it is ready" in await text_of(response)


async def test_page_lists_the_newest_of_many(app: Quart, edith: Account) -> None:
    video, sender = await ready_video(edith), await signed_in(app, edith)
    await make(sender, video)
    await add_links(app, video, MAX_SHOWN + 2)
    shown = await section(sender, video)
    assert shown.count("<li") == MAX_SHOWN
    assert "3 older links work, too." in shown


async def test_open_portal_shows_no_links(app: Quart) -> None:
    """Anyone may watch everything there, and pages are shared."""
    video = await ready_video()
    assert await section(Sender(app), video) == ""


async def test_form_of_a_video_that_is_not_there(app: Quart, edith: Account) -> None:
    sender = await signed_in(app, edith)
    for path in (f"/videos/{uuid4()}/links", f"/videos/none/links/{uuid4()}/revoke"):
        assert (await send_fields(sender, path, life="3600")).status_code == 404
