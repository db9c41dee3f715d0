"""The HTML pages and their fragments: thin views that ask a use case and render.

Every fragment has an address of its own; forms work without scripts, too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from quart import Blueprint, current_app, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal import publishing
from portal.errors import NothingToRetry, VideoNotFound
from portal.models import Video
from portal.origins import own_hosts, require_same_origin
from portal.page_views import remaining_view, status_view, video_card, video_page
from portal.progress import Progress, read_progress

if TYPE_CHECKING:
    from portal.resources import Resources

blueprint = Blueprint("pages", __name__)

PAGE_SIZE = 24


@blueprint.get("/")
async def library() -> str:
    """The library, newest first, a page at a time."""
    before = request.args.get("before")
    page = await publishing.list_videos(before=before, limit=PAGE_SIZE)
    older_url = url_for("pages.library", before=page.next_cursor) if page.next_cursor else None
    return await render_template(
        "library/index.html",
        cards=[video_card(video) for video in page.videos],
        is_first_page=not before,
        older_url=older_url,
    )


@blueprint.get("/upload")
async def upload() -> str:
    """The upload form; its scripts talk to the JSON API and to storage."""
    return await render_template(
        "upload/index.html", categories=await _resources().categories.names()
    )


@blueprint.get("/videos/<video_id>")
async def video(video_id: str) -> str:
    """One video: its player or its progress, and everything known of it."""
    found = await publishing.get_video(video_id)
    progress = await _progress(found)
    names = await _resources().categories.names()
    return await render_template(
        "videos/detail.html",
        page=video_page(found, progress, category_names=names),
        status=status_view(found, progress, config=_resources().config),
        remaining=remaining_view(found, progress),
    )


@blueprint.get("/videos/<video_id>/status")
async def status(video_id: str) -> str:
    """The fragment with a video's state alone; it asks for itself again while processing."""
    return await _status_fragment(await publishing.get_video(video_id))


@blueprint.get("/videos/<video_id>/remaining")
async def remaining(video_id: str) -> str:
    """The fragment with what is missing of a ready video; it asks for itself until done."""
    return await _remaining_fragment(await publishing.get_video(video_id))


@blueprint.get("/videos/<video_id>/facts")
async def facts(video_id: str) -> str:
    """The fragment with what is known of a video; a page fetches it once that has changed."""
    found = await publishing.get_video(video_id)
    names = await _resources().categories.names()
    page = video_page(found, await _progress(found), category_names=names)
    return await render_template("videos/_facts.html", page=page)


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
    resources = _resources()
    require_same_origin(request.headers, hosts=own_hosts(request.host, resources.config))
    found = await publishing.get_video(video_id)
    # Pressed twice, or pressed by two: the page shows that it is on its way.
    with suppress(NothingToRetry):
        await publishing.retry_transcode(found, queue=resources.queue)
    return await publishing.get_video(video_id)


async def _status_fragment(found: Video) -> str:
    progress = await _progress(found)
    return await render_template(
        "videos/_status.html",
        status=status_view(found, progress, config=_resources().config),
        remaining=remaining_view(found, progress),
    )


async def _remaining_fragment(found: Video) -> str:
    view = remaining_view(found, await _progress(found))
    return await render_template("videos/_remaining.html", remaining=view)


async def _progress(found: Video) -> Progress:
    progress = await read_progress(found.id)
    if progress is None:
        raise VideoNotFound
    return progress


def _resources() -> Resources:
    resources: Resources = current_app.extensions["portal"]
    return resources
