"""The captions and the sound of a video, as its pages name them."""

import html
import re

import pytest
from api_client import Client
from page_rows import READY, make_row

from portal.database.models import Rendition, Video
from portal.database.states import RenditionState
from portal.transcoding.packaging.master import Kind

pytestmark = pytest.mark.shared_app


async def add(video: Video, name: str, kind: Kind, **values: object) -> None:
    """A complete rendition of a track, unless told otherwise."""
    position = await Rendition.filter(video=video).count()
    row = {"state": RenditionState.COMPLETE, "attempt_number": 1, "average_bandwidth_bps": 128_000}
    await Rendition.create(
        video=video, name=name, kind=kind, position=position, **{**row, **values}
    )


async def words(client: Client, path: str) -> str:
    """What a page says, without its tags."""
    text = str(await (await client.get(path)).get_data(as_text=True))
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


async def test_captions_and_sound_are_named_by_language(client: Client) -> None:
    video = await make_row(**READY)
    english = {"label": "English", "language": "en"}
    await add(video, "audio-1", Kind.AUDIO, **english, is_default=True)
    await add(video, "audio-2", Kind.AUDIO, label="Commentary")
    await add(video, "subtitles-1", Kind.SUBTITLES, **english)
    german = {"label": "Deutsch", "language": "de"}
    await add(video, "subtitles-2", Kind.SUBTITLES, **german, state=RenditionState.PLANNED)
    found = await words(client, f"/videos/{video.id}/facts")
    assert "Sound English · en · default · 128 kbit/s Commentary · 128 kbit/s" in found
    assert "Captions English · en Deutsch · de · Waiting to be made" in found
    for path in ("", "/share"):
        found = await words(client, f"/videos/{video.id}{path}")
        assert "Captions: English Sound: English" in found
        assert "Commentary" not in found


async def test_video_without_captions_and_sound_says_so_to_who_edits_it(client: Client) -> None:
    video = await make_row(**READY)
    await add(video, "360p", Kind.VIDEO)
    found = await words(client, f"/videos/{video.id}/edit")
    assert "Sound None: the video is silent. Captions None in this file." in found
    text = str(await (await client.get(f"/videos/{video.id}")).get_data(as_text=True))
    assert re.search(r'<span id="captions"\s+hidden>', text)


async def test_tracks_that_are_not_known_yet_are_not_spoken_of(client: Client) -> None:
    video = await make_row()
    assert "Captions" not in await words(client, f"/videos/{video.id}/facts")
