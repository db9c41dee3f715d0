"""Where a pass puts what it makes: its attempt's folder, or that of the attempt that began it.

And how a finished rendition is read again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from portal.database.connection import retry_outage
from portal.database.models import Rendition
from portal.processing import attempts
from portal.processing.attempts import OpenAttempt
from portal.storage.bucket import Storage
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.storyboards import RenditionFiles
from portal.transcoding.packaging.hls import (
    PLAYLIST_NAME,
    media_playlist_name,
    parse_media_playlist,
)


@dataclass(frozen=True, slots=True)
class StorageSink:
    """The folder of the attempt of the number `folder`, but for the renditions of `folders`.

    Those lie in the folders of the attempts of these numbers. All is put by `attempt`.
    """

    storage: Storage
    attempt: OpenAttempt
    folder: int
    folders: Mapping[str, int] = field(default_factory=dict)

    async def put(self, name: str, data: bytes | Path, content_type: str) -> None:
        """Write one output file under its name relative to the attempt.

        Segments have names of their own; a playlist replaces one that an earlier attempt, if its
        worker still runs, would write. Raises `LeaseLost`.
        """
        rendition, _, file = name.partition("/")
        if file == PLAYLIST_NAME:
            await retry_outage(lambda: attempts.hold(self.attempt))
        folder = self.folders.get(rendition, self.folder)
        key = output_prefix(self.attempt.video_id, folder) + name
        await self.storage.put(key, data, content_type=content_type)


async def open_rendition(row: Rendition, storage: Storage) -> RenditionFiles:
    """The files of a complete rendition. Raises `ObjectMissing` or `PlaylistError`."""
    folder = output_prefix(row.video_id, row.attempt_number or 0)
    text = await storage.get(folder + media_playlist_name(row.name))

    async def read(uri: str) -> bytes:
        return await storage.get(f"{folder}{row.name}/{uri}")

    return RenditionFiles(playlist=parse_media_playlist(text.decode()), read=read)
