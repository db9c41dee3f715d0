"""The pages' HTML: what is on them in each state, and that nothing typed can break out of it."""

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest
from api_client import UNKNOWN_VIDEO_ID, Client
from library_pages import FAILED
from page_rows import READY, make_attempt, make_rendition, make_row

from portal.database.models import Video
from portal.database.states import RenditionState
from portal.videos.progress import Progress
from portal.web.pages import video as video_pages

pytestmark = pytest.mark.shared_app


async def read(client: Client, path: str, status: int = 200) -> str:
    response = await client.get(path)
    assert response.status_code == status
    return str(await response.get_data(as_text=True))


async def test_text_of_editors_is_escaped_everywhere(client: Client) -> None:
    evil = "<script>alert(1)</script>\"'"
    video = await make_row(title=evil, description=evil, tags=evil, file_name=evil, **READY)
    for path in ("/", f"/videos/{video.id}", f"/videos/{video.id}/status"):
        html = await read(client, path)
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html


async def test_waiting_video_tells_its_place_and_polls(client: Client) -> None:
    await make_row(1)
    video = await make_row(2)
    html = await read(client, f"/videos/{video.id}/status")
    assert "Waiting for its turn" in html
    assert "1 video ahead" in html
    assert f'hx-get="/videos/{video.id}/status"' in html
    assert 'hx-swap="outerHTML"' in html
    assert html.count("<section") == 1


async def test_processing_video_shows_percent_and_time_left(client: Client) -> None:
    video = await make_row()
    await make_attempt(video, percent=41.7, eta_s=95.0)
    html = await read(client, f"/videos/{video.id}/status")
    assert "Converting the video" in html
    assert 'value="41"' in html
    assert "about 2 min left" in html


async def test_player_has_stream_and_shape(client: Client) -> None:
    video = await make_row(**READY)
    html = await read(client, f"/videos/{video.id}/status")
    assert f'data-src="/hls/{video.id}/1/master.m3u8"' in html
    assert 'width="1080"' in html
    assert 'height="1920"' in html


async def test_failed_video_says_why_with_its_code(client: Client) -> None:
    video = await make_row(**FAILED)
    html = await read(client, f"/videos/{video.id}")
    assert "It is damaged." in html
    assert "<code>damaged</code>" in html
    assert 'href="/upload"' in html


async def test_ready_video_tells_what_is_still_being_made(client: Client) -> None:
    video = await make_row(**READY, complete_job_id=7)
    await make_rendition(video, "360p")
    for name in ("720p", "1080p"):
        await make_rendition(video, name, state=RenditionState.PLANNED, attempt_number=2)
    waiting = await read(client, f"/videos/{video.id}/remaining")
    assert "More qualities are waiting to be made: 720p, 1080p" in waiting
    await make_attempt(video, 2, percent=43.2)
    html = await read(client, f"/videos/{video.id}/remaining")
    assert "More qualities are being made: 720p, 1080p – 43%" in html  # noqa: RUF001 - as shown
    assert f'hx-get="/videos/{video.id}/remaining"' in html
    assert 'hx-trigger="every 2s"' in html
    assert "<video" not in html
    for page in ("", "/status"):
        whole = await read(client, f"/videos/{video.id}{page}")
        assert whole.count('id="remaining"') == 1
        assert whole.count('hx-trigger="every') == 1


async def test_quality_that_failed_is_named_with_a_way_to_try_again(client: Client) -> None:
    video = await make_row(**READY)
    await make_rendition(video, "360p")
    await make_rendition(video, "720p", state=RenditionState.FAILED, error_code="stalled")
    html = await read(client, f"/videos/{video.id}/remaining")
    assert "Could not be made: 720p." in html
    assert f'action="/videos/{video.id}/retry"' in html
    assert f'hx-post="/videos/{video.id}/remaining"' in html


async def test_facts_list_qualities_and_notes(client: Client) -> None:
    video = await make_row(**READY, notes=["hdr_converted", "no_audio"])
    await make_rendition(video, "360p")
    await make_rendition(video, "720p", state=RenditionState.PLANNED)
    html = await read(client, f"/videos/{video.id}/facts")
    assert "360p · 1.2 Mbit/s" in html
    assert re.search(r'<data value="7654321"\s+data-local\s*>7.7 MB</data>', html)
    assert "720p · Waiting to be made" in html
    assert "HDR was converted to standard colours." in html


@pytest.mark.parametrize(
    ("code", "is_offered"),
    [
        ("transcode_failed", True),
        ("too_large", True),
        ("damaged", False),
        ("source_changed", False),
    ],
)
async def test_retry_is_offered_where_it_can_help(
    client: Client, code: str, is_offered: bool
) -> None:
    video = await make_row(**{**FAILED, "failure_code": code})
    html = await read(client, f"/videos/{video.id}/status")
    assert (f'action="/videos/{video.id}/retry"' in html) is is_offered
    assert "Upload again" in html


@pytest.mark.parametrize("path", ["/videos/none", f"/videos/{UNKNOWN_VIDEO_ID}", "/nothing"])
async def test_unknown_address_is_a_page_of_its_own(client: Client, path: str) -> None:
    html = await read(client, path, 404)
    assert "<h1" in html
    assert 'href="/"' in html


async def test_upload_form_offers_the_category_table(client: Client) -> None:
    html = await read(client, "/upload")
    categories = (await (await client.get("/api/categories")).get_json())["categories"]
    assert categories
    for category in categories:
        assert f'value="{category["id"]}"' in html
    assert 'data-presign-url="/api/videos/presign"' in html


async def test_video_that_becomes_ready_while_its_page_is_made_is_still_told_of(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, read = await make_row(), video_pages.read_progress

    async def read_later(video_id: UUID) -> Progress:
        await Video.filter(id=video_id).update(**READY)
        return await read(video_id)

    monkeypatch.setattr(video_pages, "read_progress", read_later)
    page = await (await client.get(f"/videos/{row.id}")).get_data(as_text=True)
    assert '<h2 class="stage__title">Checking the result</h2>' in page


async def test_last_change_is_that_of_a_person(client: Client) -> None:
    video = await make_row()
    address = f"/videos/{video.id}"

    async def last_change() -> str | None:
        page = await read(client, f"{address}/facts")
        found = re.search(r'<dt>Last change</dt>.*?datetime="([^"]+)"', page, re.DOTALL)
        return found[1] if found else None

    await Video.filter(id=video.id).update(**READY, updated_at=datetime.now(UTC))
    assert await last_change() is None
    body = {"visibility": "unlisted", "signedInOnly": False, "embedOrigins": []}
    any_version = {"If-Match": "*"}
    sent = await client.put(f"/api{address}/access", json=body, headers=any_version)
    assert sent.status_code == 200
    first = await last_change()
    assert first is not None
    body = {"title": "New", "description": "", "categoryIds": [1], "tags": ""}
    sent = await client.put(f"/api{address}/metadata", json=body, headers=any_version)
    assert sent.status_code == 200
    second = await last_change()
    assert second is not None
    assert second > first
    # What is processed later is no person's doing.
    await Video.filter(id=video.id).update(updated_at=datetime.now(UTC))
    assert await last_change() == second
