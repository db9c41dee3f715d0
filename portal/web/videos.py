"""Videos of addresses, read for callers that may see them. Only this module raises their 404.

Simultaneous requests share the same objects, which views must not change.
"""

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import UUID

from quart import request

from portal.accounts.permissions import Audience
from portal.database.connection import Row
from portal.database.models import Video
from portal.database.work_models import Import
from portal.errors import ImportFailed, Overloaded, VideoNotFound
from portal.videos import imports, reading
from portal.videos.library import LibraryPage, list_videos
from portal.videos.library_queries import Cursor, LibraryQuery
from portal.videos.progress import Progress
from portal.videos.reading import Served
from portal.web.auth import principal, require_visible
from portal.web.composition import web_context
from portal.web.server.context import state_of

Value = TypeVar("Value")

# Limit of a search and its wait for other searches; a search takes milliseconds.
SEARCH_TIMEOUT_S = 5.0


async def read_video(video_id: str) -> Video:
    """Return the video of an address.

    Raises `VideoNotFound` for an unknown or malformed id, and if the caller may not see the video.
    """
    parsed = reading.parse_video_id(video_id)
    video = await web_context().videos.load(parsed) if parsed else None
    return await _visible_video(video, reading.audience_of(video) if video else None, parsed)


async def require_video(video_id: str) -> UUID:
    """Return the id of the video that a change names; raise as `read_video`."""
    visible_id = state_of(request.scope).visible_id
    if visible_id is not None and str(visible_id) == video_id:
        return visible_id
    return (await read_video(video_id)).id


async def read_import(video_id: str) -> Import:
    """Return the import that will create the video of an address. Raises `VideoNotFound`."""
    parsed = reading.parse_video_id(video_id)
    row = await imports.find(parsed) if parsed else None
    return await _visible(row, Audience(owner_id=row.upload.owner_id) if row else None)


async def read_record(video_id: str) -> Row:
    """Return the columns of the video in an address that the API shows; raise as `read_video`."""
    parsed = reading.parse_video_id(video_id)
    row = await web_context().records.load(parsed) if parsed else None
    return await _visible_video(row, reading.audience_in(row) if row else None, parsed)


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
    return await _visible(served, served.audience if served else None)


async def _visible_video(
    value: Value | None, audience: Audience | None, video_id: UUID | None
) -> Value:
    """Return the value as `_visible`. For an import, its owner and admins get its state instead."""
    try:
        return await _visible(value, audience)
    except VideoNotFound:
        row = await imports.find(video_id) if video_id else None
        if row is None or not (await principal()).may_see(Audience(owner_id=row.upload.owner_id)):
            raise
        if row.error_code is None:
            raise VideoNotFound("This video is still being imported. Try again later.") from None
        failure = {"code": row.error_code, "message": row.error_message}
        raise ImportFailed(f"The import failed. {row.error_message}", failure=failure) from None


async def _visible(value: Value | None, audience: Audience | None) -> Value:
    await require_visible(audience)
    if value is None:
        raise VideoNotFound
    return value
