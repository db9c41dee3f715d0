"""Which folders of a video's output are in use: those that its rows or its master playlist name.

Rows alone don't do: videos of before 0.2 have sound that only their master playlist knows of.
Names here are relative to `hls/<video id>/`, such as `1/720p/`.
"""

import posixpath
from collections.abc import AsyncIterator

from portal.database.models import Rendition, Video
from portal.database.states import RenditionState
from portal.storage.bucket import Storage, entries_of
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix, output_root
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


async def unused_below(
    video: Video, number: int, used: set[str], storage: Storage
) -> AsyncIterator[str]:
    """The prefixes below an attempt's folder that nothing leads to.

    Files that belong to no rendition are the published attempt's.
    """
    prefix, root = output_prefix(video.id, number), output_root(video.id)
    own = {name for name in used if name.startswith(f"{number}/")}
    keeps_files = number == video.published_attempt
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
