"""Approval of videos: decisions, and submissions.

A decision is made under the lock of its video, so the first of two concurrent decisions counts.
"""

from uuid import UUID

from portal.accounts.permissions import Action, Principal, audience_of
from portal.database.connection import NOW, transaction
from portal.database.models import Approval, Publication
from portal.errors import ApprovalChanged, FieldError, InvalidRequest
from portal.events.log import AuditAction, record_action
from portal.films.version_hooks import VersionChange
from portal.locale.messages import Message
from portal.videos.publishing import submit_if_required
from portal.videos.reading import locked_video

# States from which a video gets to each state.
FORMER_STATES = {
    Approval.APPROVED: Approval.WAITING,
    Approval.REFUSED: Approval.WAITING,
    Approval.WAITING: Approval.REFUSED,
}
AUDIT_ACTIONS = {
    Approval.APPROVED: AuditAction.VIDEO_APPROVED,
    Approval.REFUSED: AuditAction.VIDEO_REFUSED,
    Approval.WAITING: AuditAction.VIDEO_SUBMITTED,
}


async def change_state(
    video_id: UUID,
    state: Approval,
    *,
    reason: str = "",
    version_id: UUID | None = None,
    by: Principal,
) -> None:
    """Approve or refuse a waiting video, or submit a refused one again.

    A refusal has a `reason`; other states ignore it. The state that is recorded already is no
    change. `version_id` names the version that the person has seen, None stands for any.

    Raises:
        ApprovalChanged: the video is in another state, or has another version.
        InvalidRequest: the refusal has no reason.
        NotAllowed: the principal may not approve, or not edit a video that is submitted again.
        VideoNotFound: the video was deleted.
    """
    reason = reason.strip() if state is Approval.REFUSED else ""
    if state is Approval.REFUSED and not reason:
        raise InvalidRequest(
            [FieldError("/reason", Message("Say what the person should change, as the reason."))]
        )
    async with transaction():
        video = await locked_video(video_id)
        by.require(
            Action.EDIT if state is Approval.WAITING else Action.APPROVE, on=audience_of(video)
        )
        present = video.approval or Approval.APPROVED
        if (present, video.approval_reason) == (state, reason):
            return
        if present is not FORMER_STATES[state] or version_id not in (None, video.version_id):
            raise ApprovalChanged(present={"state": present.value, "reason": video.approval_reason})
        await Publication.filter(id=video_id).update(
            approval=None if state is Approval.APPROVED else state,
            approval_reason=reason,
            changed_at=NOW,
        )
        await record_action(AUDIT_ACTIONS[state], video_id)


async def submit_new_version(change: VersionChange) -> None:
    """Let a contributor's video wait again when its file is replaced or it is cut."""
    if change.former is not None:
        await submit_if_required(change.video.id)
