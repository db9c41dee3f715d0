"""HLS from a private bucket: playlists pass through here, segments come from storage.

Playlists are served under the portal's own address with every segment address signed on the
way out. With `PLAYBACK_BASE_URL` set, players are sent to plain addresses there (a CDN in front
of the bucket) and come here for none of it but the storyboard's index. Served is what a ready
video's published attempt wrote, and complete renditions that later attempts added.

A master playlist grows while the ladder is being completed, so nothing keeps it for long; what it
names never changes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

from quart import Blueprint, Response, redirect, request
from tortoise.connection import get_connection
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import Video
from portal.errors import NotFound, ObjectMissing
from portal.storage.bucket import MASTER_MAX_AGE_S
from portal.storage.keys import output_prefix
from portal.transcoding.packaging.hls import parse_media_playlist, sign_playlist
from portal.transcoding.packaging.master import MASTER_NAME
from portal.transcoding.planning.storyboard import SPRITE_LINE, STORYBOARD_NAME
from portal.videos.posters import poster_key
from portal.web.body_cache import SharedBody, shared_body
from portal.web.context import current_resources

if TYPE_CHECKING:
    from portal.config import Config
    from portal.web.resources import Resources

blueprint = Blueprint("playback", __name__)

PLAYLIST_NAME = re.compile(r"(?:[a-z0-9_-]+/)?[a-z0-9_-]+\.m3u8")
PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
VTT_TYPE = "text/vtt; charset=utf-8"
# A player's page, or its cache, may keep a playlist this long; the signatures live far longer.
PLAYLIST_MAX_AGE_S = 300
POSTER_MAX_AGE_S = 300

IS_SERVED = """
SELECT 1 FROM videos
WHERE id = %s AND status = 'ready' AND (
  published_attempt = %s
  OR EXISTS (
    SELECT 1 FROM renditions
    WHERE video_id = videos.id AND attempt_number = %s AND name = %s AND state = 'complete'
  )
)
"""


def master_url(config: Config, video_id: UUID | str, published_attempt: int | None) -> str:
    """Absolute address of the master playlist; empty while there is no published attempt."""
    if published_attempt is None:
        return ""
    base = config.playback_base_url or config.public_url
    return f"{base}/{output_prefix(video_id, published_attempt)}{MASTER_NAME}"


@blueprint.get("/hls/<uuid:video_id>/<int:attempt>/<path:name>")
async def playlist(video_id: UUID, attempt: int, name: str) -> Response:
    """A playlist of a ready video; any player on any site may read it."""
    resources = current_resources()
    if not PLAYLIST_NAME.fullmatch(name):
        raise NotFound
    if not await _is_served(video_id, attempt, name):
        raise NotFound
    prefix = output_prefix(video_id, attempt)
    if name == MASTER_NAME:
        found, max_age_s = shared_body(await _text(resources, prefix + name)), MASTER_MAX_AGE_S
    else:
        found, max_age_s = await _signed_playlist(resources, prefix + name), PLAYLIST_MAX_AGE_S
    return await _open_to_all(found, content_type=PLAYLIST_TYPE, max_age_s=max_age_s)


@blueprint.get("/videos/<uuid:video_id>/poster.jpg")
async def poster(video_id: UUID) -> WerkzeugResponse:
    """Redirects to the poster image of a ready video."""
    resources = current_resources()
    video = await Video.get_or_none(id=video_id)
    if video is None or video.published_attempt is None or not video.has_poster:
        raise NotFound
    key = poster_key(video.id, video.published_attempt, video.poster_version)
    response = redirect(await _poster_url(resources, key))
    # A poster that was replaced is removed, so only an address that names its version is kept.
    is_named = request.args.get("v") == str(video.poster_version)
    kept = f"private, max-age={POSTER_MAX_AGE_S}" if is_named else "no-cache"
    response.headers["Cache-Control"] = kept
    # Other sites show it beside their links, as oEmbed and Open Graph offer it.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@blueprint.get("/videos/<uuid:video_id>/storyboard.vtt")
async def storyboard(video_id: UUID) -> Response:
    """The pictures for a seek bar, as WebVTT; any player on any site may read it."""
    resources = current_resources()
    video = await Video.get_or_none(id=video_id)
    if video is None or video.published_attempt is None or not video.has_storyboard:
        raise NotFound
    found = await _addressed_storyboard(resources, output_prefix(video.id, video.published_attempt))
    return await _open_to_all(found, content_type=VTT_TYPE, max_age_s=PLAYLIST_MAX_AGE_S)


async def _poster_url(resources: Resources, key: str) -> str:
    if resources.config.playback_base_url:
        return f"{resources.config.playback_base_url}/{key}"
    return await resources.storage.presign_get(key, ttl_s=resources.config.playback_url_ttl_s)


async def _open_to_all(found: SharedBody, *, content_type: str, max_age_s: int) -> Response:
    cache_control = f"private, max-age={max_age_s}"
    response = await found.answer(content_type=content_type, cache_control=cache_control)
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


async def _is_served(video_id: UUID, attempt: int, name: str) -> bool:
    # The master playlist lies in no rendition's folder, and so only in the published attempt's.
    rendition = name.rpartition("/")[0]
    values = [video_id, attempt, attempt, rendition]
    return bool(await get_connection("default").execute_query_dict(IS_SERVED, values))


async def _signed_playlist(resources: Resources, key: str) -> SharedBody:
    async def signed() -> str:
        text = await _text(resources, key)
        folder = key.rpartition("/")[0]
        addresses = await resources.storage.presign_get_many(
            {f"{folder}/{uri}" for uri in _uris(text)}, ttl_s=resources.config.playback_url_ttl_s
        )
        return sign_playlist(text, lambda uri: addresses[f"{folder}/{uri}"])

    return await resources.signed_playlists.get(key, signed)


def _uris(text: str) -> set[str]:
    playlist = parse_media_playlist(text)
    names = {segment.uri for segment in playlist.segments}
    return names | {playlist.map_uri} if playlist.map_uri else names


async def _addressed_storyboard(resources: Resources, prefix: str) -> SharedBody:
    async def addressed() -> str:
        text = await _text(resources, prefix + STORYBOARD_NAME)
        keys = {prefix + match["name"] for match in SPRITE_LINE.finditer(text)}
        addresses = await _addresses(resources, keys)
        return SPRITE_LINE.sub(lambda match: addresses[prefix + match["name"]], text)

    return await resources.signed_playlists.get(prefix + STORYBOARD_NAME, addressed)


async def _addresses(resources: Resources, keys: set[str]) -> dict[str, str]:
    config = resources.config
    if config.playback_base_url:
        return {key: f"{config.playback_base_url}/{key}" for key in keys}
    return await resources.storage.presign_get_many(keys, ttl_s=config.playback_url_ttl_s)


async def _text(resources: Resources, key: str) -> str:
    try:
        return (await resources.storage.get(key)).decode()
    except ObjectMissing as exc:
        raise NotFound from exc
