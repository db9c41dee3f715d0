"""Public page of a private video: its text and picture for everyone, its film for its audience."""

import re
from typing import Any

import pytest
from api_client import answered, metadata, problem, uploaded
from page_rows import change_video
from page_texts import page, send, words_of
from playable_videos import Cast
from quart import Response
from signed_in import OWN_PAGE, Sender, quick_hash, send_fields, text_of

from portal.accounts.people import rename
from portal.database.models import Caption, Video, Visibility
from portal.videos.visibility import VideoAccess, recorded_access

pytestmark = pytest.mark.shared_app
WORD = "open sesame"
TEXTS = {"title": "Heron & crane", "description": "At the harbour.", "tags": "birds"}


async def put_access(cast: Cast, video: Video, **members: Any) -> Response:
    body = {"visibility": "private", "signedInOnly": False, "embedOrigins": [], **members}
    address = f"/api/videos/{video.id}/access"
    own = cast.senders["its editor"][0]
    return await own.ask("PUT", address, json=body, headers={"If-Match": "*"})


async def test_page_shows_text_and_poster_and_whom_to_ask(cast: Cast) -> None:
    video = await cast.make_ready("with a page", views=12)
    await change_video(video.id, **TEXTS)
    await rename(cast.editor.id, "Ed Moore")
    path = f"/videos/{video.id}"
    visitor = cast.senders["nobody"][0]
    text = await page(visitor, path)
    words = words_of(text)
    for visible in ("Heron & crane", "At the harbour.", "birds", "Private", "by Ed Moore"):
        assert visible in words, visible
    assert "Sign in to watch, or ask the person who published this video." in words
    assert f'href="/sign-in?next=/videos/{video.id}"' in text
    assert 'content="noindex"' in text
    # The page has neither the e-mail address of the editor nor anything of the film.
    for hidden in (cast.editor.email, "<media-controller", "<video", "12 views", "storyboard"):
        assert hidden not in text, hidden
    [poster] = set(re.findall(rf"/videos/{video.id}/poster\.jpg\?v=[^\"]+", text))
    assert (await visitor.get(poster)).status_code == 302
    signed_in = await page(cast.senders["viewer"][0], path)
    assert "Ask Ed Moore for access" in words_of(signed_in)
    assert 'href="mailto:ed@example.org?subject=Heron%20%26%20crane"' in signed_in
    assert "<media-controller" in await page(cast.senders["its editor"][0], path)


async def test_password_is_asked_for_below_the_text(cast: Cast) -> None:
    video = await cast.make_ready("with a page")
    await change_video(video.id, unlock_id=cast.editor.id, password_hash=quick_hash(WORD))
    visitor = cast.senders["nobody"][0]
    path = f"/videos/{video.id}"
    assert "Anyone with the password can watch, too." in words_of(await page(visitor, path))
    fields = {"password": WORD, "next": path}
    [cookie] = (await send_fields(visitor, f"{path}/unlock", **fields)).headers.getlist(
        "Set-Cookie"
    )
    opened = Sender(visitor.app, {**OWN_PAGE, "Cookie": cookie.partition(";")[0]})
    assert "<media-controller" in await page(opened, path)
    # A player in a frame asks for it, too.
    assert (await visitor.get(f"/embed/{video.id}")).status_code == 403


async def test_frame_shows_the_title_and_leads_to_the_page(cast: Cast) -> None:
    video = await cast.make_ready("with a page")
    await change_video(video.id, **TEXTS)
    text = await page(cast.senders["nobody"][0], f"/embed/{video.id}")
    assert "Heron & crane Only people with access can watch" in words_of(text)
    assert re.search(rf'href="[^"]*/videos/{video.id}"[^>]*>Open the page<', text)
    assert "<media-controller" not in text
    assert "poster.jpg" in text


async def test_search_finds_the_text_and_not_what_is_said(cast: Cast) -> None:
    video = await cast.make_ready("with a page", views=12)
    await change_video(video.id, **TEXTS)
    await Caption.filter(video_id=video.id).delete()
    own = cast.senders["its editor"][0]
    captions = "WEBVTT\n\n00:01.000 --> 00:02.000\nA gyrfalcon, a heron.\n"
    path = f"/api/videos/{video.id}/captions/en"
    saved = await own.ask(
        "PUT", path, data=captions, headers={"Content-Type": "text/vtt", "If-None-Match": "*"}
    )
    assert saved.status_code < 300, await text_of(saved)
    visitor = cast.senders["nobody"][0]
    assert f"/videos/{video.id}" in await page(own, "/?q=gyrfalcon")
    assert f"/videos/{video.id}" not in await page(visitor, "/?q=gyrfalcon")
    card = await page(visitor, "/?q=heron")
    assert f'href="/videos/{video.id}"' in card
    for hidden in ("gyrfalcon", "storyboard", "12 views", "Said at"):
        assert hidden not in card, hidden


async def test_page_is_a_choice_of_private_videos_alone(cast: Cast) -> None:
    video = await cast.make_ready("private")
    visitor = cast.senders["nobody"][0]
    path = f"/videos/{video.id}"
    for members, status in (({"hasPublicPage": True}, 200), ({}, 404)):
        access = await answered(await put_access(cast, video, **members))
        assert access["hasPublicPage"] is bool(members)
        assert (await visitor.get(path)).status_code == status
    body = await problem(
        await put_access(cast, video, visibility="unlisted", hasPublicPage=True),
        422,
        "validation_failed",
    )
    assert [fault["pointer"] for fault in body["errors"]] == ["/hasPublicPage"]
    # The form has it as a box, whose change is merged with the visibility.
    own = cast.senders["its editor"][0]
    fields = {"base.visibility": "private", "visibility": "private", "hasPublicPage": "on"}
    words = words_of(await send(own, f"{path}/access/panel", fields, 200))
    assert "Visible to: you, admins and owners; the page: everyone" in words
    assert (await visitor.get(path)).status_code == 200
    # A video that was unlisted in between has no public page any more.
    headers = {"If-Match": "*"}
    for visibility in ("unlisted", "private"):
        patch = {"visibility": visibility}
        await answered(await own.ask("PATCH", f"/api{path}", json=patch, headers=headers))
    assert (await visitor.get(path)).status_code == 404


async def test_video_is_created_with_its_page(cast: Cast) -> None:
    own = cast.senders["its editor"][0]
    body = metadata(await uploaded(own))
    refused = await own.post("/api/videos?visibility=public&hasPublicPage=true", json=body)
    errors = (await problem(refused, 422, "validation_failed"))["errors"]
    assert [fault["pointer"] for fault in errors] == ["/hasPublicPage"]
    query = "visibility=private&hasPublicPage=true"
    created = await answered(await own.post(f"/api/videos?{query}", json=body), 201)
    expected = VideoAccess(visibility=Visibility.PRIVATE, has_public_page=True)
    assert recorded_access(await Video.get(id=created["id"])) == expected
