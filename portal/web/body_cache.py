"""A cache of response bodies that take long to make: each is made once for all who ask.

The playlist of a long film has megabytes and takes a second to sign. Those who ask before it is
made wait for the same one. The cache has a limit in bytes.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from cachetools import TTLCache
from quart import Response, request
from werkzeug.http import generate_etag

from portal.concurrency import SingleFlight

MAX_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class CachedBody:
    """A response body, the same object for everyone, and its ETag."""

    body: bytes
    etag: str

    async def answer(
        self, *, content_type: str, cache_control: str, accept_ranges: bool = False
    ) -> Response:
        """The answer to the current request; 304 if that names the body's ETag."""
        response = Response(self.body, content_type=content_type)
        response.headers["Cache-Control"] = cache_control
        response.set_etag(self.etag)
        # Without a length Quart answers no part of it.
        length = len(self.body) if accept_ranges else None
        return await response.make_conditional(request, accept_ranges, length)


class BodyCache:
    """Bodies by key, kept for `ttl_s`; one for a process and a kind of bodies."""

    def __init__(self, *, ttl_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._kept: TTLCache[str, CachedBody] = TTLCache(
            max_bytes, ttl_s, getsizeof=lambda cached: len(cached.body)
        )
        self._coming: SingleFlight[CachedBody] = SingleFlight()

    @property
    def size_bytes(self) -> int:
        """What is kept at the moment."""
        return int(self._kept.currsize)

    async def get(self, key: str, make: Callable[[], Awaitable[str]]) -> CachedBody:
        """The body with this key; its text by `make`, unless it is there or coming.

        What `make` raises is told to all who wait, and not kept.
        """
        return self._kept.get(key) or await self._coming.get(key, lambda: self._make(key, make))

    async def _make(self, key: str, make: Callable[[], Awaitable[str]]) -> CachedBody:
        made = cached_body(await make())
        # One that is larger than all there is room for is not kept.
        with suppress(ValueError):
            self._kept[key] = made
        return made


def cached_body(content: str | bytes) -> CachedBody:
    """This content, text as UTF-8, as a body."""
    body = content.encode() if isinstance(content, str) else content
    return CachedBody(body, generate_etag(body))
