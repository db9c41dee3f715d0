"""Playlists and storyboards, with signed addresses of their segments and pictures.

Addresses lead to storage and have a signature each. With `PLAYBACK_BASE_URL` set, they are plain
addresses below that.

Playlists of private videos have relative addresses, which lead to the portal. A player requests
each segment with the same credentials as the playlist, and is redirected to a short-lived address
in storage.
"""

from collections.abc import Mapping
from math import ceil

from portal.concurrency import SingleFlight
from portal.config import MAX_TTL_S
from portal.errors import NotFound
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.transcoding.packaging.hls import (
    IFRAME_PLAYLIST_NAME,
    parse_media_playlist,
    playlist_uris,
    sign_playlist,
)
from portal.transcoding.planning.storyboard import SPRITE_LINE

# Signed addresses of a private video still work for this time after its audience changes.
PRIVATE_URL_TTL_S = 300
# Players buffer segments themselves. A browser's cache would keep an interrupted segment and resume
# it with a range request. The embedded storage answers those with 200, so the cache would take the
# rest of the segment, or a frame of an I-frame playlist, for the whole segment.
SEGMENT_HEADERS = {"cache-control": "no-store"}
# Gives the segment another address than in a media playlist, for caches that ignore no-store.
FRAME_HEADERS = {"cache-control": "no-store, no-transform"}
SEGMENT_SUFFIXES = (".m4s", ".mp4", ".vtt")


class Playlists:
    """Reader of playlists that fills in addresses; one per process."""

    def __init__(self, storage: Storage, *, base_url: str, url_ttl_s: int) -> None:
        self._storage = storage
        self._base_url = base_url
        self._url_ttl_s = url_ttl_s
        self._signing: SingleFlight[str] = SingleFlight()

    async def text(self, key: str) -> str:
        """Return the text under this key. Raises `NotFound`, as all these methods do."""
        try:
            return (await self._storage.get(key)).decode()
        except ObjectMissing as exc:
            raise NotFound from exc

    async def media(self, key: str) -> str:
        """Return a media playlist with signed addresses, shared by simultaneous requests.

        The addresses outlast the video by `url_ttl_s`: native players read a playlist once.
        """

        async def signed() -> str:
            text = await self.text(key)
            folder = key.rpartition("/")[0]
            keys = {f"{folder}/{uri}" for uri in playlist_uris(text)}
            film_s = ceil(parse_media_playlist(text).duration_s)
            ttl_s = min(self._url_ttl_s + film_s, MAX_TTL_S)
            is_of_frames = key.endswith(f"/{IFRAME_PLAYLIST_NAME}")
            addresses = await self._storage.public.presign_get_many(
                keys, ttl_s=ttl_s, headers=FRAME_HEADERS if is_of_frames else SEGMENT_HEADERS
            )
            return sign_playlist(text, lambda uri: addresses[f"{folder}/{uri}"])

        return await self._signing.get(key, signed)

    async def storyboard(self, key: str, *, root: str | None) -> str:
        """Return a storyboard's index with addresses of its sprites.

        With `root`, a path of the portal, the addresses are below that path.
        """
        text = await self.text(key)
        folder = key.rpartition("/")[0]
        if root is not None:
            return SPRITE_LINE.sub(rf"{root}/{folder}/\g<name>", text)
        keys = {f"{folder}/{match['name']}" for match in SPRITE_LINE.finditer(text)}
        addresses = await self._addresses(keys)
        return SPRITE_LINE.sub(lambda match: addresses[f"{folder}/{match['name']}"], text)

    async def address(self, key: str, *, is_private: bool) -> str:
        """Return the address of an object for a client that may see the video."""
        headers = SEGMENT_HEADERS if key.endswith(SEGMENT_SUFFIXES) else None
        if not is_private:
            return (await self._addresses({key}, headers=headers))[key]
        ttl_s = min(self._url_ttl_s, PRIVATE_URL_TTL_S)
        headers = headers or {"cache-control": f"private, max-age={ttl_s}"}
        return await self._storage.public.presign_get(key, ttl_s=ttl_s, headers=headers)

    async def max_age_s(self, most_s: int) -> int:
        """Return how long addresses may be cached: most of their life is left for a viewing."""
        if self._base_url:
            return most_s
        return min(most_s, await self._storage.public.address_life_s(self._url_ttl_s) // 4)

    async def _addresses(
        self, keys: set[str], *, headers: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        if self._base_url:
            return {key: f"{self._base_url}/{key}" for key in keys}
        return await self._storage.public.presign_get_many(
            keys, ttl_s=self._url_ttl_s, headers=headers
        )
