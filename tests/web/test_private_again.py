"""A video that was public and becomes private, over HTTP, with a worker that moves its files."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import pytest
from api_client import rows
from closed_portal import RATE, SECONDS, ClosedPortal, portal_with_film
from command_line import run_program
from running_portal import until

from portal.transcoding.encoding.ffmpeg import ffmpeg_path
from portal.transcoding.packaging.hls import playlist_uris

# Of the source.
MOVED = "SELECT NOT EXISTS (SELECT FROM moves)"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def closed(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedPortal]:
    async with portal_with_film(services, tmp_path_factory.mktemp("again")) as closed:
        yield closed


async def make(closed: ClosedPortal, visibility: str) -> None:
    """Have others see the video, or not, and its files be where they belong."""
    body: dict[str, Any] = {"visibility": visibility, "signedInOnly": False, "embedOrigins": []}
    await closed.ask("PUT", "/access", json=body)

    async def is_moved() -> bool:
        return await rows(closed.portal.environ["DATABASE_URL"], MOVED) == [(True,)]

    await until(is_moved, timeout_s=30)


async def text_of(player: aiohttp.ClientSession, address: str) -> str:
    async with player.get(address) as answer:
        assert answer.status == 200, address
        return await answer.text()


async def led_to(closed: ClosedPortal, player: aiohttp.ClientSession) -> list[str]:
    """The addresses in storage that players of the public video are given."""
    master = (await closed.ask("GET"))["playbackUrl"]
    found = []
    for uri in set(playlist_uris(await text_of(player, master))):
        found += playlist_uris(await text_of(player, urljoin(master, uri)))
    async with player.get(
        f"{closed.portal.base_url}/videos/{closed.video_id}/poster.jpg", allow_redirects=False
    ) as answer:
        found.append(answer.headers["Location"])
    index = (await closed.ask("GET", "/transcode"))["storyboardUrl"]
    lines = (await text_of(player, index)).splitlines()
    found += {it.partition("#")[0] for it in lines if it.startswith("http")}
    return found


async def statuses(player: aiohttp.ClientSession, addresses: list[str]) -> set[int]:
    found = set()
    for address in addresses:
        async with player.get(address) as answer:
            found.add(answer.status)
    return found


async def pictures(address: str) -> list[str]:
    """The pictures of the best rendition, as ffmpeg decodes them, by their digests."""
    source = (ffmpeg_path(), "-v", "error", "-nostdin", "-i", address, "-map", "0:v:0")
    code, said, complaints = await run_program(*source, "-f", "framemd5", "-")
    assert code == 0, complaints
    found = [line for line in said.splitlines() if not line.startswith("#")]
    assert len(found) == SECONDS * RATE
    return found


async def test_what_was_given_out_is_worth_nothing_and_links_go_on(closed: ClosedPortal) -> None:
    async with aiohttp.ClientSession() as player:
        await make(closed, "public")
        link = await closed.make_link()
        public_url = (await closed.ask("GET"))["playbackUrl"]
        before = await led_to(closed, player)
        assert await statuses(player, before) == {200}
        film = await pictures(public_url)

        await make(closed, "private")
        assert await statuses(player, before) <= {403, 404}
        # Who may not watch is told nothing of where it is.
        assert await statuses(player, [public_url]) == {404}
        record = await closed.ask("GET")
        assert (
            urlsplit(record["playbackUrl"]).path.rpartition("/hls/")[2]
            != (urlsplit(public_url).path.rpartition("/hls/")[2])
        )
        for address in (record["playbackUrl"], link["playbackUrl"]):
            assert await pictures(address) == film
        async with player.get(link["playbackUrl"], allow_redirects=False) as answer:
            assert answer.status == 302
            token = link["playbackUrl"].partition("/hls/")[0]
            assert urljoin(str(answer.url), answer.headers["Location"]).startswith(f"{token}/hls/")
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert answer.headers["Cache-Control"] == "private, no-cache"

        await make(closed, "public")
        assert await pictures((await closed.ask("GET"))["playbackUrl"]) == film
        # The first addresses lead there still, for players that remember them.
        assert await pictures(public_url) == film
        again = await led_to(closed, player)
        assert len(again) == len(before)
        assert await statuses(player, again) == {200}


async def test_player_in_the_middle_goes_on(closed: ClosedPortal) -> None:
    """What a playlist names that was read before is found by the address that it had then."""
    await make(closed, "public")
    await make(closed, "private")
    link = (await closed.make_link())["playbackUrl"]
    async with aiohttp.ClientSession() as player:
        playlists = [urljoin(link, it) for it in playlist_uris(await text_of(player, link))]
        segments = [
            urljoin(playlist, it)
            for playlist in playlists
            for it in playlist_uris(await text_of(player, playlist))
        ]
        await make(closed, "public")
        await make(closed, "private")
        assert await statuses(player, playlists + segments) == {200}
        async with player.get(segments[-1]) as answer:
            assert answer.headers["Cache-Control"].startswith("private")
            assert [it.status for it in answer.history] == [302, 302]
        # What never was is nowhere.
        number = link.partition("/hls/")[2].split("/")[1]
        wrong = [link.replace(number, str(int(number) - 1)).replace("master", "other")]
        wrong += [link.replace(number, str(int(number) * 2))]
        wrong += [link.replace(f"/{number}/master", f"/{number}/9p/playlist")]
        assert await statuses(player, wrong) == {404}
