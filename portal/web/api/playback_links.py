"""Links by which a video can be watched for a while, by whoever has one."""

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_request, document_response, tag_blueprint

from portal.database.account_models import MAX_NAME_LENGTH
from portal.errors import PlaybackLinkNotFound
from portal.videos import playback_links
from portal.videos.playback_links import MAX_LIFE_S, MIN_LIFE_S
from portal.videos.reading import parse_video_id
from portal.web.api import json_bodies
from portal.web.auth import Policy, policy, principal
from portal.web.playback import link_addresses
from portal.web.videos import read_video

blueprint = Blueprint("api_playback_links", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Playback links"])

# Who has what is in an answer may watch.
NO_STORE = "no-store"


class PlaybackLinkRequest(json_bodies.Shape):
    """Asks for a link by which a video can be watched for a while."""

    expires_in_seconds: json_bodies.WholeNumber = Field(
        ge=MIN_LIFE_S, le=MAX_LIFE_S, description="How long the link works: a minute to a year."
    )
    label: json_bodies.Text = Field(
        default="",
        description="Whom or what it is for.",
        json_schema_extra={"maxLength": MAX_NAME_LENGTH},
    )


class CreatedPlaybackLink(json_bodies.Shape):
    """A new link. Whoever has one of its addresses may watch the video."""

    playback_url: json_bodies.Uri = Field(description="The stream, for any player.")
    embed_url: json_bodies.Uri = Field(description="The portal's player, for a frame.")
    expires_at: json_bodies.Timestamp
    id: str


class PlaybackLinkRecord(json_bodies.Shape):
    """A link that works."""

    id: str
    label: str
    playback_url: str = Field(description="Empty while the video is transcoded anew.")
    embed_url: json_bodies.Uri
    created_at: json_bodies.Timestamp
    expires_at: json_bodies.Timestamp
    made_by: str | None = Field(
        description="The e-mail address of the account; null without accounts, or once it is gone."
    )


class PlaybackLinkList(json_bodies.Shape):
    """The links of a video that work, the newest first."""

    links: list[PlaybackLinkRecord]


@blueprint.post("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_request(PlaybackLinkRequest)
@document_response(CreatedPlaybackLink, 201)
@document_response(json_bodies.Problem, 409)
async def create_playback_link(id: str) -> Response:
    """Make a link by which anyone who has it can watch a video until it expires.

    `playbackUrl` works in any player of HLS, `embedUrl` in a frame. The video has to be ready. It
    may have 1,000 links at a time.
    """
    video = await read_video(id)
    sent = json_bodies.validated(PlaybackLinkRequest, await json_bodies.read_json())
    link = await playback_links.make(
        video.id, life_s=sent.expires_in_seconds, by=await principal(), label=sent.label
    )
    created = CreatedPlaybackLink(
        id=str(link.id), expires_at=link.expires_at, **await link_addresses(link)
    )
    return json_bodies.json_response(created, 201, cache_control=NO_STORE)


@blueprint.get("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_response(PlaybackLinkList)
async def list_playback_links(id: str) -> Response:
    """List the links of a video that work, with their addresses, the newest first."""
    video = await read_video(id)
    records = [
        PlaybackLinkRecord(
            id=str(link.id),
            label=link.label,
            created_at=link.created_at,
            expires_at=link.expires_at,
            made_by=link.made_by,
            **await link_addresses(link),
        )
        for link in await playback_links.list_links(video.id)
    ]
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
