"""Videos of addresses, read for callers that may see them. Only this module raises their 404.

Simultaneous requests share the same objects, which views must not change.
"""

import asyncio
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import UUID

from quart import request

from portal.accounts.permissions import Audience, audience_in, audience_of
from portal.database.connection import Row
from portal.database.models import Video
from portal.errors import Overloaded, Unavailable, VideoNotFound
from portal.http.auth import may_watch, principal, require_visible
from portal.http.composition import web_context
from portal.http.server.context import state_of
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix
from portal.transcoding.planning.storyboard import STORYBOARD_NAME, Tile, spread_tiles
from portal.videos import reading
from portal.videos.feature import Pending
from portal.videos.library import LibraryPage, list_videos
from portal.videos.library_queries import Cursor, LibraryQuery
from portal.videos.progress import Progress
from portal.videos.reading import Served

Value = TypeVar("Value")

# Limit of a search and its wait for other searches; a search takes milliseconds.
SEARCH_TIMEOUT_S = 5.0


async def read_video(video_id: str, *, of_page: bool = False) -> Video:
    """Return the video of an address.

    With `of_page` it is read for its page, which more people may see than its film. Raises
    `VideoNotFound` for an unknown or malformed id, and if the caller may not see the video.
    """
    parsed = reading.parse_video_id(video_id)
    video = await web_context().videos.load(parsed) if parsed else None
    return await visible(video, audience_of(video) if video else None, of_page=of_page)


async def is_page_alone(video: Video) -> bool:
    """Return whether the caller sees the page of a video without its film.

    Raises `PlaybackTokenRefused` as `may_watch` does.
    """
    return video.has_public_page and not await may_watch(video.id, audience_of(video))


async def require_video(video_id: str) -> UUID:
    """Return the id of the video that a change names; raise as `read_video`."""
    visible_id = state_of(request.scope).visible_id
    if visible_id is not None and str(visible_id) == video_id:
        return visible_id
    return (await read_video(video_id)).id


async def read_pending(video_id: str) -> Pending:
    """Return the work that will create the video of an address. Raises `VideoNotFound`."""
    parsed = reading.parse_video_id(video_id)
    pending = parsed and await web_context().find_pending(parsed, await principal())
    if not pending:
        raise VideoNotFound
    return pending


async def read_record(video_id: str) -> Row:
    """Return the columns of the video in an address that the API shows; raise as `read_video`."""
    parsed = reading.parse_video_id(video_id)
    row = await web_context().records.load(parsed) if parsed else None
    return await visible(row, audience_in(row) if row else None)


async def find_videos(
    query: LibraryQuery, *, limit: int, after: Cursor | None = None, before: Cursor | None = None
) -> LibraryPage:
    """Return a page of the library. Raises `Overloaded` when searches take too long.

    Words without results are replaced by the closest words with results.
    """
    # Only searches for words wait for each other.
    slot = web_context().searches if query.words else nullcontext()
    find = partial(list_videos, limit=limit, after=after, before=before)
    try:
        async with asyncio.timeout(SEARCH_TIMEOUT_S if query.words else None), slot:
            page = await find(query)
            if page.total or not query.words:
                return page
            for text in await web_context().vocabulary.guesses(query.words):
                guessed = await find(replace(query, text=text))
                if guessed.total:
                    return replace(guessed, text=text)
            return page
    except TimeoutError:
        raise Overloaded from None


async def read_progress(video_id: UUID) -> Progress:
    """Return the progress of a video's transcoding. Raises `VideoNotFound` once it is deleted."""
    progress = await web_context().progress.load(video_id)
    if progress is None:
        raise VideoNotFound
    return progress


async def read_served(video_id: UUID, attempt: int, rendition: str) -> Served:
    """Return the permission to load an attempt's output of a rendition.

    The rendition is empty for files outside of its folders.

    Raises `VideoNotFound` if the output is not served, or not to the caller.
    """
    served = await reading.fetch_served(video_id, attempt, rendition)
    return await visible(served, served.audience if served else None)


async def visible(
    value: Value | None, audience: Audience | None, *, of_page: bool = False
) -> Value:
    """Return a value about a video if the caller is in its audience.

    `of_page` is that of `require_visible`. Raises `VideoNotFound`.
    """
    await require_visible(audience, of_page=of_page)
    if value is None:
        raise VideoNotFound
    return value


async def spread_frames(video: Video, count: int) -> list[Tile]:
    """Return up to `count` frames spread over the video; none until there is a storyboard."""
    if video.published_attempt is None or not video.has_storyboard:
        return []
    key = output_prefix(video.id, video.published_attempt) + STORYBOARD_NAME
    # Pages work without the frames while storage is unreachable.
    with suppress(Unavailable, ObjectMissing):
        text = (await web_context().storage.get(key)).decode()
        return spread_tiles(text, count)
    return []
