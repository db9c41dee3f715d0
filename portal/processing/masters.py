"""Master playlists in storage, written from the rows of what is complete."""

from dataclasses import dataclass

from portal.database.models import Video
from portal.processing import renditions
from portal.storage.bucket import MASTER_MAX_AGE_S, Storage
from portal.storage.objects import output_prefix
from portal.transcoding.packaging.master import MASTER_NAME, FinishedRendition, master_playlist

MASTER_TYPE = "application/vnd.apple.mpegurl"
# How often a master playlist that became outdated while it was written is written again.
MASTER_ROUNDS = 5


async def put_master(video: Video, storage: Storage) -> None:
    """Write a ready video's master playlist with all that is complete now.

    A worker that was held up here may overwrite what another wrote meanwhile, so the rows are read
    again afterwards. Where the playlist lies may have changed, too.
    """
    for _ in range(MASTER_ROUNDS):
        before = await _read(video)
        if not before.entries:  # the video was deleted
            return
        await write_master(storage, before.prefix, master_playlist(before.entries))
        after = await _read(video)
        if after == before:
            return
        if after.prefix != before.prefix:
            await storage.delete(before.prefix + MASTER_NAME)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A master playlist: the folder it lies in, and the renditions with their folders."""

    prefix: str
    entries: list[tuple[str, FinishedRendition]]


async def _read(video: Video) -> _Wanted:
    found = await Video.get_or_none(id=video.id)
    if found is None or found.published_attempt is None:
        return _Wanted("", [])
    prefix = output_prefix(found.id, found.published_attempt)
    return _Wanted(prefix, await renditions.complete(found))


async def write_master(storage: Storage, prefix: str, playlist: str) -> None:
    """Write a master playlist into an attempt's folder."""
    await storage.put(
        prefix + MASTER_NAME,
        playlist.encode(),
        content_type=MASTER_TYPE,
        max_age_s=MASTER_MAX_AGE_S,
    )
