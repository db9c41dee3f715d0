"""Videos on other sites: a bare player page to be framed, and oEmbed, by which sites find it.

The player page is the one answer of the portal that others may frame. It sets no cookies, and
knows nothing of who watches. Addresses in oEmbed answers are made from `PUBLIC_URL` alone, never
from what a request says of its host.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup
from quart import Blueprint, Response, render_template, request, url_for

from portal.config.values import ANY_SITE, NO_SITE
from portal.database.models import Video, VideoStatus
from portal.errors import VideoNotFound
from portal.text import shown, whole_number
from portal.videos.reading import audience_of
from portal.videos.visibility import embed_origin_fault
from portal.web.auth import Policy, policy
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.video import poster_url
from portal.web.playback import OPEN_TO_ALL
from portal.web.server.context import allow_framing, expect_player, state_of
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("embedding", __name__)

# Consumers may keep an answer this long.
CACHE_AGE_S = 3600
# A frame's width when nobody says what fits; its height follows from the video's shape.
FRAME_WIDTH = 640
# A player's shape until the video's own is known.
DEFAULT_WIDTH, DEFAULT_HEIGHT = 1280, 720
# `allow` has what the player needs of the browser beyond what any frame may do.
IFRAME = Markup(
    '<iframe src="{src}" width="{width}" height="{height}" title="{title}" frameborder="0"'
    ' allow="autoplay; fullscreen; picture-in-picture" allowfullscreen loading="lazy"></iframe>'
)


@blueprint.app_template_global()
def public_url(path: str) -> str:
    """The absolute address of a path, as people elsewhere reach it."""
    return f"{web_context().config.public_url}{path}"


@blueprint.get("/embed/<video_id>")
@policy(Policy.PLAY)
async def embed(video_id: str) -> str:
    """The player alone, or what there is to say while there is none."""
    return await render_template("embed/page.html", **await _context(video_id))


@blueprint.get("/embed/<video_id>/stage")
@policy(Policy.PLAY)
@fragment(gone="embed/_gone.html")
async def stage(video_id: str) -> str:
    """The fragment of that page that changes; it asks for itself while processing."""
    return await render_template("embed/_stage.html", **await _context(video_id))


@blueprint.get("/oembed")
@policy(Policy.WATCH)
async def oembed() -> Response:
    """How to embed a video, as oEmbed 1.0 (oembed.com) has it; for any site to read."""
    body, status = {"detail": "Answers are JSON; ask with format=json."}, 501
    if request.args.get("format", "json") == "json":
        try:
            body, status = await _oembed(), 200
        except VideoNotFound as exc:
            body, status = {"detail": exc.detail}, exc.status
    headers = {**OPEN_TO_ALL, "Content-Type": "application/json"}
    return Response(json.dumps(body), status, headers)


async def _context(video_id: str) -> dict[str, object]:
    config = web_context().config
    allow_framing(request.scope, _framed_by(config.embed_origins))
    expect_player(request.scope)
    found = await read_video(video_id)
    if found.embed_origins:
        # Whoever may have written them, nothing else gets into a header.
        sites = [it for it in found.embed_origins if not embed_origin_fault(it)]
        allow_framing(request.scope, _framed_by(sites))
    # Who has a playback link need not be let see the page.
    has_page = not state_of(request.scope).playback_token
    page_url = public_url(url_for("video.page", video_id=found.id)) if has_page else ""
    return {
        "video": found,
        "transcoding": await read_progress(found.id),
        # Of a private video nobody is told an address to remember.
        "canonical_url": "" if audience_of(found).is_private else page_url,
        "frame": {"page_url": page_url},
    }


def _framed_by(origins: Sequence[str]) -> str:
    """These sites as frame-ancestors has them; the portal's own pages always may."""
    if ANY_SITE in origins:
        return ANY_SITE
    return " ".join(("'self'", *(it for it in origins if it != NO_SITE)))


async def _oembed() -> dict[str, Any]:
    names = ("maxwidth", "maxheight")
    limits = [whole_number(request.args.get(it, ""), max_digits=6) or None for it in names]
    video = await _video_at(request.args.get("url", ""))
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
        "html": _iframe(video, width=width, height=height),
    }
    if path := poster_url(video):
        # One image serves every size, so what is told is the size to show it in.
        answer["thumbnail_url"] = public_url(path)
        answer["thumbnail_width"], answer["thumbnail_height"] = width, height
    return answer


def frame_size(
    width: int | None,
    height: int | None,
    max_width: int | None = None,
    max_height: int | None = None,
) -> tuple[int, int]:
    """The size of a frame in the video's shape, within limits where they are given."""
    shape = Fraction(width or DEFAULT_WIDTH, height or DEFAULT_HEIGHT)
    frame_width = max_width or (FRAME_WIDTH if max_height is None else round(max_height * shape))
    if max_height is not None:
        frame_width = min(frame_width, int(max_height * shape))
    frame_width = max(frame_width, 1)
    frame_height = max(int(frame_width / shape), 1)
    # A picture of a few columns can't keep its shape within less than its height.
    return frame_width, min(frame_height, max_height or frame_height)


@blueprint.app_template_global()
def embed_code(video: Video) -> str:
    """HTML that shows a video's player on another page, as text to be copied."""
    width, height = frame_size(video.width, video.height)
    return _iframe(video, width=width, height=height)


def _iframe(video: Video, *, width: int, height: int) -> str:
    src = public_url(url_for("embedding.embed", video_id=video.id))
    return str(IFRAME.format(src=src, width=width, height=height, title=shown(video.title)))


async def _video_at(address: str) -> Video:
    try:
        parts, own = urlsplit(address), urlsplit(web_context().config.public_url)
    except ValueError as exc:
        raise VideoNotFound from exc
    path = parts.path.removeprefix(own.path)
    folder, _, video_id = path.strip("/").rpartition("/")
    if parts.netloc.lower() != own.netloc.lower() or folder not in {"videos", "embed"}:
        raise VideoNotFound
    video = await read_video(video_id)
    if video.status is not VideoStatus.READY:
        raise VideoNotFound
    return video
