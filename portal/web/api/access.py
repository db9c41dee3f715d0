"""Who may see a video: its visibility, the sites that show it, and links that let anyone watch."""

from dataclasses import asdict
from typing import Any

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.database.account_models import MAX_NAME_LENGTH
from portal.database.models import Video
from portal.errors import PlaybackLinkNotFound
from portal.events.records import Shape, Uri
from portal.videos import playback_links, visibility
from portal.videos.playback_links import PlaybackLink
from portal.videos.reading import parse_video_id
from portal.web.api import json_bodies
from portal.web.auth import Policy, policy, principal
from portal.web.playback import link_addresses
from portal.web.schemas.access import AccessRecord
from portal.web.schemas.base import (
    ClosedShape,
    EditHeaders,
    Problem,
    Text,
    Timestamp,
    WholeNumber,
)
from portal.web.schemas.validation import recorded_shape, validated
from portal.web.videos import read_video

blueprint = Blueprint("api_access", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])

# Who has what is in an answer may watch.
NO_STORE = "no-store"


class PlaybackLinkRequest(ClosedShape):
    """Asks for a link by which a video can be watched for a while."""

    expires_in_seconds: WholeNumber = Field(
        ge=playback_links.MIN_LIFE_S,
        le=playback_links.MAX_LIFE_S,
        description="How long the link works: a minute to a year.",
    )
    label: Text = Field(
        default="",
        description="Whom or what it is for.",
        json_schema_extra={"maxLength": MAX_NAME_LENGTH},
    )


class CreatedPlaybackLink(Shape):
    """A new link. Whoever has one of its addresses may watch the video."""

    playback_url: Uri = Field(description="The stream, for any player.")
    embed_url: Uri = Field(description="The portal's player, for a frame.")
    expires_at: Timestamp
    id: str


class PlaybackLinkRecord(Shape):
    """A link that works."""

    id: str
    label: str
    playback_url: str = Field(description="Empty while the video is transcoded anew.")
    embed_url: Uri
    created_at: Timestamp
    expires_at: Timestamp
    made_by: str | None = Field(
        description="The e-mail address of the account; null without accounts, or once it is gone."
    )


class PlaybackLinkList(Shape):
    """The links of a video that work, the newest first."""

    links: list[PlaybackLinkRecord]


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_response(AccessRecord)
async def get_access(id: str) -> Response:
    """Read who may see a video.

    The ETag names this version of it; send it back in If-Match with a change.
    """
    response = _access(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(AccessRecord)
@document_response(AccessRecord)
async def put_access(id: str) -> Response:
    """Change who may see a video.

    Once it is answered, it counts for every request; unless the video is public then, that takes
    2 s. If-Match must name the version that was read (or be `*`); when someone else has changed it
    since, nothing is written.
    """
    video = await read_video(id)
    versions = json_bodies.named_versions(is_required=True)
    sent = validated(AccessRecord, await json_bodies.read_json())
    return _access(await visibility.save_access(video.id, sent.value(), versions=versions))


@blueprint.post("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_request(PlaybackLinkRequest)
@document_response(CreatedPlaybackLink, 201)
@document_response(Problem, 409)
async def create_playback_link(id: str) -> Response:
    """Make a link by which anyone who has it can watch a video until it expires.

    `playbackUrl` works in any player of HLS, `embedUrl` in a frame. The video has to be ready. It
    may have 1,000 links at a time.
    """
    video = await read_video(id)
    sent = validated(PlaybackLinkRequest, await json_bodies.read_json())
    link = await playback_links.make(
        video.id, life_s=sent.expires_in_seconds, by=await principal(), label=sent.label
    )
    created = CreatedPlaybackLink(**await _told(link))
    return json_bodies.json_response(created, 201, cache_control=NO_STORE)


@blueprint.get("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_response(PlaybackLinkList)
async def list_playback_links(id: str) -> Response:
    """List the links of a video that work, with their addresses, the newest first."""
    video = await read_video(id)
    links = await playback_links.list_links(video.id)
    records = [PlaybackLinkRecord(**await _told(link)) for link in links]
    return json_bodies.json_response(PlaybackLinkList(links=records), cache_control=NO_STORE)


@blueprint.delete("/videos/<id>/playback-links/<link_id>")
@policy(Policy.EDIT)
async def revoke_playback_link(id: str, link_id: str) -> Response:
    """Revoke a link: its addresses answer 404 from the next request on.

    Addresses of segments that a player was given before work until they expire.
    """
    video = await read_video(id)
    parsed = parse_video_id(link_id)
    if parsed is None or not await playback_links.revoke(parsed, video_id=video.id):
        raise PlaybackLinkNotFound
    return Response(status=204)


def _access(video: Video) -> Response:
    access = visibility.recorded_access(video)
    record = recorded_shape(AccessRecord, access)
    return json_bodies.json_response(record, cache_control="private, no-cache", etag=access.version)


async def _told(link: PlaybackLink) -> dict[str, Any]:
    return {**asdict(link), "id": str(link.id), **await link_addresses(link)}
