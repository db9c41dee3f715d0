"""Playback where a content network serves the bucket."""

import pytest
from api_client import Client
from playable_videos import Cast, about_videos, make_ready
from quart import Quart
from signed_in import text_of

from portal.http.composition import WebContext
from portal.storage.presigning import Presigner
from portal.transcoding.packaging.hls import playlist_uris

NETWORK = "https://cdn.example/v"

pytestmark = pytest.mark.shared_app(playback_base_url=NETWORK)


async def test_cdn_address_replaces_the_portals_own(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await make_ready(resources, audience="public")
    # Nothing is signed, so no credentials are needed.
    monkeypatch.delattr(Presigner, "_credentials")
    read = await (await client.get(f"/api/videos/{video.id}")).get_json()
    poster = await client.get(f"/videos/{video.id}/poster.jpg")
    pictures = await text_of(await client.get(f"/videos/{video.id}/storyboard.vtt"))
    folder = f"{NETWORK}/hls/{video.id}/1"
    assert read["playbackUrl"] == f"{resources.config.public_url}/hls/{video.id}/master.m3u8"
    for name in ("master.m3u8", "1/master.m3u8"):
        master = await text_of(await client.get(f"/hls/{video.id}/{name}"))
        assert playlist_uris(master) == [f"{folder}/low/playlist.m3u8"]
    assert (poster.status_code, poster.headers["Location"]) == (302, f"{folder}/poster.jpg")
    assert f"\n{folder}/storyboard-000.jpg#xywh=0,0,192,108\n" in pictures


async def test_nothing_private_is_addressed_at_the_network(app: Quart, cast: Cast) -> None:
    sender = cast.senders["its editor"][0]
    for audience, is_private in (("private", True), ("for members", True), ("public", False)):
        video = await cast.make_ready(audience)
        paths = [route.path(str(video.id)) for route in about_videos(app) if route.method == "GET"]
        paths += [f"/hls/{video.id}/1/{name}" for name in ("low/00000.m4s", "storyboard-000.jpg")]
        answers = {path: await sender.get(path) for path in (*paths, "/")}
        named = [
            path
            for path, answer in answers.items()
            if f"{NETWORK}/" in await text_of(answer) + answer.headers.get("Location", "")
        ]
        assert (len(named) == 0) is is_private, named


async def test_playlists_of_a_clip_come_from_the_portal_and_segments_from_the_network(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    names = {
        "master.m3u8?start=1": ["1/low/playlist.m3u8?start=1&end=3725.4"],
        "1/master.m3u8?start=1": ["../1/low/playlist.m3u8?start=1&end=3725.4"],
        "1/low/playlist.m3u8?start=1&end=2": [
            f"{NETWORK}/hls/{video.id}/1/low/{name}" for name in ("00000.m4s", "init.mp4")
        ],
    }
    for path, uris in names.items():
        text = await text_of(await client.get(f"/hls/{video.id}/{path}"))
        assert playlist_uris(text) == uris
