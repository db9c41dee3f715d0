"""Deletion of videos: permanent by the API, with an undo window on the pages.

A video that is deleted on a page is hidden immediately (`Video.present`). After its undo window
`maintenance.recovery` removes it like a deletion by the API: the record at once, the files by a job
(see `films.removal`).

A file may still arrive by an upload URL that is valid. The `Tombstone` makes the janitor list
storage once more when every URL has expired.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from portal.accounts.permissions import Action, Audience, Principal
from portal.database.connection import (
    NOW,
    execute,
    fetch_rows,
    lock_video,
    server_time,
    transaction,
)
from portal.database.models import Attempt, Deletion, Publication, Tombstone, Upload, Version, Video
from portal.errors import MetadataChanged, VideoNotFound
from portal.events.log import AuditAction, record_action
from portal.events.records import AUDIENCE_COLUMNS
from portal.features.cuts.copies import fail_copies
from portal.films.removal import promise_removal
from portal.films.versions import cancel_jobs
from portal.queue.jobs import cancel_job
from portal.queue.rows import list_jobs_of
from portal.videos.reading import check_version, locked_video, parse_video_id

# Undo window.
UNDO_S = 30
OVERDUE = """
SELECT id FROM videos WHERE deleted_at <= now() - make_interval(secs => %s) ORDER BY deleted_at
"""
# The uploads of a video's files, whose rows are locked before the video, as publishing and
# replacing do.
LOCK_UPLOADS = """
SELECT FROM uploads WHERE key IN (SELECT storage_key FROM versions WHERE video_id = %s)
ORDER BY id FOR UPDATE
"""
# Events keep the audience, because readers who could see the video still receive its deletion.
FORGET_EVENTS = """
UPDATE events SET data = (
  SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(data) WHERE key = ANY(%s)
)
WHERE video_id = %s AND type IS NOT NULL
"""


async def delete_video(video_id: UUID, *, versions: Collection[str] | None = None) -> None:
    """Delete a video for good at once, and queue the removal of its files.

    The metadata must have one of these versions; None deletes any version.

    Raises:
        MetadataChanged: the metadata has another version.
        VideoNotFound: the video does not exist, or was deleted a moment ago.
    """
    async with transaction():
        await execute(LOCK_UPLOADS, video_id)
        video = await locked_video(video_id)
        check_version(str(video.metadata_version), versions, MetadataChanged)
        await _remove(video)
        await _note_deleted(video)


async def delete_undoably(video_id: UUID) -> None:
    """Hide a video, which `undo_deletion` can restore for `UNDO_S`. Raises `VideoNotFound`.

    Its processing continues, so that there is nothing else to undo, and is stopped after the undo
    window.
    """
    async with transaction():
        video = await locked_video(video_id)
        await Publication.filter(id=video_id).update(deleted_at=NOW)
        await _note_deleted(video)


async def undo_deletion(video_id: UUID) -> None:
    """Restore a deleted video; a video that is not deleted stays as it is.

    Raises `VideoNotFound` after the undo window.
    """
    async with transaction():
        video = await lock_video(video_id)
        if video is None or _is_over(video, await server_time()):
            raise VideoNotFound
        if video.deleted_at is None:
            return
        await Publication.filter(id=video_id).update(deleted_at=None)
        await record_action(AuditAction.VIDEO_RESTORED, video_id)


async def fetch_with_deleted(video_ids: Sequence[UUID]) -> dict[UUID, Video]:
    """Return the existing videos by id, including deleted ones that can be restored."""
    return {video.id: video for video in await Video.filter(id__in=video_ids)}


async def finish_deletions() -> int:
    """Remove videos whose undo window has passed. Return their number.

    The state is in their rows alone, so nothing is lost if the process dies. Several processes may
    run this at once.
    """
    finished = 0
    for row in await fetch_rows(OVERDUE, UNDO_S):
        async with transaction():
            await execute(LOCK_UPLOADS, row["id"])
            video = await lock_video(row["id"])
            if video is not None and _is_over(video, await server_time()):
                await _remove(video)
                finished += 1
    return finished


async def is_being_removed(video_id: str, *, by: Principal) -> bool:
    """Return whether files of a deleted video are being removed.

    The answer is False for everyone who could not have deleted the video.
    """
    parsed = parse_video_id(video_id)
    if parsed is None or not await Deletion.exists(video_id=parsed):
        return False
    tombstone = await Tombstone.get_or_none(video_id=parsed)
    return tombstone is not None and by.may(Action.DELETE, on=Audience(owner_id=tombstone.owner_id))


async def is_file_shared(video: Video) -> bool:
    """Return whether another video uses the file of a video, which then outlasts its deletion."""
    other_videos = Version.filter(storage_key=video.storage_key).exclude(video_id=video.id)
    return await other_videos.exists()


def _is_over(video: Video, now: datetime) -> bool:
    """Return whether the undo window of a deleted video has passed."""
    return video.deleted_at is not None and video.deleted_at <= now - timedelta(seconds=UNDO_S)


async def _note_deleted(video: Video) -> None:
    # Later the audit log is the only place with the title.
    await record_action(AuditAction.VIDEO_DELETED, video.id, detail={"title": video.title})


async def _remove(video: Video) -> None:
    """Delete the record of a locked video, and queue the removal of its files."""
    is_written = await _stop_work(video)
    versions = await Version.filter(video_id=video.id)
    await fail_copies(versions)
    # The database deletes its versions, attempts, renditions and poster request with it.
    await Publication.filter(id=video.id).delete()
    # The janitor looks again for the files of other versions, as for those of abandoned uploads. It
    # also removes the file of two videos that are deleted at once.
    if not await Version.exists(storage_key=video.storage_key):
        await Upload.filter(key=video.storage_key).delete()
    await execute(FORGET_EVENTS, list(AUDIENCE_COLUMNS), video.id)
    await Tombstone.create(
        video_id=video.id,
        storage_key=video.storage_key,
        owner_id=video.owner_id,
        published_at=video.created_at,
        deleted_at=await server_time(),
    )
    keys = [version.storage_key for version in versions]
    await promise_removal(video.id, keys, is_written=is_written)


async def _stop_work(video: Video) -> bool:
    """Cancel the jobs of a video. Return whether a worker may still be writing files of it."""
    await cancel_jobs(await Version.filter(video_id=video.id))
    jobs = await list_jobs_of(video.id)
    for job in jobs:
        await cancel_job(job["id"])
    is_writing = any(job["is_running"] for job in jobs)
    return is_writing or await Attempt.filter(video_id=video.id, outcome=None).exists()
