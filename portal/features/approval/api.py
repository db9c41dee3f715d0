"""JSON API of the approval of a video."""

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_request, document_response, tag_blueprint

from portal.database.models import Approval, Video
from portal.features.approval import service
from portal.http.auth import Policy, policy, principal
from portal.http.json_bodies import json_response, read_json
from portal.http.schemas.base import ClosedShape, Problem, Text
from portal.http.schemas.validation import validated
from portal.http.videos import read_video, require_video
from portal.videos.reading import get_video

blueprint = Blueprint("api_approval", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


class ApprovalRecord(ClosedShape):
    """State of the approval of a video."""

    state: Approval = Field(
        description="`approved`, also for a video that needs no approval; `waiting` or `refused`."
    )
    reason: Text = Field(
        "",
        max_length=500,
        description="Reason of a refusal, which is required; otherwise empty.",
    )


@blueprint.get("/videos/<id>/approval")
@policy(Policy.WATCH)
@document_response(ApprovalRecord)
async def get_approval(id: str) -> Response:
    """Read the state of the approval of a video."""
    return _approval_response(await read_video(id))


@blueprint.put("/videos/<id>/approval")
@policy(Policy.PUBLISH)
@document_request(ApprovalRecord)
@document_response(ApprovalRecord)
@document_response(Problem, 409)
async def put_approval(id: str) -> Response:
    """Approve, refuse or submit a video.

    Editors, admins and owners approve or refuse a video that waits. The editors of a refused
    video submit it again by `waiting`. If someone else has decided meanwhile, nothing is written,
    and `present` has the recorded state.
    """
    video_id = await require_video(id)
    record = validated(ApprovalRecord, await read_json())
    await service.change_state(video_id, record.state, reason=record.reason, by=await principal())
    return _approval_response(await get_video(id))


def _approval_response(video: Video) -> Response:
    return json_response(
        ApprovalRecord(state=video.approval or Approval.APPROVED, reason=video.approval_reason)
    )
