"""Playlists and storyboards, with signed addresses of their segments and pictures.

Addresses lead to storage and have a signature each. With `PLAYBACK_BASE_URL` set, they are plain
addresses below that.

Playlists of private videos have relative addresses, which lead to the portal. A player requests
each segment with the same credentials as the playlist, and is redirected to a short-lived address
in storage.

Playlists of clips are cut here, and have the same addresses of segments.

Playlists of cut videos also name segments of the whole film, by relative paths. Films that are cut
have no plain addresses: those of their other segments could be guessed.
"""

import posixpath
from collections.abc import Mapping
from math import ceil

from portal.concurrency import SingleFlight
from portal.config import MAX_TTL_S
from portal.errors import NotFound
from portal.http.clips import Clip
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_root
from portal.transcoding.packaging.hls import (
    IFRAME_PLAYLIST_NAME,
    PlaylistError,
    clip_media_playlist,
    parse_media_playlist,
    playlist_uris,
    sign_playlist,
)
from portal.transcoding.planning.storyboard import SPRITE_LINE
from portal.videos.reading import Delivery

# Signed addresses of a private video still work for this time after its audience changes.
PRIVATE_URL_TTL_S = 300
# Players buffer segments themselves. A browser's cache would keep an interrupted segment and resume
# it with a range request. The embedded storage answers those with 200, so the cache would take the
# rest of the segment, or a frame of an I-frame playlist, for the whole segment.
SEGMENT_HEADERS = {"cache-control": "no-store"}
# Gives the segment another address than in a media playlist, for caches that ignore no-store.
FRAME_HEADERS = {"cache-control": "no-store, no-transform"}
SEGMENT_SUFFIXES = (".m4s", ".mp4", ".vtt")
# Playlists whose names are kept in memory; one of a long film takes some 300 KB.
MAX_KEPT_PLAYLISTS = 40


class Playlists:
    """Reader of playlists that fills in addresses; one per process."""

    def __init__(self, storage: Storage, *, base_url: str, url_ttl_s: int) -> None:
        self._storage = storage
        self._base_url = base_url
        self._url_ttl_s = url_ttl_s
        self._signing: SingleFlight[str] = SingleFlight()
        # Keys that a media playlist names, by its key.
        self._named: dict[str, frozenset[str]] = {}

    async def text(self, key: str, clip: Clip | None = None) -> str:
        """Return the text under this key, or the part of a media playlist that is of a clip.

        Raises `NotFound`, as all these methods do.
        """
        try:
            text = (await self._storage.get(key)).decode()
        except ObjectMissing as exc:
            raise NotFound from exc
        if clip is None:
            return text
        return clip_media_playlist(text, start_s=clip.start_s, end_s=clip.end_s)

    async def master(self, key: str, clip: Clip | None, delivery: Delivery, *, base: str) -> str:
        """Return a master playlist with addresses below `base`, the output folder of its video.

        They are below `PLAYBACK_BASE_URL` instead, except for clips, which the portal cuts.
        """
        root = output_root(key.split("/")[1])
        if self._base_url and delivery is Delivery.NETWORK and clip is None:
            base = f"{self._base_url}/{root}"

        def address(uri: str) -> str:
            path = base + _named_key(key, uri).removeprefix(root)
            return clip.address(path) if clip else path

        return sign_playlist(await self.text(key), address)

    async def names(self, playlist: str, key: str) -> bool:
        """Return whether the media playlist under a key, which never changes, names an object."""
        named = self._named.get(playlist)
        if named is None:
            uris = playlist_uris(await self.text(playlist))
            named = frozenset(_named_key(playlist, uri) for uri in uris)
            while len(self._named) >= MAX_KEPT_PLAYLISTS:
                del self._named[next(iter(self._named))]
            self._named[playlist] = named
        return key in named

    async def media(self, key: str, clip: Clip | None, delivery: Delivery) -> str:
        """Return a media playlist with addresses in storage, shared by simultaneous requests.

        Signed addresses outlast the video by `url_ttl_s`: native players read a playlist once.
        """

        async def signed() -> str:
            text = await self.text(key, clip)
            keys = {uri: _named_key(key, uri) for uri in playlist_uris(text)}
            film_s = ceil(parse_media_playlist(text).duration_s)
            is_of_frames = key.endswith(f"/{IFRAME_PLAYLIST_NAME}")
            addresses = await self._addresses(
                set(keys.values()),
                delivery,
                ttl_s=min(self._url_ttl_s + film_s, MAX_TTL_S),
                headers=FRAME_HEADERS if is_of_frames else SEGMENT_HEADERS,
            )
            return sign_playlist(text, lambda uri: addresses[keys[uri]])

        return await self._signing.get(key if clip is None else clip.address(key), signed)

    async def storyboard(self, key: str, delivery: Delivery, *, base: str) -> str:
        """Return a storyboard's index with addresses of its sprites.

        Those of the portal begin with `base`, a path.
        """
        text = await self.text(key)
        if delivery is Delivery.PORTAL:
            return SPRITE_LINE.sub(rf"{base}\g<name>", text)
        folder = key.rpartition("/")[0]
        keys = {f"{folder}/{match['name']}" for match in SPRITE_LINE.finditer(text)}
        addresses = await self._addresses(keys, delivery)
        return SPRITE_LINE.sub(lambda match: addresses[f"{folder}/{match['name']}"], text)

    async def address(self, key: str, delivery: Delivery) -> str:
        """Return the address of an object for a client that may see the video."""
        headers = SEGMENT_HEADERS if key.endswith(SEGMENT_SUFFIXES) else None
        if delivery is not Delivery.PORTAL:
            return (await self._addresses({key}, delivery, headers=headers))[key]
        ttl_s = min(self._url_ttl_s, PRIVATE_URL_TTL_S)
        headers = headers or {"cache-control": f"private, max-age={ttl_s}"}
        return await self._storage.public.presign_get(key, ttl_s=ttl_s, headers=headers)

    async def max_age_s(self, most_s: int, delivery: Delivery) -> int:
        """Return how long addresses may be cached: most of their life is left for a viewing."""
        if not most_s or delivery is Delivery.PORTAL:
            return 0
        if self._base_url and delivery is Delivery.NETWORK:
            return most_s
        return min(most_s, await self._storage.public.address_life_s(self._url_ttl_s) // 4)

    async def _addresses(
        self,
        keys: set[str],
        delivery: Delivery,
        *,
        ttl_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the addresses of objects by key; signed ones live for `url_ttl_s` by default."""
        if self._base_url and delivery is Delivery.NETWORK:
            return {key: f"{self._base_url}/{key}" for key in keys}
        return await self._storage.public.presign_get_many(
            keys, ttl_s=ttl_s or self._url_ttl_s, headers=headers
        )


def _named_key(playlist: str, uri: str) -> str:
    """Return the key of the object that a playlist names, which is below `hls/<video id>/`.

    Raises `PlaylistError` for any other object.
    """
    key = posixpath.normpath(posixpath.join(posixpath.dirname(playlist), uri))
    if not key.startswith(output_root(playlist.split("/")[1])):
        raise PlaylistError("a playlist names a file outside the folder of its video")
    return key
