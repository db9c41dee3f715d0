"""The page of cuts says why a video can't be cut yet, and opens the editor once it can."""

import pytest
from api_client import Client, app_client
from page_rows import READY, cut_video, make_row

from portal.config import Config
from portal.database.models import Version, VideoStatus
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.films.captions import CaptionText
from portal.transcoding.packaging.webvtt import Cue

pytestmark = pytest.mark.shared_app


async def test_editor_opens_once_the_film_is_complete(client: Client) -> None:
    video = await make_row(**READY, storyboard_job_id=7)
    fragment = f"/videos/{video.id}/cuts/editor"
    page = await (await client.get(f"/videos/{video.id}/cuts")).get_data(as_text=True)
    assert "be cut yet" in page
    assert f'hx-get="{fragment}"' in page
    assert "data-cuts" not in page
    await Version.filter(id=video.version_id).update(storyboard_job_id=None)
    editor = await (await client.get(fragment)).get_data(as_text=True)
    assert "data-cuts" in editor
    assert "hx-get" not in editor.partition("cuts-state")[0]
    assert "The new video will be public, like this one" in editor


async def test_sentences_after_the_end_of_the_film_are_not_offered(client: Client) -> None:
    video = await make_row(**{**READY, "duration_s": 60.0})
    cues = [Cue(start_s=at_s, end_s=at_s + 2, text=f"At {at_s}.") for at_s in (59, 60, 90)]
    change = CaptionChange(content=CaptionText.of(cues, film_s=60.0))
    await captions.put(video.id, "en", change)
    for keep in (None, [[50.0, 60.0]]):
        await cut_video(video, keep)
        page = await (await client.get(f"/videos/{video.id}/cuts")).get_data(as_text=True)
        assert page.count("data-sentence") == 1
        assert "At 59." in page


async def test_failed_video_is_not_polled(client: Client) -> None:
    video = await make_row(status=VideoStatus.FAILED)
    editor = await (await client.get(f"/videos/{video.id}/cuts/editor")).get_data(as_text=True)
    assert "replace its file" in editor
    assert "hx-get" not in editor


@pytest.mark.parametrize("network", ["", "https://cdn.example.org"])
async def test_editor_warns_of_a_cdn(network: str, config: Config) -> None:
    async with app_client(config, playback_base_url=network) as client:
        video = await make_row(**READY)
        page = await (await client.get(f"/videos/{video.id}/cuts")).get_data(as_text=True)
    assert ("through a CDN" in page) == bool(network)
