"""Master playlists in storage, written from the rows of what is complete."""

from portal.database.models import Video
from portal.processing import renditions
from portal.storage.bucket import MASTER_MAX_AGE_S, Storage
from portal.storage.keys import output_prefix
from portal.transcoding.packaging.master import MASTER_NAME, master_playlist

MASTER_TYPE = "application/vnd.apple.mpegurl"
# How often a master playlist that became outdated while it was written is written again.
MASTER_ROUNDS = 5


async def put_master(video: Video, storage: Storage) -> None:
    """Write a ready video's master playlist with all that is complete now.

    A worker that was held up here may overwrite what another wrote meanwhile, so the rows are read
    again afterwards.
    """
    prefix = output_prefix(video.id, video.published_attempt or 0)
    for _ in range(MASTER_ROUNDS):
        entries = await renditions.complete(video)
        if not entries:  # the video was deleted
            return
        await write_master(storage, prefix, master_playlist(entries))
        if await renditions.complete(video) == entries:
            return


async def write_master(storage: Storage, prefix: str, playlist: str) -> None:
    """Write a master playlist into an attempt's folder."""
    await storage.put(
        prefix + MASTER_NAME,
        playlist.encode(),
        content_type=MASTER_TYPE,
        max_age_s=MASTER_MAX_AGE_S,
    )
