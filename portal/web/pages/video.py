"""The upload page and the page of a video with its fragments: thin views that render.

Every fragment has an address of its own; forms work without scripts, too.
"""

from contextlib import suppress

from quart import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.database.models import PosterRequest, Video
from portal.database.states import VideoStatus
from portal.errors import NothingToRetry, Unavailable
from portal.videos import publishing
from portal.web.context import read_progress, read_video, web_context
from portal.web.pages.fragments import polled
from portal.web.pages.poster_views import PosterView, poster_view
from portal.web.pages.status_views import remaining_view, status_view
from portal.web.pages.upload_views import limits_in_words
from portal.web.pages.video_views import facts_view, share_view, summary_view
from portal.web.server.response_cache import allow_sharing

blueprint = Blueprint("pages", __name__)


@blueprint.get("/upload")
async def upload() -> str:
    """The upload form; its scripts talk to the JSON API and to storage."""
    config = web_context().config
    return await render_template(
        "upload/index.html",
        categories=await web_context().categories.names(),
        max_size_bytes=config.max_source_bytes,
        max_duration_s=config.max_source_duration_s,
        max_pixels=config.max_source_pixels,
        limits=limits_in_words(config),
        storage_url=await _storage_url(),
    )


async def _storage_url() -> str:
    """Where browsers send files; empty where storage isn't set up, so that nothing can be sent."""
    try:
        return await web_context().storage.public.origin()
    except Unavailable:
        return ""


@blueprint.get("/videos/<video_id>")
async def video(video_id: str) -> str:
    """One video: its player or its progress, and everything known of it."""
    allow_sharing(request.scope)
    found = await read_video(video_id)
    progress = await read_progress(found.id)
    names = await web_context().categories.names()
    return await render_template(
        "videos/detail.html",
        summary=summary_view(found),
        facts=facts_view(found, progress, category_names=names),
        share=share_view(found, web_context().config),
        status=status_view(found, progress, config=web_context().config),
        remaining=remaining_view(found, progress),
        poster=await _poster(found),
    )


@blueprint.get("/videos/<video_id>/status")
@polled(gone="videos/_gone.html")
async def status(video_id: str) -> str:
    """The fragment with a video's state alone; it asks for itself again while processing."""
    allow_sharing(request.scope)
    return await _status_fragment(await read_video(video_id))


@blueprint.get("/videos/<video_id>/remaining")
@polled(gone="videos/_gone.html")
async def remaining(video_id: str) -> str:
    """The fragment with what is missing of a ready video; it asks for itself until done."""
    allow_sharing(request.scope)
    return await _remaining_fragment(await read_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
async def facts(video_id: str) -> str:
    """The fragment with what is known of a video; a page fetches it once that has changed."""
    found = await read_video(video_id)
    names = await web_context().categories.names()
    view = facts_view(found, await read_progress(found.id), category_names=names)
    return await render_template("videos/_facts.html", facts=view)


@blueprint.get("/videos/<video_id>/share")
async def share(video_id: str) -> str:
    """The fragment with a video's addresses; a page fetches it once the video plays."""
    found = await read_video(video_id)
    view = share_view(found, web_context().config)
    return await render_template("videos/_share.html", share=view)


@blueprint.post("/videos/<video_id>/retry")
async def retry(video_id: str) -> WerkzeugResponse:
    """Try again what failed, and show the page."""
    found = await _retried(video_id)
    return redirect(url_for("pages.video", video_id=found.id), 303)


@blueprint.post("/videos/<video_id>/status")
async def retry_status(video_id: str) -> str:
    """Try again what failed, and show the state alone."""
    return await _status_fragment(await _retried(video_id))


@blueprint.post("/videos/<video_id>/remaining")
async def retry_remaining(video_id: str) -> str:
    """Try again what failed of a ready video, and show what is missing alone."""
    return await _remaining_fragment(await _retried(video_id))


async def _retried(video_id: str) -> Video:
    web = web_context()
    found = await publishing.get_video(video_id)
    # Pressed twice, or pressed by two: the page shows that it is on its way.
    with suppress(NothingToRetry):
        await publishing.retry_transcode(found, queue=web.queue)
    return await publishing.get_video(video_id)


async def _status_fragment(found: Video) -> str:
    progress = await read_progress(found.id)
    return await render_template(
        "videos/_status.html",
        status=status_view(found, progress, config=web_context().config),
        remaining=remaining_view(found, progress),
        poster=await _poster(found),
    )


async def _poster(found: Video) -> PosterView:
    # Many poll a video that has none to choose yet.
    is_ready = found.status is VideoStatus.READY
    asked = await PosterRequest.get_or_none(video_id=found.id) if is_ready else None
    return poster_view(found, asked)


async def _remaining_fragment(found: Video) -> str:
    view = remaining_view(found, await read_progress(found.id))
    return await render_template("videos/_remaining.html", remaining=view)
