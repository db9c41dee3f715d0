"""Schedules of videos: changes by people, and what is due.

A schedule is read and written under the lock of its video. So any number of workers may apply what
is due at once, and a time that was applied is gone for the next one. The lock of the video comes
before that of the row, because the deletion of a video deletes the row.
"""

import hashlib
import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from uuid import UUID

from portal.accounts.permissions import Action, Principal, audience_of
from portal.database.connection import execute, fetch_rows, lock_video, server_time, transaction
from portal.database.models import Video, Visibility
from portal.database.outages import is_outage
from portal.database.work_models import Schedule
from portal.errors import FieldError, InvalidRequest, MissingScope, NotAllowed, VersionConflict
from portal.events.log import (
    PORTAL,
    AuditAction,
    EventType,
    act_as,
    record_action,
    record_outcome,
)
from portal.features.deletion.service import LOCK_UPLOADS, delete_video
from portal.locale.messages import Message
from portal.text import rfc3339
from portal.videos.reading import check_version, locked_video
from portal.videos.visibility import recorded_access, save_access

logger = logging.getLogger(__name__)

MAX_AHEAD = timedelta(days=3653)
# Time between the notice of a deletion and the deletion.
NOTICE = timedelta(days=7)
DUE = """
SELECT video_id FROM schedules
WHERE least(publish_at, unpublish_at, delete_at) <= now()
  OR noticed_at IS NULL AND delete_at <= now() + %s
ORDER BY least(publish_at, unpublish_at, delete_at), video_id
"""


class ScheduleChanged(VersionConflict, code="schedule_changed"):
    """Someone else has changed this video's schedule. Read it again, then decide what to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times at which a video becomes public, becomes private and is deleted; None for never."""

    publish_at: datetime | None = None
    unpublish_at: datetime | None = None
    delete_at: datetime | None = None

    @classmethod
    def of(cls, row: Schedule | None) -> "Times":
        """Return the times in a row; none without a row."""
        return cls(**{name: getattr(row, name, None) for name in NAMES})

    @property
    def by_name(self) -> dict[str, datetime]:
        """Return the times that are set, by name."""
        return {name: at for name in NAMES if (at := getattr(self, name)) is not None}

    @property
    def version(self) -> str:
        """Digest of the times."""
        text = " ".join(f"{name}={rfc3339(at)}" for name, at in self.by_name.items())
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def is_deletion_near(self, now: datetime) -> bool:
        """Return whether the deletion is at most `NOTICE` ahead."""
        return self.delete_at is not None and self.delete_at <= now + NOTICE


NAMES = tuple(field.name for field in fields(Times))


async def read_times(video_id: UUID) -> Times:
    """Return the schedule of a video."""
    return Times.of(await Schedule.get_or_none(video_id=video_id))


async def save_times(
    video_id: UUID, times: Times, *, versions: Collection[str] | None, by: Principal
) -> None:
    """Replace the schedule of a video that has one of these versions; None replaces any version.

    Raises:
        InvalidRequest: a changed time is not valid, or the times are in another order.
        NotAllowed: the time of the deletion differs, and `by` may not delete the video.
        ScheduleChanged: another version is recorded that differs from the change.
        VideoNotFound: the video was deleted.
    """
    async with transaction():
        video = await locked_video(video_id)
        row = await Schedule.get_or_none(video_id=video_id)
        present = Times.of(row)
        if times == present:
            return
        check_version(present.version, versions, ScheduleChanged)
        is_deletion_moved = times.delete_at != present.delete_at
        if is_deletion_moved:
            _require_deletion(by, video)
        now = await server_time()
        if faults := _faults(video, present, times, now):
            raise InvalidRequest([FieldError(pointer, fault) for pointer, fault in faults.items()])
        noticed_at = row.noticed_at if row and not is_deletion_moved else None
        await _record_times(video_id, times, noticed_at=noticed_at, now=now)
        detail = {
            name: rfc3339(times.by_name[name]) if name in times.by_name else "never"
            for name in NAMES
            if getattr(times, name) != getattr(present, name)
        }
        await record_action(AuditAction.SCHEDULE_CHANGED, video_id, detail=detail)


async def apply_due() -> None:
    """Publish, hide and delete the videos that are due, and record notices of near deletions.

    Each video has a transaction of its own. One that fails is logged, and still due for the next
    call. Several processes may do this at once. Raises an outage of the database (`is_outage`).
    """
    act_as(PORTAL)
    for row in await fetch_rows(DUE, NOTICE):
        try:
            await _apply_due_times(row["video_id"])
        except Exception as exc:
            if is_outage(exc):
                raise
            context = {"action": "schedule_failed", "video_id": str(row["video_id"])}
            logger.exception("A schedule could not be applied", extra=context)


def _require_deletion(by: Principal, video: Video) -> None:
    """Raise `NotAllowed` or `MissingScope` unless the principal may delete the video."""
    try:
        by.require(Action.DELETE, on=audience_of(video))
    except MissingScope:
        raise
    except NotAllowed:
        raise NotAllowed(
            Message(
                "Only people who may delete this video can change the time of its deletion: the "
                "person who published it, an admin or an owner."
            )
        ) from None


def _faults(video: Video, present: Times, times: Times, now: datetime) -> dict[str, str]:
    """Return the faults of a change by JSON pointer, each with its remedy.

    A time that stays may have passed, if no worker has run since.
    """
    faults: dict[str, str] = {}
    changed = {name: at for name, at in times.by_name.items() if at != getattr(present, name)}
    if "publish_at" in changed and video.visibility is Visibility.PUBLIC:
        faults["/publishAt"] = Message(
            "This video is public now. Make it private or unlisted first."
        )
    publish_at = times.publish_at
    unpublish_at = times.unpublish_at
    if publish_at and unpublish_at and unpublish_at <= publish_at:
        faults["/unpublishAt"] = Message("Give a time after the video becomes public.")
    changes = [at for at in (publish_at, unpublish_at) if at]
    if times.delete_at and changes and times.delete_at <= max(changes):
        faults["/deleteAt"] = Message("Give a time after the video becomes public or private.")
    pointers = {"publish_at": "/publishAt", "unpublish_at": "/unpublishAt"}
    for name, at in changed.items():
        if fault := _time_fault(at, now):
            faults[pointers.get(name, "/deleteAt")] = fault
    return faults


def _time_fault(at: datetime, now: datetime) -> str | None:
    """Return what is wrong with a new time, and the remedy; None if nothing is."""
    if at.second or at.microsecond:
        return Message("Give a whole minute, without seconds.")
    if at <= now:
        return Message("Give a time in the future.")
    if at > now + MAX_AHEAD:
        return Message("Give a time within the next 10 years.")
    return None


async def _apply_due_times(video_id: UUID) -> None:
    """Apply the due times of a video, unless another worker has done so or they were changed."""
    async with transaction():
        await execute(LOCK_UPLOADS, video_id)
        video = await lock_video(video_id)
        row = await Schedule.get_or_none(video_id=video_id)
        # The deletion of a hidden video can be undone for a moment; then its times are still due.
        if row is None or video is None or video.deleted_at is not None:
            return
        now = await server_time()
        times = Times.of(row)
        due = {name for name, at in times.by_name.items() if at <= now}
        if "delete_at" in due:
            await delete_video(video_id)
            return
        if due:
            is_private = "unpublish_at" in due
            access = recorded_access(video)
            changed = replace(
                access,
                visibility=Visibility.PRIVATE if is_private else Visibility.PUBLIC,
                signed_in_only=is_private and access.signed_in_only,
            )
            await save_access(video_id, changed, versions=None)
        remaining = replace(times, **dict.fromkeys(due))
        await _record_times(video_id, remaining, noticed_at=row.noticed_at, now=now)


async def _record_times(
    video_id: UUID, times: Times, *, noticed_at: datetime | None, now: datetime
) -> None:
    """Write the schedule of a locked video, and send the notice of its deletion if that is due."""
    if noticed_at is None and times.is_deletion_near(now):
        noticed_at = now
        await record_outcome(EventType.DELETION_DUE, video_id)
    await Schedule.filter(video_id=video_id).delete()
    if times != Times():
        await Schedule.create(video_id=video_id, noticed_at=noticed_at, **asdict(times))
