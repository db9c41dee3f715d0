"""The upload page and the page of a video with its fragments: thin views that render.

Every fragment has an address of its own; forms work without scripts, too.
"""

from contextlib import suppress

from quart import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.accounts.people import name_of, names_of
from portal.database.models import Video
from portal.errors import NothingToRetry
from portal.videos import publishing
from portal.videos.library import related_videos
from portal.web.auth import Policy, may_edit, policy, principal
from portal.web.composition import web_context
from portal.web.errors import fragment
from portal.web.pages.access_views import visibility_choices
from portal.web.pages.library_views import video_card
from portal.web.pages.quota_views import own_quota
from portal.web.pages.status_views import remaining_view, status_view
from portal.web.pages.upload_views import limits_in_words
from portal.web.pages.video_views import languages_view, share_view, summary_view
from portal.web.server.context import expect_player
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("pages", __name__)

RELATED = 8


@blueprint.get("/upload")
@policy(Policy.PUBLISH)
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
        quota=await own_quota(),
        visibilities=visibility_choices(await principal(), is_own=True),
        default_visibility=config.default_visibility,
    )


@blueprint.get("/videos/<video_id>")
@policy(Policy.WATCH)
async def video(video_id: str) -> str:
    """One video for who watches it: its player or its progress, and what it is about."""
    expect_player(request.scope)
    found = await read_video(video_id)
    progress = await read_progress(found.id)
    config = web_context().config
    return await render_template(
        "videos/detail.html",
        summary=summary_view(found, await web_context().categories.names()),
        by=await name_of(found.owner_id),
        share=share_view(found, config),
        languages=languages_view(progress),
        status=status_view(found, progress, config=config),
        remaining=remaining_view(found, progress),
        may_edit=await may_edit(found),
    )


@blueprint.get("/videos/<video_id>/status")
@policy(Policy.WATCH)
@fragment()
async def status(video_id: str) -> str:
    """The fragment with a video's state alone; it asks for itself again while processing."""
    return await _status_fragment(await read_video(video_id))


@blueprint.get("/videos/<video_id>/remaining")
@policy(Policy.WATCH)
@fragment()
async def remaining(video_id: str) -> str:
    """The fragment with what is missing of a ready video; it asks for itself until done."""
    return await _remaining_fragment(await read_video(video_id))


@blueprint.get("/videos/<video_id>/share")
@policy(Policy.WATCH)
@fragment()
async def share(video_id: str) -> str:
    """The fragment with a video's addresses; a page fetches it once the video plays."""
    found = await read_video(video_id)
    languages = languages_view(await read_progress(found.id))
    view = share_view(found, web_context().config)
    return await render_template(
        "videos/_share.html", share=view, languages=languages, is_news=True
    )


@blueprint.get("/videos/<video_id>/related")
@policy(Policy.WATCH)
@fragment()
async def related(video_id: str) -> str:
    """The fragment with other videos to watch; a page fetches it once its own is there."""
    found = await read_video(video_id)
    others = await related_videos(found, seen_by=await principal(), limit=RELATED)
    names = await names_of(it.owner_id for it in others)
    cards = [video_card(it, None, by=names.get(it.owner_id, "")) for it in others]
    return await render_template("videos/_related.html", cards=cards)


@blueprint.post("/videos/<video_id>/retry")
@policy(Policy.EDIT)
async def retry(video_id: str) -> WerkzeugResponse:
    """Try again what failed, and show the page."""
    found = await _retried(video_id)
    return redirect(url_for("pages.video", video_id=found.id), 303)


@blueprint.post("/videos/<video_id>/status")
@policy(Policy.EDIT)
@fragment()
async def retry_status(video_id: str) -> str:
    """Try again what failed, and show the state alone."""
    return await _status_fragment(await _retried(video_id))


@blueprint.post("/videos/<video_id>/remaining")
@policy(Policy.EDIT)
@fragment()
async def retry_remaining(video_id: str) -> str:
    """Try again what failed of a ready video, and show what is missing alone."""
    return await _remaining_fragment(await _retried(video_id))


async def _retried(video_id: str) -> Video:
    web = web_context()
    found = await read_video(video_id)
    # Pressed twice, or pressed by two: the page shows that it is on its way.
    with suppress(NothingToRetry):
        await publishing.retry_transcode(found, queue=web.queue)
    return await read_video(video_id)


async def _status_fragment(found: Video) -> str:
    progress = await read_progress(found.id)
    return await render_template(
        "videos/_status.html",
        status=status_view(found, progress, config=web_context().config),
        remaining=remaining_view(found, progress),
        may_edit=await may_edit(found),
    )


async def _remaining_fragment(found: Video) -> str:
    view = remaining_view(found, await read_progress(found.id))
    return await render_template(
        "videos/_remaining.html", remaining=view, may_edit=await may_edit(found)
    )
