"""JSON API of the playback links of a video."""

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_request, document_response, tag_blueprint

from portal.database.account_models import MAX_NAME_LENGTH
from portal.errors import PlaybackLinkNotFound
from portal.events.records import Shape, Uri
from portal.http.addresses import link_addresses
from portal.http.auth import Policy, policy, principal
from portal.http.json_bodies import NO_STORE, json_response, read_json
from portal.http.schemas.base import ClosedShape, Problem, Text, Timestamp, WholeNumber
from portal.http.schemas.validation import validated
from portal.http.videos import require_video
from portal.videos import playback_links
from portal.videos.playback_links import PlaybackLink, Viewer
from portal.videos.reading import parse_video_id

blueprint = Blueprint("api_links", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Access"])


# Without control characters.
Name = Annotated[
    Text,
    Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$"),
]


class LinkViewer(ClosedShape):
    """Viewer whom another system names. With `VIEWER_NAMES=on` it is part of the statistics."""

    id: Name = Field(description="Identifier in the other system.")
    label: Name = Field(description="Name that the editors of the video see.")


class PlaybackLinkRequest(ClosedShape):
    """Request for a link that plays a video until it expires."""

    expires_in_seconds: WholeNumber = Field(
        ge=playback_links.MIN_LIFE_S,
        le=playback_links.MAX_LIFE_S,
        description="Lifetime of the link: a minute to a year.",
    )
    label: Text = Field(
        default="",
        description="Purpose or recipient of the link. Without effect if it has a `viewer`.",
        json_schema_extra={"maxLength": MAX_NAME_LENGTH},
    )
    viewer: LinkViewer | None = Field(
        default=None, description="Viewer whom the link names, so that its addresses are theirs."
    )


class CreatedPlaybackLink(Shape):
    """New playback link. Anyone who has one of its addresses may watch the video."""

    playback_url: Uri = Field(description="HLS master playlist, for any player.")
    embed_url: Uri = Field(description="The portal's player, for a frame.")
    expires_at: Timestamp = Field(description="End of the link.")
    id: str = Field(
        description="Unique identifier, to revoke the link. All links of a video with a `viewer` "
        "have the same."
    )
    viewer: LinkViewer | None = Field(default=None, description="Viewer whom the link names.")


class PlaybackLinkRecord(CreatedPlaybackLink):
    """Playback link that has not expired."""

    label: str = Field(description="Name for editors; may be empty.")
    playback_url: str = Field(description="Empty while the video is transcoded again.")
    created_at: Timestamp = Field(description="Time of the link's creation.")
    made_by: str | None = Field(
        description="E-mail address of the account; null without accounts, or once it is removed."
    )
    is_for_viewers: bool = Field(
        description="True for the one record of all links with a `viewer`. Its own addresses name "
        "nobody."
    )


class PlaybackLinkList(Shape):
    """Working playback links of a video, the newest first."""

    links: list[PlaybackLinkRecord] = Field(description="The links.")


@blueprint.post("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_request(PlaybackLinkRequest)
@document_response(CreatedPlaybackLink, 201)
@document_response(Problem, 409)
async def create_playback_link(id: str) -> Response:
    """Create a link that lets anyone watch a video until the link expires.

    `playbackUrl` works in any HLS player, `embedUrl` in a frame. The video must be ready, and can
    have up to 1,000 links at a time. All links with a `viewer` count as one, so a program may make
    one whenever it shows the player.
    """
    video_id = await require_video(id)
    requested = validated(PlaybackLinkRequest, await read_json())
    link = await playback_links.make(
        video_id,
        life_s=requested.expires_in_seconds,
        by=await principal(),
        label="" if requested.viewer else requested.label,
        viewer=Viewer(**requested.viewer.model_dump()) if requested.viewer else None,
    )
    created = CreatedPlaybackLink(**await _link_members(link))
    return json_response(created, 201, cache_control=NO_STORE)


@blueprint.get("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_response(PlaybackLinkList)
async def list_playback_links(id: str) -> Response:
    """List the working playback links of a video with their addresses, the newest first."""
    video_id = await require_video(id)
    links = await playback_links.list_links(video_id)
    records = [PlaybackLinkRecord(**await _link_members(link)) for link in links]
    return json_response(PlaybackLinkList(links=records), cache_control=NO_STORE)


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


async def _link_members(link: PlaybackLink) -> dict[str, Any]:
    return {**asdict(link), "id": str(link.id), **await link_addresses(link)}
