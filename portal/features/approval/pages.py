"""Forms on the page of a pending video that approve, refuse or submit it."""

from quart import Blueprint, redirect, request, url_for
from quart.typing import ResponseReturnValue

from portal.features.approval import service
from portal.features.approval.api import ApprovalRecord
from portal.http.auth import Policy, policy, principal
from portal.http.schemas.validation import validated
from portal.http.videos import require_video
from portal.videos.reading import parse_video_id

blueprint = Blueprint("approval", __name__)


@blueprint.post("/videos/<video_id>/approval")
@policy(Policy.PUBLISH)
async def change_state(video_id: str) -> ResponseReturnValue:
    """Approve, refuse or submit a video, and show the waiting videos."""
    form = await request.form
    record = validated(
        ApprovalRecord, {name: form.get(name, "") for name in ApprovalRecord.model_fields}
    )
    await service.change_state(
        await require_video(video_id),
        record.state,
        reason=record.reason,
        version_id=parse_video_id(form.get("version", "")),
        by=await principal(),
    )
    return redirect(url_for("library.approvals"), 303)
