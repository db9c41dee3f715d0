"""Events of videos for programs: as a list, and as streams (Server-Sent Events).

A stream ends after at most an hour, and within a heartbeat of a change to the permissions of its
reader: a disabled account, another role, a revoked token. Readers reconnect by themselves and send
the last event in Last-Event-ID.
"""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import uniform
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, RootModel
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_querystring, document_response, tag_blueprint

from portal.accounts.permissions import audience_in
from portal.database.connection import Row
from portal.database.event_models import EVENT_ID_PREFIX
from portal.database.outages import skipped_in_outage
from portal.errors import NotAcceptable
from portal.events.log import EventType
from portal.events.records import Shape, VideoWithPassthrough
from portal.http import json_bodies
from portal.http.addresses import playback_url, playback_url_for
from portal.http.auth import (
    Credentials,
    Policy,
    policy,
    principal,
    sent_credentials,
    still_identify,
)
from portal.http.composition import WebContext, web_context
from portal.http.event_streams import HEARTBEAT_S, Stream, StreamEvent
from portal.http.schemas.base import ClosedShape, CommaSeparated, Problem
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.context import state_of
from portal.http.videos import read_record
from portal.videos import events
from portal.videos.events import VideoEvent

blueprint = Blueprint("api_events", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Events"])

LAST_EVENT_ID = "Last-Event-ID"
LATEST = "latest"
MAX_LIMIT = 200
# Numbers of events have at most this many digits.
MAX_DIGITS = 18
EVENT_STREAM = "text/event-stream"
# Type of an ASGI message.
BODY = "http.response.body"
PROGRESS = "video.progress"
LONGEST_STREAM_S = 3600.0
# A reader that takes nothing for this long is disconnected.
SEND_TIMEOUT_S = 15.0
# A comment (HTML, 9.2.6).
HEARTBEAT = b":\n\n"


class StreamQuery(ClosedShape):
    """Filter of events by their types."""

    type: Annotated[tuple[EventType, ...], CommaSeparated] = Field(
        (), description="Types of events; several are separated by commas. Without it all."
    )


class EventsQuery(StreamQuery):
    """Filter of events, and the place in their list."""

    after: str | None = Field(
        None,
        pattern=rf"^({LATEST}|{EVENT_ID_PREFIX}[0-9]{{1,{MAX_DIGITS}}})$",
        description="`nextAfter` of the last response; `latest` for future events. Without it "
        "the oldest events of the last 30 days come first.",
    )
    limit: int = Field(100, ge=1, le=MAX_LIMIT, description="Most records of a page.")


class EventList(Shape):
    """Events in the order in which they happened."""

    events: list[VideoEvent] = Field(description="The events.")
    next_after: str = Field(description="What to send as `after` next.")


class StreamHeaders(ClosedShape):
    """Place after which a stream resumes."""

    last_event_id: str | None = Field(
        None,
        alias=LAST_EVENT_ID,
        pattern=rf"^{EVENT_ID_PREFIX}[0-9]{{1,{MAX_DIGITS}}}$",
        description="The `id` of the last event that arrived. Browsers send it by themselves.",
    )


class EventStream(RootModel[str]):
    """Server-Sent Events, and a comment every 15 s while nothing happens."""


@blueprint.get("/events")
@policy(Policy.WATCH)
@document_querystring(EventsQuery)
@document_response(EventList)
@document_response(Problem, 410)
async def list_events() -> Response:
    """List the events of videos in the last 30 days, the oldest first.

    The list has the events of videos that the library showed you when they happened and shows you
    now. The event that hid a video from you is listed as `video.deleted`. Repeat the request with
    `nextAfter`: no event is missed or listed twice.
    """
    query = validated_query(EventsQuery, request.args)
    reader = await principal()
    web = web_context()
    rows: list[Row] = []
    if query.after == LATEST:
        next_after = await events.newest_number()
    else:
        after = None if query.after is None else _number(query.after)
        rows, next_after = await events.list_events(
            reader, after=after, limit=query.limit, types=query.type
        )
    listed = [await _shown_event(row, reader.account_id, web) for row in rows]
    page = EventList(events=listed, next_after=f"{EVENT_ID_PREFIX}{next_after}")
    return json_bodies.json_response(page)


@blueprint.get("/events/stream")
@policy(Policy.WATCH, content_types=(EVENT_STREAM,))
@document_headers(StreamHeaders)
@document_querystring(StreamQuery)
@document_response(EventStream)
@document_response(Problem, 406)
@document_response(Problem, 410)
async def stream_events() -> Response:
    """Follow the events of videos, as Server-Sent Events.

    `data` is the event as it is listed, `event` its type and `id` its id. The first message is a
    `snapshot` with `nextAfter`; with Last-Event-ID the stream resumes after that event instead.
    `video.progress` reports every 2 s the progress of videos that are being made ready. It has no
    id, and is left out of a stream of certain types.
    """
    newest = await web_context().streams.newest_number()
    start = json.dumps({"nextAfter": f"{EVENT_ID_PREFIX}{newest}"})
    return await _response(start, newest=newest)


@blueprint.get("/videos/<string(minlength=8):id>/events")
@policy(Policy.WATCH, content_types=(EVENT_STREAM,))
@document_headers(StreamHeaders)
@document_querystring(StreamQuery)
@document_response(EventStream)
@document_response(Problem, 406)
@document_response(Problem, 410)
async def stream_video_events(id: str) -> Response:
    """Follow the events of a video, as Server-Sent Events.

    The stream is like that of all videos, but the `snapshot` is the record of the video. It ends
    after `video.deleted`, which is also sent when the video is hidden from you.
    """
    # Read before the record, so that later events are sent if the record lacks them.
    newest = await web_context().streams.newest_number()
    record = await read_record(id)
    snapshot = VideoWithPassthrough(**record, playback_url=await playback_url(record))
    return await _response(snapshot.model_dump_json(), newest=newest, video_id=id)


async def _response(snapshot: str, *, newest: int, video_id: str = "") -> Response:
    """Return a stream that begins with this snapshot, or resumes after Last-Event-ID.

    Raises `NotAcceptable`, `InvalidRequest` and `EventsExpired`.
    """
    if "Accept" in request.headers and not request.accept_mimetypes.quality(EVENT_STREAM):
        raise NotAcceptable
    types = validated_query(StreamQuery, request.args).type
    first = _message("snapshot", snapshot, newest)
    after = newest
    headers = validated(StreamHeaders, {LAST_EVENT_ID: request.headers.get(LAST_EVENT_ID)})
    if headers.last_event_id is not None:
        first = HEARTBEAT
        after = _number(headers.last_event_id)
        await events.require_kept(after)
    stream = Stream(await principal(), after=after, video_id=video_id, types=types)
    credentials = sent_credentials()
    response = Response(b"", content_type=EVENT_STREAM)
    response.headers["Cache-Control"] = "no-store"
    # Without it nginx buffers the response.
    response.headers["X-Accel-Buffering"] = "no"
    if request.method != "HEAD":
        del response.headers["Content-Length"]
        state_of(request.scope).stream = partial(_send, first, stream, credentials, web_context())
    return response


async def _send(
    first: bytes,
    stream: Stream,
    credentials: Credentials,
    web: WebContext,
    receive: Any,
    send: Any,
) -> None:
    """Send a stream until it ends, the client leaves, or the client takes nothing more."""
    # The random part keeps readers from reconnecting all at once.
    ends_at = monotonic() + LONGEST_STREAM_S * uniform(0.75, 1.0)  # noqa: S311  # no secret
    checked_at = monotonic()
    web.streams.add(stream)
    leaving = asyncio.create_task(_end_when_left(stream, receive))
    try:
        # A stream that is behind ends in an outage of the database, and its reader reconnects.
        with skipped_in_outage(), suppress(TimeoutError):
            text = first
            while True:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await send({"type": BODY, "body": text, "more_body": True})
                new = await stream.take()
                if new is None or monotonic() > ends_at:
                    break
                if monotonic() - checked_at >= HEARTBEAT_S:
                    checked_at = monotonic()
                    if not await still_identify(stream.reader, credentials, web):
                        break
                texts = [await _text(event, stream, web) for event in new]
                text = b"".join(texts) or HEARTBEAT
            await send({"type": BODY, "body": b"", "more_body": False})
    finally:
        leaving.cancel()
        web.streams.remove(stream)


async def _end_when_left(stream: Stream, receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.end()


async def _text(event: StreamEvent, stream: Stream, web: WebContext) -> bytes:
    """Return an event as it is sent to the reader of a stream; empty if it is not sent."""
    row = event.seen_by(stream.sees)
    if row is None or (stream.types and row.get("type") not in stream.types):
        return b""
    # Only the playback address of a private video differs between accounts.
    is_private = event.number is not None and audience_in(row["data"]).is_private
    key = (row.get("type", PROGRESS), stream.reader.account_id if is_private else None)
    if key not in event.texts:
        if event.number is None:
            event.texts[key] = _progress_message(row)
        else:
            body = await _shown_event(row, stream.reader.account_id, web)
            event.texts[key] = _message(body.type, body.model_dump_json(), event.number)
    return event.texts[key]


def _progress_message(row: Row) -> bytes:
    """Return the message with the progress of a video, as in its transcode record."""
    data = {"id": row["video_id"], "stage": row["stage"], "percent": round(row["percent"], 1)}
    event = {"type": PROGRESS, "timestamp": datetime.now(UTC).isoformat(), "data": data}
    return _message(PROGRESS, json.dumps(event))


def _message(kind: str, data: str, number: int | None = None) -> bytes:
    """Return a message of a stream (HTML, 9.2.5). Its data is JSON on one line."""
    place = "" if number is None else f"id: {EVENT_ID_PREFIX}{number}\n"
    return f"event: {kind}\n{place}data: {data}\n\n".encode()


def _number(event_id: str) -> int:
    return int(event_id.removeprefix(EVENT_ID_PREFIX))


async def _shown_event(row: Row, own_id: UUID | None, web: WebContext) -> VideoEvent:
    """Return an event as an account receives it."""
    record = events.record_in(row)
    address = await playback_url_for(own_id, record, web=web) if record else ""
    return events.shown_event(row, web.config, playback_url=address)
