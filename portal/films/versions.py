"""The current version of a video: its change, and the withdrawal of versions.

What follows a change is declared by features (`features.VersionHook`), which get the version before
and the new one. Watch positions and figures of viewers are stored for the whole film, and their
readers map them to that of the current version.

Each function belongs to a transaction that has locked the video.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from tortoise.expressions import RawSQL

from portal.database.models import Publication, Version, Video, VideoStatus
from portal.database.work_models import MadeSegment, PassInProgress
from portal.events.log import EventType, record_outcome
from portal.films.version_hooks import VersionChange, VersionHook
from portal.queue.jobs import cancel_job
from portal.transcoding.encoding.assembly import PassOutput

# Viewers who began to watch a version can finish it within this time after its retirement.
SERVED_S = 24 * 3600
# Time in which a retired version can become the current one again.
REVERTIBLE_S = 7 * 24 * 3600
# A version that was retired at this time can't become current again.
WITHDRAWN_AT = datetime(1970, 1, 1, tzinfo=UTC)


class VersionState(StrEnum):
    """State of a version that becomes the current one of its video when it is ready."""

    PROCESSING = "processing"
    FAILED = "failed"
    LIVE = "live"

    @classmethod
    def of(cls, status: VideoStatus) -> Self:
        """Return the state of a version with this status that isn't retired."""
        return cls("live" if status is VideoStatus.READY else status.value)


async def is_current(version: Version) -> bool:
    """Return whether a version is the current one of its video.

    A first version is current from the beginning, also while it is processed and once it has
    failed. The version of a deleted video is current until the video can no longer be restored.
    """
    return await Publication.exists(version_id=version.id)


async def record_version_outcome(
    version: Version, type: EventType, *, otherwise: EventType | None = None
) -> None:
    """Record an event of a version's video, of this type if the version is the video's current one.

    Otherwise record one of the type `otherwise`, or none if that is None.
    """
    event = type if await is_current(version) else otherwise
    if event is not None:
        await record_outcome(event, version.video_id)


async def pending_file(video: Video) -> Version | None:
    """Return the version of another file that is to replace the one of a locked video.

    It is processing, or has failed and was not dismissed.
    """
    other_files = Version.filter(video_id=video.id).exclude(storage_key=video.storage_key)
    return await other_files.get_or_none(retired_at=None)


async def make_current(
    version: Version,
    hooks: Sequence[VersionHook],
    *,
    output: PassOutput | None = None,
    chapters: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Make a ready version what viewers get, and retire the former one. Record the event.

    `output` and `chapters` are those of the pass that has just made it, if one has. A retired
    version gets no more renditions, unless it is the whole film of the current one. Later
    `make_current` can make the former version the current one again. A cut in progress of another
    file is withdrawn.
    """
    before = await Video.get(id=version.video_id)
    former = None if before.version_id == version.id else before
    if former is not None:
        await _retire(former, version)
        await Publication.filter(id=version.video_id).update(version_id=version.id)
    video = await Video.get(id=version.video_id)
    change = VersionChange(video=video, former=former, output=output, chapters=chapters)
    for follow in hooks:
        await follow(change)
    if former is not None:
        event = EventType.REPLACED if change.is_other_file else EventType.CUTS_CHANGED
        await record_outcome(event, version.video_id)
    if former is None or former.status is not VideoStatus.READY:
        await record_outcome(EventType.READY, version.video_id)


async def _retire(former: Video, version: Version) -> None:
    """Retire the current version of a video in favour of another one."""
    retired = Version.filter(id=former.version_id)
    await retired.update(retired_at=RawSQL("clock_timestamp()"))
    in_use = {version.id, version.base_id}
    for unused_id in (former.version_id, former.base_id):
        if unused_id is None or unused_id in in_use:
            continue
        jobs = {"complete_job_id": None, "storyboard_job_id": None}
        await Version.filter(id=unused_id).update(**jobs)
        # A first pass that was retried can no longer publish anything, and no worker goes on.
        await delete_progress(unused_id)
    await retired.filter(status=VideoStatus.PROCESSING).update(status=VideoStatus.FAILED)
    if former.storage_key != version.storage_key:
        cuts = Version.filter(video_id=version.video_id, retired_at=None, base_id__isnull=False)
        for cut in await cuts.exclude(id=version.id):
            await withdraw(cut)
    await Version.filter(id=version.id).update(retired_at=None)


async def withdraw(version: Version) -> None:
    """Cancel the jobs of a version so that it never becomes current; the caller knows it isn't."""
    await cancel_jobs([version])
    rows = Version.filter(id=version.id)
    await rows.update(status=VideoStatus.FAILED, retired_at=WITHDRAWN_AT)


async def delete_progress(version_id: UUID) -> None:
    """Delete the rows of a version's pass and of its segments; workers then lose their leases."""
    await MadeSegment.filter(version_id=version_id).delete()
    await PassInProgress.filter(version_id=version_id).delete()


async def cancel_jobs(versions: Iterable[Version]) -> None:
    """Cancel the jobs of passes over these versions."""
    for version in versions:
        for job_id in {version.transcode_job_id, version.encode_job_id, version.complete_job_id}:
            if job_id is not None:
                await cancel_job(job_id)
