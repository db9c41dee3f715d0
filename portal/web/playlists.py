"""Playlists and storyboards with the addresses of what they name, signed anew for who asks.

Segments are addressed in storage, with a signature each; with `PLAYBACK_BASE_URL` set, what is
addressed here is named below it, plainly.

Of private videos nothing is named but below the portal itself, by addresses that are relative: a
player asks for each segment with what it asked for the playlist with, and is led to storage by an
address that is soon worth nothing.
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

# Who may see a private video may change at any time; what was signed before lives on for so long.
PRIVATE_URL_TTL_S = 300
# Players keep what they may need again. A browser's cache keeps a segment whose transfer broke off,
# and resumes it by a range. The embedded storage answers ranges with 200, so the rest, or a frame
# of an I-frame playlist, would from then on be taken for the whole segment.
SEGMENT_HEADERS = {"cache-control": "no-store"}
# Another address than the same segment has in a media playlist, for caches that store all the same.
FRAME_HEADERS = {"cache-control": "no-store, no-transform"}
SEGMENT_SUFFIXES = (".m4s", ".mp4", ".vtt")


class Playlists:
    """Reads text from storage and fills addresses in; one for a process."""

    def __init__(self, storage: Storage, *, base_url: str, url_ttl_s: int) -> None:
        self._storage = storage
        self._base_url = base_url
        self._url_ttl_s = url_ttl_s
        self._signing: SingleFlight[str] = SingleFlight()

    async def text(self, key: str) -> str:
        """What is stored under this key; `NotFound` if nothing is, as for all of these."""
        try:
            return (await self._storage.get(key)).decode()
        except ObjectMissing as exc:
            raise NotFound from exc

    async def media(self, key: str) -> str:
        """A media playlist whose segments have signed addresses; those who ask at once share one.

        They outlast the film by `url_ttl_s`: native players read a playlist once.
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
        """A storyboard's index whose sprites have addresses; or, below the portal's own path
        `root`, names.
        """
        text, folder = await self.text(key), key.rpartition("/")[0]
        if root is not None:
            return SPRITE_LINE.sub(rf"{root}/{folder}/\g<name>", text)
        keys = {f"{folder}/{match['name']}" for match in SPRITE_LINE.finditer(text)}
        addresses = await self._addresses(keys)
        return SPRITE_LINE.sub(lambda match: addresses[f"{folder}/{match['name']}"], text)

    async def address(self, key: str, *, is_private: bool) -> str:
        """Return where a client that may see a video gets an object of it."""
        headers = SEGMENT_HEADERS if key.endswith(SEGMENT_SUFFIXES) else None
        if not is_private:
            return (await self._addresses({key}, headers=headers))[key]
        ttl_s = min(self._url_ttl_s, PRIVATE_URL_TTL_S)
        headers = headers or {"cache-control": f"private, max-age={ttl_s}"}
        return await self._storage.public.presign_get(key, ttl_s=ttl_s, headers=headers)

    async def max_age_s(self, most_s: int) -> int:
        """How long others may keep addresses made here: most of their life is for a viewing."""
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
