"""Addresses of private videos: they end soon, and lead to the portal itself, whatever its CDN."""

import asyncio
from time import monotonic

import aiohttp
import pytest
from private_videos import SEGMENT, Cast, about_videos, make_ready
from quart import Quart
from running_portal import until
from signed_in import Sender, text_of
from yarl import URL

from portal.storage.keys import output_prefix
from portal.web import playlists
from portal.web.composition import WebContext

CDN = "https://cdn.example"
LIFE_S = 5
# What storage servers say of a signature that is none any more, or missing.
REFUSED = (400, 403)
pytestmark = pytest.mark.shared_app(downloads=True, playback_base_url=CDN)


async def naming_cdn(app: Quart, sender: Sender, video_id: str) -> set[str]:
    """The routes of a video whose answers name an address below the CDN's."""
    found = set()
    addresses = [(it.rule, it.path(video_id)) for it in about_videos(app) if it.method == "GET"]
    addresses += [
        ("playlist", f"/hls/{video_id}/1/low/playlist.m3u8"),
        ("segment", f"/hls/{video_id}/1/low/00000.m4s"),
        ("sprite", f"/hls/{video_id}/1/storyboard-000.jpg"),
        ("library", "/"),
        ("oembed", f"/oembed?url=http://localhost:8000/videos/{video_id}"),
    ]
    for name, path in addresses:
        answer = await sender.get(path)
        if f"{CDN}/" in await text_of(answer) + answer.headers.get("Location", ""):
            found.add(name)
    return found


async def test_nothing_private_is_addressed_at_the_cdn(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    sender = cast.senders["its editor"][0]
    for audience in ("private", "for members"):
        video = await make_ready(resources, cast.editor, audience)
        assert await naming_cdn(app, sender, str(video.id)) == set(), audience


async def test_what_is_public_is_addressed_at_the_cdn(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    video = await make_ready(resources, cast.editor, "public")
    found = await naming_cdn(app, cast.senders["nobody"][0], str(video.id))
    assert {"/api/videos/<video:id>", "/videos/<video_id>", "segment", "sprite"} <= found
    assert any(it.endswith("/poster.jpg") for it in found)


async def status_of(address: str) -> tuple[int, bytes]:
    """What storage answers."""
    async with aiohttp.ClientSession() as http, http.get(URL(address, encoded=True)) as answer:
        return answer.status, await answer.read()


async def test_address_in_storage_ends_with_its_life(
    app: Quart, resources: WebContext, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment, a sprite and a poster; what is signed for another file does not open them."""
    video, sender = await make_ready(resources, cast.editor), cast.senders["its editor"][0]
    folder = f"/{output_prefix(video.id, 1)}"
    paths = [f"{folder}low/00000.m4s", f"{folder}storyboard-000.jpg"]
    paths.append(f"/videos/{video.id}/poster.jpg")

    async def addresses() -> list[str]:
        return [(await sender.get(path)).headers["Location"] for path in paths]

    given = await addresses()
    assert [await status_of(it) for it in given] == [(200, SEGMENT)] * 3
    other = await make_ready(resources, cast.editor)
    assert (await status_of(given[0].replace(str(video.id), str(other.id))))[0] in REFUSED
    assert (await status_of(given[0].partition("?")[0]))[0] in REFUSED
    monkeypatch.setattr(playlists, "PRIVATE_URL_TTL_S", LIFE_S)
    given, signed_at = await addresses(), monotonic()
    await until(lambda: monotonic() > signed_at + LIFE_S + 1, timeout_s=LIFE_S + 5)
    refused = await asyncio.gather(*(status_of(it) for it in given))
    assert all(status in REFUSED for status, _ in refused)
    assert SEGMENT not in b"".join(body for _, body in refused)
