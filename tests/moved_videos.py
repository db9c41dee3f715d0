"""What tests of moved videos share: addresses given out, what plays, storage that breaks."""

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from api_client import Client
from page_rows import make_attempt
from private_videos import MEDIA, SEGMENT, make_ready

from portal.database.models import Rendition, Video
from portal.database.move_models import Move
from portal.database.states import Outcome, Visibility
from portal.processing.moving import move_output
from portal.processing.references import named_playlists
from portal.processing.removal import Unsettled
from portal.processing.tools import Tools
from portal.storage.bucket import Storage
from portal.storage.keys import output_prefix, output_root
from portal.transcoding.packaging.hls import playlist_uris
from portal.transcoding.packaging.master import MASTER_NAME
from portal.transcoding.probing.probe import SourceLimits
from portal.videos.visibility import VideoAccess, save_access
from portal.web.composition import WebContext

PUBLIC, PRIVATE = (VideoAccess(visibility=it) for it in (Visibility.PUBLIC, Visibility.PRIVATE))


MEASURES = {
    "codecs": "avc1.64001f",
    "bandwidth_bps": 2000,
    "average_bandwidth_bps": 1000,
    "iframe_bandwidth_bps": 500,
    "frame_rate": "25",
}


async def finished_video(resources: WebContext) -> Video:
    """A public one that was never uploaded: small files, of one rendition."""
    video = await make_ready(resources, None, "public")
    await put_rendition(video, 1, "low", resources)
    await make_attempt(video, 1, outcome=Outcome.PUBLISHED)
    await Rendition.filter(video_id=video.id).update(**MEASURES)
    return video


async def put_rendition(video: Video, number: int, name: str, resources: WebContext) -> None:
    """The files of a rendition, made by the attempt of this number."""
    folder = f"{output_prefix(video.id, number)}{name}/"
    files = {"playlist.m3u8": MEDIA.encode(), "iframes.m3u8": b"#EXTM3U\n"}
    for file, data in {**files, "init.mp4": SEGMENT, "00000.m4s": SEGMENT}.items():
        await resources.storage.put(folder + file, data, content_type="text/plain")


async def set_access(video: Video, access: VideoAccess, resources: WebContext) -> None:
    """As an editor does."""
    await save_access(video.id, access, version=None, queue=resources.queue)


def tools(resources: WebContext, **changes: Any) -> Tools:
    """Those of a worker, as far as moving takes them."""
    limits = SourceLimits(max_pixels=1, max_duration_s=1, max_size_bytes=1, max_transcode_s=1)
    values = {"storage": resources.storage, "queue": resources.queue, **changes}
    return Tools(worker="test", limits=limits, work_dir=resources.config.work_dir, **values)


async def move(video: Video, resources: WebContext, *, rounds: int = 9, **changes: Any) -> None:
    """Run the job as often as it asks to be."""
    for _ in range(rounds):
        try:
            await move_output(video.id, tools(resources, **changes))
        except Unsettled:
            continue
        return
    raise AssertionError("the move does not end")


async def given_out(client: Client, video: Video) -> list[str]:
    """Every address in storage that players are led to."""
    master = await text_at(client, f"/hls/{video.id}/{video.published_attempt}/{MASTER_NAME}")
    found: list[str] = []
    for playlist in sorted(set(playlist_uris(master))):
        path = posixpath.normpath(f"/hls/{video.id}/{video.published_attempt}/{playlist}")
        uris = playlist_uris(await text_at(client, path))
        found += [urljoin(path, uri) for uri in uris]
    sprites = [
        it
        for it in (await text_at(client, f"/videos/{video.id}/storyboard.vtt")).split()
        if "/storyboard-" in it
    ]
    found += [it.partition("#")[0] for it in sprites]
    found += [f"/videos/{video.id}/poster.jpg"]
    return [await led_to(client, address) for address in dict.fromkeys(found)]


async def text_at(client: Client, path: str) -> str:
    """What players find there."""
    response = await client.get(path)
    while response.status_code == 302:
        response = await client.get(urljoin(path, response.headers["Location"]))
    assert response.status_code == 200, path
    return str(await response.get_data(as_text=True))


async def led_to(client: Client, address: str) -> str:
    """Where in storage this leads."""
    while not urlsplit(address).netloc:
        response = await client.get(address)
        assert response.status_code == 302, address
        address = response.headers["Location"]
    return address


async def statuses(addresses: list[str]) -> set[int]:
    """What storage answers."""
    found = set()
    async with aiohttp.ClientSession() as session:
        for address in addresses:
            async with session.get(address) as answer:
                found.add(answer.status)
    return found


async def plays(video: Video, storage: Storage) -> list[str]:
    """The renditions that players find, after a look at every file of theirs."""
    found = await Video.get(id=video.id)
    number, root = found.published_attempt or 0, output_root(video.id)
    text = (await storage.get(output_prefix(video.id, number) + MASTER_NAME)).decode()
    names = named_playlists(text, number)
    for name in names:
        playlist = (await storage.get(root + name)).decode()
        for uri in playlist_uris(playlist):
            await storage.head(root + posixpath.join(posixpath.dirname(name), uri))
    rows = await Rendition.filter(video_id=video.id, state="complete")
    assert names >= {f"{row.attempt_number}/{row.name}/playlist.m3u8" for row in rows}
    return sorted({name.split("/")[1] for name in names})


async def is_moving(video: Video) -> bool:
    """Whether something is left to do."""
    return await Move.exists(video_id=video.id)


class BreakingStorage:
    """Storage where, after so many calls that change it, the next raises this."""

    def __init__(self, storage: Storage, error: BaseException, *, after: int) -> None:
        self._storage, self._error, self.left = storage, error, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._storage, name)
        return self._counted(found) if name in ("copy", "put", "delete_many") else found

    def _counted(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*positional: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise self._error
            return await call(*positional, **named)

        return counted


class PausedStorage:
    """Storage that keeps the first call of this name, with this in its key, until it may go on."""

    def __init__(self, storage: Storage, name: str, part: str = "") -> None:
        self._storage, self._name, self._part = storage, name, part
        self.is_asked, self.may_go_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._storage, name)
        if name != self._name or self.is_asked.is_set():
            return found

        async def paused(*positional: Any, **named: Any) -> Any:
            if not self.is_asked.is_set() and any(self._part in str(it) for it in positional):
                self.is_asked.set()
                await self.may_go_on.wait()
            return await found(*positional, **named)

        return paused
