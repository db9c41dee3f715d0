"""Videos on other sites: the embeddable player page, and oEmbed, which leads to it.

The player page is the only one that other sites may frame. It sets no cookies, and knows no viewers
but those whom a playback link names. Addresses in oEmbed answers are built from `PUBLIC_URL`, never
from a Host header.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup
from quart import Blueprint, Response, render_template, request, url_for

from portal.accounts.permissions import audience_of
from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video, VideoStatus
from portal.errors import VideoNotFound
from portal.http.addresses import poster_url, public_url
from portal.http.auth import Policy, policy, require_visible
from portal.http.clips import Clip, playable_clip
from portal.http.composition import web_context
from portal.http.server.context import allow_framing, expect_player, state_of
from portal.http.server.headers import OPEN_TO_ALL
from portal.http.videos import is_page_alone, read_progress, read_video
from portal.text import shown, whole_number
from portal.videos.visibility import embed_origin_fault

blueprint = Blueprint("embedding", __name__)

# Time for which consumers may cache an answer.
CACHE_AGE_S = 3600
# Default width of a frame; the height follows from the video's aspect ratio.
FRAME_WIDTH = 640
# Size of a video until its own is known.
DEFAULT_WIDTH = 1280
DEFAULT_HEIGHT = 720
# `allow` names the permissions that the player needs in a frame.
IFRAME = Markup(
    '<iframe src="{src}" width="{width}" height="{height}" title="{title}" frameborder="0"'
    ' allow="autoplay; fullscreen; picture-in-picture" allowfullscreen loading="lazy"></iframe>'
)


@blueprint.get("/embed/<video_id>")
@policy(Policy.PLAY)
async def embed(video_id: str) -> str:
    """Show the player alone, or the state of a video that is not ready."""
    return await render_template("watching/embed.html", **await _player_values(video_id))


@blueprint.get("/embed/<video_id>/stage")
@policy(Policy.PLAY, unavailable_template="watching/_embed_unavailable.html")
async def stage(video_id: str) -> str:
    """Render the fragment with the player, which polls itself during processing."""
    return await render_template("watching/_embed_stage.html", **await _player_values(video_id))


@blueprint.get("/oembed")
@policy(Policy.WATCH)
async def oembed() -> Response:
    """Return the embedding code of a video as oEmbed 1.0 (oembed.com), readable by any site."""
    body: dict[str, Any]
    status = 200
    if request.args.get("format", "json") != "json":
        body = {"detail": "Only JSON is supported. Repeat the request with format=json."}
        status = 501
    else:
        try:
            body = await _oembed_answer()
        except VideoNotFound as exc:
            body = {"detail": exc.detail}
            status = exc.status
    headers = {**OPEN_TO_ALL, "Content-Type": "application/json"}
    return Response(json.dumps(body), status, headers)


async def _player_values(video_id: str) -> dict[str, object]:
    config = web_context().config
    allow_framing(request.scope, framed_by(config.embed_origins))
    expect_player(request.scope)
    video = await read_video(video_id, of_page=True)
    if audience_of(video).is_locked:
        # The frame asks for the password.
        await require_visible(audience_of(video))
    if video.embed_origins:
        # Checked again, so that only sites get into a header.
        sites = [site for site in video.embed_origins if not embed_origin_fault(site)]
        allow_framing(request.scope, framed_by(sites))
    # A playback link grants the player, not the video's page.
    has_page = not state_of(request.scope).playback_token
    page_url = public_url(url_for("video.page", video_id=video.id)) if has_page else ""
    return {
        "video": video,
        "is_alone": await is_page_alone(video),
        "transcoding": await read_progress(video.id),
        # Search engines must not store the address of a private video.
        "canonical_url": "" if audience_of(video).is_private else page_url,
        "frame": {"page_url": page_url},
    }


def framed_by(origins: Sequence[str]) -> str:
    """Return sites as a value of frame-ancestors, together with the portal's own pages."""
    if ANY_SITE in origins:
        return ANY_SITE
    return " ".join(("'self'", *(site for site in origins if site != NO_SITE)))


async def _oembed_answer() -> dict[str, Any]:
    names = ("maxwidth", "maxheight")
    limits = [whole_number(request.args.get(name, ""), max_digits=6) or None for name in names]
    address = request.args.get("url", "")
    video = await _read_video_at(address)
    clip = playable_clip(video, dict(parse_qsl(urlsplit(address).query)))
    width, height = frame_size(video.width, video.height, *limits)
    answer: dict[str, Any] = {
        "version": "1.0",
        "type": "video",
        "provider_name": web_context().config.site_name,
        "provider_url": public_url("/"),
        "title": shown(video.title),
        "cache_age": CACHE_AGE_S,
        "width": width,
        "height": height,
        "html": _iframe_html(video, clip, width=width, height=height),
    }
    if path := poster_url(video):
        # The image has one size for all uses, so this is its size on the page.
        answer["thumbnail_url"] = public_url(path)
        answer |= {"thumbnail_width": width, "thumbnail_height": height}
    return answer


def frame_size(
    width: int | None,
    height: int | None,
    max_width: int | None = None,
    max_height: int | None = None,
) -> tuple[int, int]:
    """Return the size of a frame with the video's aspect ratio, within the limits if given."""
    shape = Fraction(width or DEFAULT_WIDTH, height or DEFAULT_HEIGHT)
    frame_width = max_width or (FRAME_WIDTH if max_height is None else round(max_height * shape))
    if max_height is not None:
        frame_width = min(frame_width, int(max_height * shape))
    frame_width = max(frame_width, 1)
    frame_height = max(int(frame_width / shape), 1)
    # An extremely narrow video can't keep its aspect ratio within the height.
    return frame_width, min(frame_height, max_height or frame_height)


@blueprint.app_template_global()
def embed_code(video: Video, clip: Clip | None = None) -> str:
    """Return the HTML that embeds a video's player, or a clip's, as text to copy."""
    width, height = frame_size(video.width, video.height)
    return _iframe_html(video, clip, width=width, height=height)


def _iframe_html(video: Video, clip: Clip | None, *, width: int, height: int) -> str:
    whole = public_url(url_for("embedding.embed", video_id=video.id))
    src = clip.address(whole) if clip else whole
    return str(IFRAME.format(src=src, width=width, height=height, title=shown(video.title)))


async def _read_video_at(address: str) -> Video:
    try:
        parts = urlsplit(address)
    except ValueError as exc:
        raise VideoNotFound from exc
    own = urlsplit(web_context().config.public_url)
    path = parts.path.removeprefix(own.path)
    folder, _, video_id = path.strip("/").rpartition("/")
    if parts.netloc.lower() != own.netloc.lower() or folder not in {"videos", "embed"}:
        raise VideoNotFound
    video = await read_video(video_id)
    if video.status is not VideoStatus.READY:
        raise VideoNotFound
    return video
