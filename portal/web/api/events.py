"""What happened to videos, for programs: a list to go on in."""

from typing import Any

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_querystring, document_response, tag_blueprint

from portal.database.connection import Row
from portal.events.log import EventType
from portal.videos import events
from portal.web.api import json_bodies
from portal.web.api.videos import RetrievedVideo, playback_url
from portal.web.auth import Policy, policy, principal

blueprint = Blueprint("api_events", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Events"])

PREFIX = "evt_"
LATEST = "latest"
MAX_LIMIT = 200
# What fits into the numbers of events.
MAX_DIGITS = 18


class EventsQuery(json_bodies.Shape, extra="forbid"):
    """Which events are asked for."""

    after: str | None = Field(
        None,
        pattern=rf"^({LATEST}|{PREFIX}[0-9]{{1,{MAX_DIGITS}}})$",
        description="`nextAfter` of the last answer; `latest` for what is yet to happen. Without "
        "it the oldest of the last 30 days come first.",
    )
    limit: int = Field(100, ge=1, le=MAX_LIMIT)


class DeletedVideo(json_bodies.Shape):
    """What is left to tell of a deleted video."""

    id: str


class VideoEvent(json_bodies.Shape):
    """Something that happened to a video."""

    id: str
    type: EventType
    timestamp: json_bodies.Timestamp
    sequence: int = Field(description="Ascends among the events of a video.")
    data: RetrievedVideo | DeletedVideo = Field(description="The record after it.")


class EventList(json_bodies.Shape):
    """Events in the order in which they happened."""

    events: list[VideoEvent]
    next_after: str = Field(description="What to send as `after` next.")


@blueprint.get("/events")
@policy(Policy.WATCH)
@document_querystring(EventsQuery)
@document_response(EventList)
@document_response(json_bodies.Problem, 410)
async def list_events() -> Response:
    """List what happened to videos in the last 30 days, the oldest first.

    Of videos that who asks would find in the library. Ask again with `nextAfter`: nothing is
    missed, and nothing is listed twice.
    """
    asked = json_bodies.validated_query(EventsQuery)
    if asked.after == LATEST:
        newest = await events.newest_number()
        return json_bodies.json_response(EventList(events=[], next_after=f"{PREFIX}{newest}"))
    after = None if asked.after is None else int(asked.after.removeprefix(PREFIX))
    page = await events.list_events(await principal(), after=after, limit=asked.limit)
    told = [await told_event(row) for row in page.events]
    return json_bodies.json_response(
        EventList(events=told, next_after=f"{PREFIX}{page.next_after}")
    )


async def told_event(row: Row) -> VideoEvent:
    """An event as integrators hear of it."""
    record: dict[str, Any] = row["data"]
    is_deleted = row["type"] == EventType.DELETED
    return VideoEvent(
        id=f"{PREFIX}{row['number']}",
        type=row["type"],
        timestamp=row["at"],
        sequence=row["sequence"],
        data=DeletedVideo(id=row["video_id"])
        if is_deleted
        else RetrievedVideo(**record, playback_url=await playback_url(record)),
    )
