"""The pages of a video: what is on them in each state, and that nothing typed breaks out of it."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from api_client import UNKNOWN_VIDEO_ID, Client
from library_pages import FAILED
from page_rows import READY, change_video, make_attempt, make_cut, make_rendition, make_row
from page_texts import page, words_of

from portal.database.models import Attempt, Caption, Rendition, RenditionState
from portal.transcoding.packaging.master import Kind

pytestmark = pytest.mark.shared_app


async def test_waiting_and_processing_videos_show_their_progress(client: Client) -> None:
    working = await make_row(1)
    video = await make_row(2)
    text = await page(client, f"/videos/{video.id}/status")
    assert "In queue" in text
    assert "Position 2 in queue" in text
    assert f'hx-get="/videos/{video.id}/status"' in text
    assert text.count("<section") == 1
    await make_attempt(working, percent=41.7, eta_s=95.0)
    text = await page(client, f"/videos/{working.id}/status")
    assert words_of(text).startswith("Processing 41%")
    assert 'value="41"' in text
    assert "about 2 min left" in text
    await Attempt.filter(video_id=working.id).update(eta_s=None)
    text = await page(client, f"/videos/{working.id}/status")
    assert words_of(text).startswith("Processing 41% estimating time left…")


async def test_ready_video_plays_and_lists_renditions_in_progress(client: Client) -> None:
    video = await make_row(**READY, complete_job_id=7)
    text = await page(client, f"/videos/{video.id}/status")
    assert f'data-src="/hls/{video.id}/master.m3u8"' in text
    assert 'width="1080"' in text
    assert 'height="1920"' in text
    await make_rendition(video, "360p")
    for name in ("720p", "1080p"):
        await make_rendition(video, name, state=RenditionState.PLANNED, attempt_number=2)
    waiting = await page(client, f"/videos/{video.id}/remaining")
    assert "More qualities in queue: 720p, 1080p" in waiting
    await make_attempt(video, 2, percent=43.2)
    text = await page(client, f"/videos/{video.id}/remaining")
    assert "Processing more qualities: 720p, 1080p – 43%" in text  # noqa: RUF001 - as shown
    assert f'hx-get="/videos/{video.id}/remaining"' in text
    assert "<video" not in text
    for end in ("", "/status"):
        whole = await page(client, f"/videos/{video.id}{end}")
        assert whole.count('id="remaining"') == 1
        assert whole.count('hx-trigger="every') == 1
    await change_video(video.id, complete_job_id=None, storyboard_job_id=8)
    await Rendition.filter(version_id=video.version_id).update(state=RenditionState.COMPLETE)
    assert "Creating seek previews…" in await page(client, f"/videos/{video.id}/remaining")
    video = await make_row(2, **READY)
    await make_rendition(video, "720p", state=RenditionState.FAILED, error_code="stalled")
    text = await page(client, f"/videos/{video.id}/remaining")
    assert "be processed: 720p." in text
    assert f'action="/videos/{video.id}/retry"' in text
    assert f'hx-post="/videos/{video.id}/remaining"' in text


@pytest.mark.parametrize(
    ("address", "page_address"),
    [
        ("/people/invitations", "/people"),
        (f"/account/sessions/{UNKNOWN_VIDEO_ID}/end", "/account"),
        (f"/webhooks/{UNKNOWN_VIDEO_ID}/rotate-secret", f"/webhooks/{UNKNOWN_VIDEO_ID}"),
        ("/sign-out", "/"),
        ("/videos/selected?at=library.index&q=sea", "/?q=sea"),
        ("/videos/some/retry", "/videos/some"),
        ("/videos/some/poster/picture", "/videos/some/edit"),
        (f"/videos/some/links/{UNKNOWN_VIDEO_ID}/revoke", "/videos/some/edit"),
    ],
)
async def test_address_of_a_form_leads_to_the_page_with_the_form(
    client: Client, address: str, page_address: str
) -> None:
    response = await client.get(address)
    assert response.status_code == 303
    assert response.headers["Location"] == page_address


async def test_address_with_a_slash_leads_to_the_video(client: Client) -> None:
    video = await make_row(**READY)
    for query in ("", "?start=1&end=2.5"):
        response = await client.get(f"/videos/{video.id}/{query}")
        assert response.status_code == 308
        assert response.headers["Location"] == f"/videos/{video.id}{query}"
    assert (await client.get("/videos/unknown/")).status_code == 404


async def test_page_that_takes_no_form_names_the_remedy(client: Client) -> None:
    response = await client.put("/people", json={})
    text = words_of(await response.get_data(as_text=True))
    assert response.status_code == 405
    assert "This page can\u2019t be opened directly. Go back, and use the form" in text


@pytest.mark.parametrize(("code", "is_offered"), [("transcode_failed", True), ("damaged", False)])
async def test_failed_video_says_why_and_offers_a_retry_where_it_can_help(
    client: Client, code: str, is_offered: bool
) -> None:
    video = await make_row(**{**FAILED, "failure_code": code})
    text = await page(client, f"/videos/{video.id}")
    assert "It is damaged." in text
    assert f"<code>{code}</code>" in text
    assert f'href="/videos/{video.id}/edit#replacement"' in text
    assert (f'action="/videos/{video.id}/retry"' in text) is is_offered


async def test_facts_name_qualities_notes_and_sound(client: Client) -> None:
    video = await make_row()
    await change_video(video.id, **READY, notes=["hdr_converted"])
    await make_rendition(video, "360p")
    words = words_of(await page(client, f"/videos/{video.id}/edit"))
    assert "Sound No sound" in words
    text = await page(client, f"/videos/{video.id}")
    assert re.search(r'<span id="captions"\s+hidden>', text)
    await make_rendition(video, "720p", state=RenditionState.PLANNED)
    english = {"label": "English", "language": "en"}
    await make_rendition(video, "0p", kind=Kind.AUDIO, is_default=True, **english)
    await make_rendition(video, "1p", kind=Kind.AUDIO, label="Commentary")
    await Caption.create(video=video, source="file", text="WEBVTT\n", **english)
    words = words_of(await page(client, f"/videos/{video.id}/facts"))
    assert "360p · 1.2 Mbit/s · 7.7 MB 720p · In queue" in words
    assert "Sound English · en · default · 1.2 Mbit/s Commentary · 1.2 Mbit/s" in words
    assert "HDR was converted to standard colours." in words
    assert "Duration 1:02:05 Resolution" in words
    words = words_of(await page(client, f"/videos/{video.id}/share"))
    assert "Captions: English Sound: English" in words
    assert "Commentary" not in words
    cut = await make_cut(video)
    await change_video(video.id, version_id=cut.id)
    words = words_of(await page(client, f"/videos/{video.id}/facts"))
    assert "Duration 0:06 · cut from 1:02:05" in words


@pytest.mark.parametrize(
    ("state", "order"),
    [
        (READY, ["details", "access", "status", "poster", "facts", "danger"]),
        (FAILED, ["status", "details", "access", "poster", "facts", "danger"]),
    ],
)
async def test_editors_get_the_details_first_except_after_a_failure(
    client: Client, state: dict[str, Any], order: list[str]
) -> None:
    video = await make_row(**state)
    text = await page(client, f"/videos/{video.id}/edit")
    ids = re.findall(r'<\w+[^>]*? id="([^"]+)"', text)
    assert [part for part in ids if part in order] == order


async def test_last_change_is_that_of_a_person(client: Client) -> None:
    """Processing does not outdate the form."""
    video = await make_row(**READY, updated_at=datetime.now(UTC))
    address = f"/videos/{video.id}/facts"
    assert "Last changed" not in await page(client, address)
    response = await client.patch(f"/api/videos/{video.id}", json={"title": "New"})
    assert response.status_code == 200
    assert "Last changed" in await page(client, address)
