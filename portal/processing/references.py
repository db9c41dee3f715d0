"""Which folders of a video's output are in use: those that its rows or its master playlist name.

Rows alone don't do: videos of before 0.2 have sound that only their master playlist knows of.
Names here are relative to `hls/<video id>/`, such as `1/720p/`.
"""

import posixpath
from collections.abc import AsyncIterator
from uuid import UUID

from portal.database.models import Attempt, MadeSegment, Rendition, Video
from portal.database.states import RenditionState
from portal.errors import StorageUnavailable
from portal.storage.bucket import Storage
from portal.storage.errors import ObjectMissing
from portal.storage.keys import output_prefix, output_root
from portal.storage.listing import entries_of
from portal.transcoding.packaging.hls import playlist_uris
from portal.transcoding.packaging.master import MASTER_NAME


async def used_folders(video: Video, storage: Storage) -> set[str] | None:
    """The folders of complete renditions; None when a ready video's master playlist is missing."""
    rows = await Rendition.filter(video_id=video.id, state=RenditionState.COMPLETE)
    folders = {f"{row.attempt_number}/{row.name}/" for row in rows}
    if video.published_attempt is None:
        return folders
    try:
        master = await storage.get(output_prefix(video.id, video.published_attempt) + MASTER_NAME)
    except ObjectMissing:
        return None
    named = named_playlists(master.decode(), video.published_attempt)
    return folders | {posixpath.dirname(name) + "/" for name in named}


async def unused_in_attempts(video_id: UUID, storage: Storage) -> AsyncIterator[str]:
    """The prefixes of what was made of a video and is neither in use nor being made.

    Raises `StorageUnavailable` when a ready video's master playlist is missing.
    """
    # In this order: what is begun later lies with attempts that are not among these.
    attempts = await Attempt.filter(video_id=video_id).order_by("number")
    made = await _being_made(video_id)
    video = await Video.get_or_none(id=video_id)
    used = await used_folders(video, storage) if video else None
    if video is None or used is None:
        raise StorageUnavailable
    for attempt in attempts:
        is_open = attempt.outcome is None
        async for prefix in unused_below(
            video, attempt.number, used | made, storage, keeps_files=is_open
        ):
            yield prefix


async def _being_made(video_id: UUID) -> set[str]:
    rows = await Rendition.filter(video_id=video_id, state=RenditionState.PLANNED)
    segments = MadeSegment.filter(video_id=video_id).distinct()
    folders = await segments.values_list("folder", "rendition")
    folders += [(row.attempt_number, row.name) for row in rows]
    return {f"{number}/{name}/" for number, name in folders}


async def unused_below(
    video: Video, number: int, used: set[str], storage: Storage, *, keeps_files: bool = False
) -> AsyncIterator[str]:
    """The prefixes below an attempt's folder that nothing leads to.

    Files that belong to no rendition are the published attempt's, unless all are to be kept.
    """
    prefix, root = output_prefix(video.id, number), output_root(video.id)
    own = {name for name in used if name.startswith(f"{number}/")}
    keeps_files = keeps_files or number == video.published_attempt
    if not keeps_files and not own:
        yield prefix
        return
    # Collected first: lists of some servers lose their place when entries vanish.
    for entry in [entry async for entry in entries_of(prefix, storage)]:
        if isinstance(entry, str):
            if entry.removeprefix(root) not in own:
                yield entry
        elif not keeps_files:
            yield entry.key


def named_playlists(master: str, published_attempt: int) -> set[str]:
    """The playlists that a master playlist names, such as `1/720p/playlist.m3u8`."""
    paths = (posixpath.join(str(published_attempt), uri) for uri in playlist_uris(master))
    return {posixpath.normpath(path) for path in paths}
