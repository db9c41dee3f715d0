"""Replacement of a video's file: another version, which becomes the current one when it is ready.

The former version stays current until then. Its files stay for `versions.REVERTIBLE_S`, in which
people can go back to it. Versions that nobody needs are removed by the janitor.

A cut is a version of the same file, so it is no replacement. Going back leads to the version that
was live with the former file, cut or whole.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID, uuid4

from pydantic import Field

from portal import errors
from portal.database.connection import Row, fetch_rows, server_time, transaction
from portal.database.models import Version, Video, VideoStatus
from portal.events.log import AuditAction, record_action
from portal.events.records import Percent, Shape, Size, Time, TranscodeFailure
from portal.films import attempts, renditions
from portal.films.removal import remove_source
from portal.films.version_hooks import VersionHook
from portal.films.versions import REVERTIBLE_S, VersionState, pending_file
from portal.storage.bucket import Storage
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.publishing import check_stored, insert_version, locked_upload, room_refusal
from portal.videos.reading import check_version, locked_video

# The replacement in progress or failed, or the current file if it has replaced another one. With
# the second parameter, also a current file that has replaced none. Cuts of a file belong to it.
READ = f"""
SELECT film.id AS film_id, version.file_name, version.size_bytes, version.status,
       version.failure_code, version.failure_message, film.created_at,
       version.id = current.id AS is_current, former.retired_at,
       coalesce((SELECT max(percent) FROM attempts WHERE attempts.version_id = version.id), 0)
         AS percent
FROM publications
JOIN versions current ON current.id = publications.version_id
JOIN versions version ON version.video_id = publications.id
JOIN versions film ON film.id = coalesce(version.base_id, version.id)
LEFT JOIN LATERAL (
  SELECT retired_at FROM versions WHERE video_id = publications.id AND status = 'ready'
    AND storage_key <> current.storage_key
    AND retired_at > now() - make_interval(secs => {REVERTIBLE_S})
  ORDER BY retired_at DESC LIMIT 1
) former ON version.id = current.id
WHERE publications.id = %s AND deleted_at IS NULL AND (
  version.id = current.id AND (former.retired_at IS NOT NULL OR %s)
  OR version.storage_key <> current.storage_key AND version.retired_at IS NULL
)
ORDER BY is_current LIMIT 1
"""  # noqa: S608 - put together from constants


class ReplacementRecord(Shape):
    """File that replaces, or has replaced, the file of a video."""

    state: VersionState = Field(description="`processing`, `failed` or `live`.")
    percent: Percent = Field(description="Progress of the transcoding.")
    file_name: str = Field(description="Name of the new file.")
    size_bytes: Size = Field(description="Size of the new file.")
    failure: TranscodeFailure | None = Field(
        description="Reason why the replacement failed; null unless it did."
    )
    started_at: Time = Field(description="Time of the request.")
    revertible_until: Time | None = Field(
        description="End of the time in which the former file can be restored."
    )


class Replacement(ReplacementRecord):
    """Replacement with its version, which changes with the file and with the state."""

    version: str = Field(exclude=True)


async def request(
    video_id: UUID,
    *,
    key: str,
    file_name: str,
    storage: Storage,
    max_source_bytes: int,
    quota: Quota = NO_QUOTA,
    owner_id: UUID | None,
) -> None:
    """Replace the file of a ready or failed video by an upload, once that is ready.

    A repetition with the key of the replacement, or of the current file, does nothing. A failed
    replacement gives way to the new one. `owner_id` is the account whose upload and room it is.

    Raises:
        VideoNotFound: the video was deleted.
        NotPlayable: the first file of the video is still being processed.
        ReplacementInProgress: another file is about to replace this one.
        KeyAlreadyUsed: the key belongs to another video, or to a former file.
        PortalError: the upload can't be used, or there is no room for it (`publishing.publish`).
    """
    async with locked_upload(key, owner_id, storage) as (upload, stored):
        video = await locked_video(video_id)
        pending = await pending_file(video)
        if key in (video.storage_key, pending and pending.storage_key):
            return
        await _require_replaceable(video, pending, key)
        source = check_stored(upload, stored, max_source_bytes)
        refusal = await room_refusal(upload, source, owner_id, quota)
        if refusal is None:
            if pending is not None:
                await attempts.stop(pending)
            version = Version(
                id=uuid4(),
                video_id=video_id,
                file_name=file_name,
                storage_key=key,
                created_at=await server_time(),
            )
            await insert_version(version, source)
            await record_action(AuditAction.REPLACEMENT_BEGUN, video_id)
    # The refusal follows the commit, which records that the file is kept.
    if refusal is not None:
        raise refusal


async def withdraw(
    video_id: UUID,
    *,
    storage: Storage,
    hooks: Sequence[VersionHook],
    expected: Collection[str] | None = None,
) -> None:
    """Cancel a replacement in progress, dismiss a failed one, or else go back to the former file.

    The file of a cancelled replacement is removed. Going back retires the present file, so a
    further call brings that one back, unless it expects a replacement with one of the versions that
    callers have seen.

    Raises:
        VideoNotFound: the video was deleted.
        ReplacementNotFound: there is nothing to withdraw.
        ReplacementChanged: the replacement has none of the expected versions.
    """
    async with transaction():
        video = await locked_video(video_id)
        present = await read(video_id)
        if present is None:
            raise errors.ReplacementNotFound
        check_version(present.version, expected, errors.ReplacementChanged)
        pending = await pending_file(video)
        former = await _former(video)
        if pending is not None:
            await attempts.stop(pending)
        elif former is not None:
            await renditions.restore(former, hooks)
        await record_action(AuditAction.REPLACEMENT_WITHDRAWN, video_id)
    if pending is not None:
        # The change is made even if storage is away. The janitor then removes the file.
        with suppress(errors.StorageUnavailable):
            await remove_source(pending, storage)


async def read(video_id: UUID, *, of_first_file: bool = False) -> Replacement | None:
    """Return the replacement in progress or failed, otherwise the one that can be withdrawn.

    Without either, return None or, with `of_first_file`, the current file, which is live.
    """
    rows = await fetch_rows(READ, video_id, of_first_file)
    return _replacement(rows[0]) if rows else None


def _replacement(row: Row) -> Replacement:
    state = VersionState.of(VideoStatus(row["status"]))
    if row["is_current"]:
        state = VersionState.LIVE
    until = None
    if row["retired_at"] is not None:
        until = row["retired_at"] + timedelta(seconds=REVERTIBLE_S)
    return Replacement(
        file_name=row["file_name"],
        size_bytes=row["size_bytes"],
        state=state,
        percent=100.0 if row["is_current"] else row["percent"],
        failure=TranscodeFailure.of(row["failure_code"], row["failure_message"]),
        started_at=row["created_at"],
        revertible_until=until,
        version=f"{row['film_id'].hex}-{state}",
    )


async def _require_replaceable(video: Video, pending: Version | None, key: str) -> None:
    """Raise the conflict that keeps the file of an unused key from replacing that of a video."""
    if await Version.exists(storage_key=key):
        raise errors.KeyAlreadyUsed
    if video.status is VideoStatus.PROCESSING:
        raise errors.NotPlayable
    if pending is not None and pending.status is VideoStatus.PROCESSING:
        raise errors.ReplacementInProgress


async def _former(video: Video) -> Version | None:
    """Return the version that was live with the former file of a locked video."""
    other_files = Version.filter(video_id=video.id).exclude(storage_key=video.storage_key)
    since = await server_time() - timedelta(seconds=REVERTIBLE_S)
    retired = other_files.filter(retired_at__gt=since, status=VideoStatus.READY)
    return await retired.order_by("-retired_at").first()
