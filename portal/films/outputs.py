"""Files of a version in storage: the output of a pass, the master playlist, and files in use.

A pass writes into the folder of its attempt, or of the attempt that began it.
"""

import posixpath
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from portal.database.connection import retry_outage
from portal.database.models import Rendition, RenditionState, Version
from portal.films import attempts, renditions
from portal.storage.bucket import MASTER_MAX_AGE_S, Storage, entries_of, objects_below
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.encoding.command import SEGMENT_SUFFIX
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import MASTER_NAME, master_playlist

MASTER_TYPE = "application/vnd.apple.mpegurl"
# Limit on writing a master playlist again because it became outdated while it was written.
MASTER_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class StorageSink:
    """Sink of a pass that writes into the folder of the attempt with the number `folder`.

    `folders` has other attempts' numbers for renditions that those began. Only the holder of an
    `attempt` may write playlists.
    """

    storage: Storage
    video_id: UUID
    folder: int
    attempt: attempts.OpenAttempt | None = None
    folders: Mapping[str, int] = field(default_factory=dict)

    async def put(self, name: str, data: bytes | Path, content_type: str) -> None:
        """Write one output file under its name relative to the attempt.

        Segments have names of their own; a playlist replaces one that an earlier attempt, if its
        worker still runs, would write. Raises `LeaseLost`.
        """
        rendition, _, file = name.partition("/")
        if (attempt := self.attempt) and file == hls.PLAYLIST_NAME:
            await retry_outage(lambda: attempts.hold(attempt))
        folder = self.folders.get(rendition, self.folder)
        key = output_prefix(self.video_id, folder) + name
        await self.storage.put(key, data, content_type=content_type)


async def open_rendition(row: Rendition, video_id: UUID, storage: Storage) -> RenditionFiles:
    """Return the files of a video's complete rendition.

    Raises `ObjectMissing` or `PlaylistError`.
    """
    folder = output_prefix(video_id, row.attempt_number or 0)
    text = await storage.get(folder + hls.media_playlist_name(row.name))

    async def read(uri: str) -> bytes:
        # Renditions of a cut film name segments of the whole film.
        return await storage.get(posixpath.normpath(f"{folder}{row.name}/{uri}"))

    return RenditionFiles(playlist=hls.parse_media_playlist(text.decode()), read=read)


async def put_master(version: Version, storage: Storage) -> None:
    """Write a ready version's master playlist with its complete renditions and captions.

    A slow worker may overwrite the newer playlist of another one, so the rows are read again
    afterwards.
    """
    prefix = output_prefix(version.video_id, version.published_attempt or 0)
    for _ in range(MASTER_ROUNDS):
        entries = await renditions.master_entries(version)
        if not entries:
            # The video was deleted.
            return
        await write_master(storage, prefix, master_playlist(entries))
        if entries == await renditions.master_entries(version):
            return


def master_beside(output: PassOutput) -> str:
    """Return the text of a master playlist for the folder of the attempt that made the output."""
    entries = []
    for rendition in output.renditions:
        number = output.folders.get(rendition.name)
        entries.append(("" if number is None else f"../{number}/", rendition))
    return master_playlist(entries)


async def write_master(storage: Storage, prefix: str, playlist: str) -> None:
    """Write a master playlist into an attempt's folder."""
    await storage.put(
        prefix + MASTER_NAME,
        playlist.encode(),
        content_type=MASTER_TYPE,
        max_age_s=MASTER_MAX_AGE_S,
    )


async def used_folders(version: Version, storage: Storage) -> set[str] | None:
    """Return the folders of complete renditions, such as `1/720p/`, below `hls/<video id>/`.

    None if a ready version's master playlist is missing. The playlist is read because videos of
    versions before 0.2 have sound without a row.
    """
    rows = await Rendition.filter(version_id=version.id, state=RenditionState.COMPLETE)
    folders = {f"{row.attempt_number}/{row.name}/" for row in rows}
    if version.published_attempt is None:
        return folders
    try:
        prefix = output_prefix(version.video_id, version.published_attempt)
        master = await storage.get(prefix + MASTER_NAME)
    except ObjectMissing:
        return None
    named = named_playlists(master.decode(), version.published_attempt)
    return folders | {posixpath.dirname(name) + "/" for name in named}


async def unused_below(
    version: Version, number: int, used: set[str], storage: Storage
) -> AsyncIterator[str]:
    """Yield the prefixes and keys below an attempt's folder that are not in use.

    Only the published attempt uses files outside of renditions' folders, such as posters. A worker
    that was killed before it recorded a segment has left one that no playlist names.
    """
    prefix = output_prefix(version.video_id, number)
    root = output_root(version.video_id)
    used_here = {name for name in used if name.startswith(f"{number}/")}
    keeps_files = number == version.published_attempt
    if not keeps_files and not used_here:
        yield prefix
        return
    # The list is complete before anything is removed, because some servers lose their place in it.
    for entry in [entry async for entry in entries_of(prefix, storage)]:
        if isinstance(entry, str):
            if entry.removeprefix(root) not in used_here:
                yield entry
            else:
                for key in await _unnamed_segments(entry, storage):
                    yield key
        elif not keeps_files:
            yield entry.key


async def _unnamed_segments(folder: str, storage: Storage) -> list[str]:
    """Return the storage keys of segments in a rendition's folder that its playlist doesn't name.

    Return an empty list if the playlist is missing, because nothing then tells which are in use.
    """
    try:
        playlist = await storage.get(folder + hls.PLAYLIST_NAME)
    except ObjectMissing:
        return []
    named = {folder + uri for uri in hls.playlist_uris(playlist.decode())}
    return [
        stored.key
        async for stored in objects_below(folder, storage)
        if stored.key.endswith(SEGMENT_SUFFIX) and stored.key not in named
    ]


def named_playlists(master: str, published_attempt: int) -> set[str]:
    """Return the playlists that a master playlist names, such as `1/720p/playlist.m3u8`."""
    paths = (posixpath.join(str(published_attempt), uri) for uri in hls.playlist_uris(master))
    return {posixpath.normpath(path) for path in paths}
