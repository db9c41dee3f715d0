"""JSON API of the schedule of a video."""

from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.features.schedule import service
from portal.features.schedule.service import NAMES, Times
from portal.http.auth import Policy, policy, principal
from portal.http.json_bodies import json_response, named_versions, read_json
from portal.http.schemas.base import ClosedShape, EditHeaders, Timestamp
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.videos import require_video

blueprint = Blueprint("api_schedule", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


class ScheduleRecord(ClosedShape):
    """Times at which a video becomes public, becomes private and is deleted, in whole minutes.

    New times are in the future, within 10 years, and in this order.
    """

    publish_at: Timestamp | None = Field(
        description="When the video becomes public; null for never. A video that is public now "
        "takes no such time."
    )
    unpublish_at: Timestamp | None = Field(
        description="When the video becomes private; null for never."
    )
    delete_at: Timestamp | None = Field(
        description="When the video is deleted for good; null for never. A change needs the "
        "permission to delete the video."
    )

    def value(self) -> Times:
        """Return the times as services take them."""
        return Times(**{name: getattr(self, name) for name in NAMES})


@blueprint.get("/videos/<id>/schedule")
@policy(Policy.EDIT, headers=("ETag",))
@document_response(ScheduleRecord)
async def get_schedule(id: str) -> Response:
    """Read the schedule of a video. Times that have passed are null again.

    Send the ETag back in If-Match when you change the schedule.
    """
    response = await _schedule_response(await require_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/schedule")
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(ScheduleRecord)
@document_response(ScheduleRecord)
async def put_schedule(id: str) -> Response:
    """Change the times at which a video becomes public, becomes private and is deleted.

    Each is applied within a minute. A video that becomes public stays shared with the same people.
    A week before the deletion, or at once if it is nearer, there is an event, `video.deletion_due`.
    If-Match must name the version that you read, or be `*`. If someone else has changed the
    schedule since, nothing is written.
    """
    video_id = await require_video(id)
    versions = named_versions(is_required=True)
    times = validated(ScheduleRecord, await read_json()).value()
    await service.save_times(video_id, times, versions=versions, by=await principal())
    return await _schedule_response(video_id)


async def _schedule_response(video_id: UUID) -> Response:
    times = await service.read_times(video_id)
    record = recorded_shape(ScheduleRecord, times)
    return json_response(record, cache_control="private, no-cache", etag=times.version)
