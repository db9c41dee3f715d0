"""Links by which a video can be watched for a while, by whoever has one."""

from pydantic import BaseModel
from quart import Blueprint, Response
from quart_schema import document_request, document_response, tag_blueprint

from portal.errors import PlaybackLinkNotFound
from portal.videos import playback_links, publishing
from portal.web.api.json_bodies import json_response, read_json, validated
from portal.web.api.openapi import document_problems
from portal.web.api.playback_link_shapes import (
    CreatedPlaybackLink,
    PlaybackLinkList,
    PlaybackLinkRequest,
    created_link,
    link_record,
)
from portal.web.auth import Policy, policy, principal
from portal.web.playback_addresses import link_addresses

blueprint = Blueprint("api_playback_links", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Playback links"])


@blueprint.post("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_request(PlaybackLinkRequest)
@document_response(CreatedPlaybackLink, 201)
@document_problems(400, 404, 409, 413, 415, 422, 503)
async def create_playback_link(id: str) -> Response:
    """Make a link by which anyone who has it can watch a video until it expires.

    `playbackUrl` works in any player of HLS, `embedUrl` in a frame. The video has to be ready. It
    may have 1,000 links at a time.
    """
    video = await publishing.get_video(id)
    sent = validated(PlaybackLinkRequest, await read_json())
    link = await playback_links.make(video.id, life_s=sent.expires_in_seconds, by=await principal())
    return _answer(created_link(link, await link_addresses(link)), 201)


@blueprint.get("/videos/<id>/playback-links")
@policy(Policy.EDIT)
@document_response(PlaybackLinkList)
@document_problems(404, 503)
async def list_playback_links(id: str) -> Response:
    """List the links of a video that work, with their addresses, the newest first."""
    video = await publishing.get_video(id)
    found = await playback_links.list_links(video.id)
    records = [link_record(link, await link_addresses(link)) for link in found]
    return _answer(PlaybackLinkList(links=records))


@blueprint.delete("/videos/<id>/playback-links/<link_id>")
@policy(Policy.EDIT)
@document_problems(404, 503)
async def revoke_playback_link(id: str, link_id: str) -> Response:
    """Revoke a link: its addresses answer 404 from the next request on.

    Addresses of segments that a player was given before work until they expire.
    """
    video = await publishing.get_video(id)
    parsed = publishing.parse_video_id(link_id)
    if parsed is None or not await playback_links.revoke(parsed, video_id=video.id):
        raise PlaybackLinkNotFound
    return Response(status=204)


def _answer(shape: BaseModel, status: int = 200) -> Response:
    response = json_response(shape, status)
    # Who has what is in it may watch.
    response.headers["Cache-Control"] = "no-store"
    return response
