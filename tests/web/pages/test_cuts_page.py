"""The page of cuts says why a video can't be cut yet, and opens the editor once it can."""

import pytest
from api_client import Client, app_client
from page_rows import READY, make_row

from portal.config import Config
from portal.database.models import Version, VideoStatus

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
