"""HLS from a private bucket: playlists pass through here, segments come from storage.

Playlists are served under the portal's own address with every segment address signed on the
way out. With `PLAYBACK_BASE_URL` set, players are sent to plain addresses there (a CDN in front
of the bucket) and come here for none of it but the storyboard's index. Served is what a ready
video's published attempt wrote, and complete renditions that later attempts added.

A master playlist grows while the ladder is being completed, so nothing keeps it for long; what it
names never changes.
"""

import re
from uuid import UUID

from quart import Blueprint, Response, redirect, request
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.config import Config
from portal.database.models import Video
from portal.errors import NotFound
from portal.storage.bucket import MASTER_MAX_AGE_S
from portal.storage.keys import output_prefix
from portal.transcoding.packaging.master import MASTER_NAME
from portal.transcoding.planning.storyboard import STORYBOARD_NAME
from portal.videos.posters import poster_key
from portal.videos.rows import is_served
from portal.web.body_cache import CachedBody
from portal.web.context import web_context

blueprint = Blueprint("playback", __name__)

PLAYLIST_NAME = re.compile(r"(?:[a-z0-9_-]+/)?[a-z0-9_-]+\.m3u8")
# Any page may read what has these headers.
OPEN_TO_ALL = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
PLAYLIST_TYPE = "application/vnd.apple.mpegurl"
VTT_TYPE = "text/vtt; charset=utf-8"
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
    # The master playlist lies in no rendition's folder, and so only in the published attempt's.
    rendition = name.rpartition("/")[0]
    if not PLAYLIST_NAME.fullmatch(name) or not await is_served(video_id, attempt, rendition):
        raise NotFound
    playlists, key = web_context().playlists, output_prefix(video_id, attempt) + name
    if name == MASTER_NAME:
        found, max_age_s = await playlists.master(key), MASTER_MAX_AGE_S
    else:
        found, max_age_s = await playlists.media(key), await playlists.max_age_s(PLAYLIST_MAX_AGE_S)
    return await _open_to_all(found, content_type=PLAYLIST_TYPE, max_age_s=max_age_s)


@blueprint.get("/videos/<uuid:video_id>/poster.jpg")
async def poster(video_id: UUID) -> WerkzeugResponse:
    """Redirects to the poster image of a ready video."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.published_attempt is None or not video.has_poster:
        raise NotFound
    key = poster_key(video.id, video.published_attempt, video.poster_version)
    response = redirect(await web_context().playlists.address(key))
    # A poster that was replaced is removed, so only an address that names its version is kept.
    is_named = request.args.get("v") == str(video.poster_version)
    max_age_s = await web_context().playlists.max_age_s(POSTER_MAX_AGE_S)
    response.headers["Cache-Control"] = f"private, max-age={max_age_s}" if is_named else "no-cache"
    # Other sites show it beside their links, as oEmbed and Open Graph offer it.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@blueprint.get("/videos/<uuid:video_id>/storyboard.vtt")
async def storyboard(video_id: UUID) -> Response:
    """The pictures for a seek bar, as WebVTT; any player on any site may read it."""
    video = await Video.get_or_none(id=video_id)
    if video is None or video.published_attempt is None or not video.has_storyboard:
        raise NotFound
    key = output_prefix(video.id, video.published_attempt) + STORYBOARD_NAME
    playlists = web_context().playlists
    found = await playlists.storyboard(key)
    max_age_s = await playlists.max_age_s(PLAYLIST_MAX_AGE_S)
    return await _open_to_all(found, content_type=VTT_TYPE, max_age_s=max_age_s)


async def _open_to_all(found: CachedBody, *, content_type: str, max_age_s: int) -> Response:
    cache_control = f"private, max-age={max_age_s}"
    response = await found.answer(content_type=content_type, cache_control=cache_control)
    response.headers.update(OPEN_TO_ALL)
    return response
