"""Playlists with signed addresses, as they are sent: made once for all who watch.

A long film's has megabytes, and a second's signing in it. Those who ask before it is made wait
for the same one, and what is kept has a limit in bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from cachetools import TTLCache
from werkzeug.http import generate_etag

MAX_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class SentPlaylist:
    """The body of an answer, the same object for everyone, and its ETag."""

    body: bytes
    etag: str


class SignedPlaylists:
    """One for a process; made in `resources.py`."""

    def __init__(self, *, ttl_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._kept: TTLCache[str, SentPlaylist] = TTLCache(
            max_bytes, ttl_s, getsizeof=lambda playlist: len(playlist.body)
        )
        self._coming: dict[str, asyncio.Task[SentPlaylist]] = {}

    @property
    def size_bytes(self) -> int:
        """What is kept at the moment."""
        return int(self._kept.currsize)

    async def get(self, key: str, make: Callable[[], Awaitable[str]]) -> SentPlaylist:
        """The playlist with this storage key; its text by `make`, unless it is there or coming.

        What `make` raises is told to all who wait, and not kept.
        """
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        if key not in self._coming:
            self._coming[key] = asyncio.create_task(self._make(key, make))
        # One that goes away must not take it from the others.
        return await asyncio.shield(self._coming[key])

    async def _make(self, key: str, make: Callable[[], Awaitable[str]]) -> SentPlaylist:
        try:
            playlist = as_sent(await make())
            # One that is larger than all there is room for is not kept.
            with suppress(ValueError):
                self._kept[key] = playlist
            return playlist
        finally:
            del self._coming[key]


def as_sent(text: str) -> SentPlaylist:
    """A playlist's text as an answer."""
    body = text.encode()
    return SentPlaylist(body, generate_etag(body))
