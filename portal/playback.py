"""HLS from a private bucket: playlists pass through here, segments come from storage.

Playlists are served under the portal's own address with every segment address signed on the
way out. With `PLAYBACK_BASE_URL` set, players are sent to plain addresses there (a CDN in front
of the bucket) and never come here. Only the published attempt of a ready video is served.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

from quart import Blueprint, Response, current_app, redirect, request
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.errors import NotFound, ObjectMissing
from portal.models import Video, VideoStatus
from portal.storage import output_prefix
from portal.transcoding import MASTER_NAME, POSTER_NAME
from portal.transcoding.hls import parse_media_playlist, sign_playlist

if TYPE_CHECKING:
    from portal.config import Config
    from portal.resources import Resources

blueprint = Blueprint("playback", __name__)

PLAYLIST_NAME = re.compile(r"(?:[a-z0-9_-]+/)?[a-z0-9_-]+\.m3u8")
PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
# A player's page, or its cache, may keep a playlist this long; the signatures live far longer.
PLAYLIST_MAX_AGE_S = 300
POSTER_MAX_AGE_S = 300


def master_url(config: Config, video_id: UUID | str, published_attempt: int | None) -> str:
    """Absolute address of the master playlist; empty while there is no published attempt."""
    if published_attempt is None:
        return ""
    base = config.playback_base_url or config.public_url
    return f"{base}/{output_prefix(video_id, published_attempt)}{MASTER_NAME}"


@blueprint.get("/hls/<uuid:video_id>/<int:attempt>/<path:name>")
async def playlist(video_id: UUID, attempt: int, name: str) -> Response:
    """A playlist of a ready video; any player on any site may read it."""
    resources: Resources = current_app.extensions["portal"]
    if not PLAYLIST_NAME.fullmatch(name):
        raise NotFound
    if not await _is_published(video_id, attempt):
        raise NotFound
    text = await _signed_playlist(resources, output_prefix(video_id, attempt), name)
    response = Response(text, content_type=PLAYLIST_TYPE)
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.headers["Cache-Control"] = f"private, max-age={PLAYLIST_MAX_AGE_S}"
    await response.add_etag()
    return await response.make_conditional(request)


@blueprint.get("/videos/<uuid:video_id>/poster.jpg")
async def poster(video_id: UUID) -> WerkzeugResponse:
    """Redirects to the poster image of a ready video."""
    resources: Resources = current_app.extensions["portal"]
    video = await Video.get_or_none(id=video_id)
    if video is None or video.published_attempt is None:
        raise NotFound
    response = redirect(await _poster_url(resources, video.id, video.published_attempt))
    response.headers["Cache-Control"] = f"private, max-age={POSTER_MAX_AGE_S}"
    return response


async def _poster_url(resources: Resources, video_id: UUID, attempt: int) -> str:
    key = output_prefix(video_id, attempt) + POSTER_NAME
    if resources.config.playback_base_url:
        return f"{resources.config.playback_base_url}/{key}"
    return await resources.storage.presign_get(key, ttl_s=resources.config.playback_url_ttl_s)


async def _is_published(video_id: UUID, attempt: int) -> bool:
    return await Video.exists(id=video_id, status=VideoStatus.READY, published_attempt=attempt)


async def _signed_playlist(resources: Resources, prefix: str, name: str) -> str:
    cached = resources.signed_playlists.get(prefix + name)
    if cached is not None:
        return cached
    try:
        text = (await resources.storage.get(prefix + name)).decode()
    except ObjectMissing as exc:
        raise NotFound from exc
    if name != MASTER_NAME:
        folder = (prefix + name).rpartition("/")[0]
        addresses = await resources.storage.presign_get_many(
            {f"{folder}/{uri}" for uri in _uris(text)}, ttl_s=resources.config.playback_url_ttl_s
        )
        text = sign_playlist(text, lambda uri: addresses[f"{folder}/{uri}"])
    resources.signed_playlists[prefix + name] = text
    return text


def _uris(text: str) -> set[str]:
    playlist = parse_media_playlist(text)
    names = {segment.uri for segment in playlist.segments}
    return names | {playlist.map_uri} if playlist.map_uri else names
