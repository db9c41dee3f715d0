"""The page of a video for who watches it: its player or how far it is, and what it is about.

Every fragment has an address of its own; forms work without scripts, too.
"""

from contextlib import suppress
from typing import Any

from quart import Blueprint, Response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.accounts.people import names_of
from portal.database.models import Video, VideoStatus
from portal.errors import NotFound, NothingToRetry
from portal.processing.sources import SourceChanged, check_source
from portal.videos import publishing
from portal.videos.library import related_videos
from portal.videos.preview import WatchablePart, read_watchable_part
from portal.videos.reading import audience_of, master_url, preview_url
from portal.web.auth import Policy, may_edit, policy, principal
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.playlists import PRIVATE_URL_TTL_S
from portal.web.server.context import expect_player
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("video", __name__)

RELATED = 8


@blueprint.app_template_global()
def poster_url(video: Video) -> str | None:
    """Address of a video's poster, if it has one."""
    if video.published_attempt is None or not video.has_poster:
        return None
    return url_for("playback.poster", video_id=video.id, v=video.poster_version)


@blueprint.app_template_global()
def storyboard_url(video: Video) -> str | None:
    """Address of the pictures for a video's time bar, if it has them."""
    if video.published_attempt is None or not video.has_storyboard:
        return None
    return url_for("playback.storyboard", video_id=video.id)


@blueprint.app_template_global()
def original_url(video: Video) -> str | None:
    """Address of the uploaded file, where it may be had."""
    return url_for("video.original", video_id=video.id) if web_context().config.downloads else None


@blueprint.app_template_global()
def stream_url(video: Video) -> str:
    """Address of a video's stream for players elsewhere; empty while there is none."""
    is_private = audience_of(video).is_private
    config = web_context().config
    return master_url(config, video.id, video.published_attempt, is_private=is_private)


@blueprint.app_template_global()
def player_source(video: Video) -> str:
    """Where the player of this page finds the stream, or what is made of it.

    The portal's own playlists are reached by the name the viewer used, which need not be the public
    one, and below the playback link by which the page was.
    """
    config = web_context().config
    address = stream_url(video) or preview_url(config.public_url, video.id)
    path = address.removeprefix(config.public_url)
    return address if path == address else request.root_path + path


@blueprint.app_template_global()
async def watchable_part(video: Video) -> WatchablePart | None:
    """Return how much can be watched of a video that is being processed."""
    return await read_watchable_part(video) if video.status is VideoStatus.PROCESSING else None


@blueprint.app_template_global()
def retry_helps(video: Video) -> bool:
    """Whether another try of a failed video may end otherwise."""
    return video.failure_code in publishing.RETRY_HELPS


@blueprint.get("/videos/<video_id>")
@policy(Policy.WATCH)
async def page(video_id: str) -> str:
    """One video for who watches it."""
    expect_player(request.scope)
    found = await read_video(video_id)
    return await render_template(
        "videos/detail.html",
        **await _state(found),
        categories=await web_context().categories.names(),
        by=(await names_of([found.owner_id])).get(found.owner_id, ""),
    )


@blueprint.get("/videos/<video_id>/status")
@policy(Policy.WATCH)
@fragment()
async def status(video_id: str) -> str:
    """The fragment with a video's state alone; it asks for itself again while processing."""
    return await render_template("videos/_status.html", **await _state(await read_video(video_id)))


@blueprint.get("/videos/<video_id>/remaining")
@policy(Policy.WATCH)
@fragment()
async def remaining(video_id: str) -> str | Response:
    """The fragment with what is missing of a video that plays; it asks for itself until done."""
    found = await read_video(video_id)
    if found.status is not VideoStatus.FAILED:
        return await render_template("videos/_remaining.html", **await _state(found))
    # What could be watched meanwhile can't be any more.
    failed = await render_template("videos/_status.html", **await _state(found))
    return Response(failed, headers={"HX-Retarget": "#status", "HX-Reswap": "outerHTML"})


@blueprint.get("/videos/<video_id>/share")
@policy(Policy.WATCH)
@fragment()
async def share(video_id: str) -> str:
    """The fragment with a video's addresses; a page fetches it once the video plays."""
    found = await read_video(video_id)
    return await render_template("videos/_share.html", **await _state(found), is_news=True)


@blueprint.get("/videos/<video_id>/related")
@policy(Policy.WATCH)
@fragment()
async def related(video_id: str) -> str:
    """The fragment with other videos to watch; a page fetches it once its own is there."""
    found = await read_video(video_id)
    others = await related_videos(found, seen_by=await principal(), limit=RELATED)
    names = await names_of(it.owner_id for it in others)
    return await render_template("videos/_related.html", videos=others, names=names)


@blueprint.post("/videos/<video_id>/retry")
@policy(Policy.EDIT)
async def retry(video_id: str) -> WerkzeugResponse:
    """Try again what failed, and show the page."""
    found = await _retried(video_id)
    return redirect(url_for("video.page", video_id=found.id), 303)


@blueprint.post("/videos/<video_id>/status")
@policy(Policy.EDIT)
@fragment()
async def retry_status(video_id: str) -> str:
    """Try again what failed, and show the state alone."""
    return await render_template("videos/_status.html", **await _state(await _retried(video_id)))


@blueprint.post("/videos/<video_id>/remaining")
@policy(Policy.EDIT)
@fragment()
async def retry_remaining(video_id: str) -> str:
    """Try again what failed of a ready video, and show what is missing alone."""
    found = await _retried(video_id)
    return await render_template("videos/_remaining.html", **await _state(found))


@blueprint.get("/videos/<video_id>/original")
@policy(Policy.WATCH)
async def original(video_id: str) -> WerkzeugResponse:
    """Redirects to the uploaded file, where the operator allows that."""
    web = web_context()
    if not web.config.downloads:
        raise NotFound
    found = await read_video(video_id)
    try:
        await check_source(found, web.storage)
    except SourceChanged as exc:
        raise NotFound("The uploaded file was changed or removed after it was sent.") from exc
    address = await web.storage.public.presign_download(
        found.storage_key,
        file_name=found.file_name,
        # Whoever may see it: it stays where it is when the video becomes private.
        ttl_s=min(web.config.playback_url_ttl_s, PRIVATE_URL_TTL_S),
    )
    response = redirect(address)
    response.headers["Cache-Control"] = "no-store"
    return response


async def _state(found: Video) -> dict[str, Any]:
    """What templates see of how a video stands."""
    transcoding = await read_progress(found.id)
    return {"video": found, "transcoding": transcoding, "may_edit": await may_edit(found)}


async def _retried(video_id: str) -> Video:
    found = await read_video(video_id)
    # Pressed twice, or pressed by two: the page shows that it is on its way.
    with suppress(NothingToRetry):
        await publishing.retry_transcode(found, queue=web_context().queue)
    return await read_video(video_id)
