"""JSON API of access: the caller, the audience of a video, and its playback links."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.accounts import tokens
from portal.accounts.permissions import usable_scopes
from portal.database.account_models import MAX_NAME_LENGTH, Role, Scope
from portal.database.models import Video
from portal.errors import PlaybackLinkNotFound
from portal.events.records import Shape, Uri
from portal.http import json_bodies
from portal.http.addresses import link_addresses
from portal.http.auth import Policy, policy, principal
from portal.http.schemas.access import AccessRecord
from portal.http.schemas.base import ClosedShape, EditHeaders, Problem, Text, Timestamp, WholeNumber
from portal.http.schemas.validation import recorded_shape, validated
from portal.http.videos import read_video, require_video
from portal.videos import playback_links, visibility
from portal.videos.playback_links import PlaybackLink
from portal.videos.reading import parse_video_id

blueprint = Blueprint("api_access", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])

# Anyone who has an address of the answer may watch.
NO_STORE = "no-store"


class SenderRecord(Shape):
    """Account that a request acts for, with its role and scopes."""

    account_id: UUID | None = Field(description="Null without an account.")
    email: str | None = Field(description="E-mail address of the account; null without an account.")
    role: Role | None = Field(
        description="Null without credentials. On a portal without accounts everyone is an owner."
    )
    scopes: list[Scope] = Field(
        description="Scopes that the role and the API token, if any, allow."
    )
    token_name: str | None = Field(description="Null without an API token.")
    expires_at: Timestamp | None = Field(description="End of the API token; null if it has none.")


class PlaybackLinkRequest(ClosedShape):
    """Request for a link that plays a video until it expires."""

    expires_in_seconds: WholeNumber = Field(
        ge=playback_links.MIN_LIFE_S,
        le=playback_links.MAX_LIFE_S,
        description="Lifetime of the link: a minute to a year.",
    )
    label: Text = Field(
        default="",
        description="Purpose or recipient of the link.",
        json_schema_extra={"maxLength": MAX_NAME_LENGTH},
    )


class CreatedPlaybackLink(Shape):
    """New playback link. Anyone who has one of its addresses may watch the video."""

    playback_url: Uri = Field(description="HLS master playlist, for any player.")
    embed_url: Uri = Field(description="The portal's player, for a frame.")
    expires_at: Timestamp = Field(description="End of the link.")
    id: str = Field(description="Unique identifier, to revoke the link.")


class PlaybackLinkRecord(CreatedPlaybackLink):
    """Playback link that has not expired."""

    label: str = Field(description="Name for editors; may be empty.")
    playback_url: str = Field(description="Empty while the video is transcoded again.")
    created_at: Timestamp = Field(description="Time of the link's creation.")
    made_by: str | None = Field(
        description="E-mail address of the account; null without accounts, or once it is removed."
    )


class PlaybackLinkList(Shape):
    """Working playback links of a video, the newest first."""

    links: list[PlaybackLinkRecord] = Field(description="The links.")


@blueprint.get("/me")
@policy(Policy.SELF)
@document_response(SenderRecord)
async def get_me() -> Response:
    """Read the account and role of your requests, and the scopes of your API token.

    An invalid API token returns 401.
    """
    sender = await principal()
    usable = usable_scopes(sender.role)
    record = SenderRecord(
        account_id=sender.account_id,
        email=sender.email or None,
        role=sender.role,
        scopes=[scope for scope in usable if sender.scopes is None or scope in sender.scopes],
        token_name=sender.token_name or None,
        expires_at=await tokens.expiry_of(sender.token_id) if sender.token_id else None,
    )
    return json_bodies.json_response(record, cache_control=NO_STORE)


@blueprint.get("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_response(AccessRecord)
async def get_access(id: str) -> Response:
    """Read the audience of a video.

    Send the ETag back in If-Match when you change the audience.
    """
    response = _access_response(await read_video(id))
    return await response.make_conditional(request)


@blueprint.put("/videos/<id>/access")
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(AccessRecord)
@document_response(AccessRecord)
async def put_access(id: str) -> Response:
    """Change the audience of a video.

    The change is in effect when you get the response, which takes up to 2 s unless the video is
    public now. If-Match must name the version that you read, or be `*`. If someone else has changed
    the audience since, nothing is written.
    """
    video_id = await require_video(id)
    versions = json_bodies.named_versions(is_required=True)
    record = validated(AccessRecord, await json_bodies.read_json())
    return _access_response(
        await visibility.save_access(video_id, record.value(), versions=versions)
    )


@blueprint.post("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_request(PlaybackLinkRequest)
@document_response(CreatedPlaybackLink, 201)
@document_response(Problem, 409)
async def create_playback_link(id: str) -> Response:
    """Create a link that lets anyone watch a video until the link expires.

    `playbackUrl` works in any HLS player, `embedUrl` in a frame. The video must be ready, and can
    have up to 1,000 links at a time.
    """
    video_id = await require_video(id)
    requested = validated(PlaybackLinkRequest, await json_bodies.read_json())
    link = await playback_links.make(
        video_id, life_s=requested.expires_in_seconds, by=await principal(), label=requested.label
    )
    created = CreatedPlaybackLink(**await _link_members(link))
    return json_bodies.json_response(created, 201, cache_control=NO_STORE)


@blueprint.get("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_response(PlaybackLinkList)
async def list_playback_links(id: str) -> Response:
    """List the working playback links of a video with their addresses, the newest first."""
    video_id = await require_video(id)
    links = await playback_links.list_links(video_id)
    records = [PlaybackLinkRecord(**await _link_members(link)) for link in links]
    return json_bodies.json_response(PlaybackLinkList(links=records), cache_control=NO_STORE)


@blueprint.delete("/videos/<id>/playback-links/<link_id>")
@policy(Policy.EDIT)
async def revoke_playback_link(id: str, link_id: str) -> Response:
    """Revoke a playback link.

    Its addresses return 404 from the next request on. Segment addresses that a player already has
    work until they expire.
    """
    video_id = await require_video(id)
    parsed_id = parse_video_id(link_id)
    if parsed_id is None or not await playback_links.revoke(parsed_id, video_id=video_id):
        raise PlaybackLinkNotFound
    return Response(status=204)


def _access_response(video: Video) -> Response:
    access = visibility.recorded_access(video)
    record = recorded_shape(AccessRecord, access)
    return json_bodies.json_response(record, cache_control="private, no-cache", etag=access.version)


async def _link_members(link: PlaybackLink) -> dict[str, Any]:
    return {**asdict(link), "id": str(link.id), **await link_addresses(link)}
