"""Page of a video: its player or its progress, its details, and related videos.

Every fragment has its own address, and forms work without scripts.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from quart import Blueprint, Response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.wrappers import Response as WerkzeugResponse

from portal.accounts.directory import fetch_holders
from portal.accounts.people import names_of
from portal.accounts.permissions import audience_of
from portal.database.models import Video, VideoStatus
from portal.errors import FieldError, InvalidRequest, NothingToRetry
from portal.features.watching import positions as watching
from portal.features.watching.preview import WatchablePart, read_watchable_part
from portal.http.addresses import poster_url, public_url
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, may_edit, policy, principal, require_person
from portal.http.clips import Clip, clip_arguments, playable_clip
from portal.http.composition import web_context
from portal.http.server.context import expect_player
from portal.http.videos import is_page_alone, read_progress, read_video
from portal.locale.messages import Message
from portal.text import whole_number
from portal.transcoding.planning.described_times import DescribedTimes
from portal.videos import publishing
from portal.videos.library import related_videos
from portal.videos.reading import parse_video_id, preview_url, stream_below

blueprint = Blueprint("video", __name__)
blueprint.add_app_template_global(playable_clip)
blueprint.add_app_template_global(clip_arguments)
blueprint.add_app_template_global(is_page_alone)
blueprint.add_app_template_global(poster_url)
blueprint.add_app_template_global(public_url)

RELATED = 8
# Positions have at most this many digits, enough for 11 days.
MAX_POSITION_DIGITS = 6


@blueprint.app_template_global()
def storyboard_url(video: Video) -> str | None:
    """Return the address of the thumbnails for the time bar, if the video has them."""
    if video.published_attempt is None or not video.has_storyboard:
        return None
    return url_for("playback.storyboard", video_id=video.id)


@blueprint.app_template_global()
def stream_url(video: Video, clip: Clip | None = None) -> str:
    """Return the address of the stream for other players; empty while there is none."""
    whole = stream_below(web_context().config.public_url, video.id, video.published_attempt)
    return clip.address(whole) if clip and whole else whole


@blueprint.app_template_global()
def player_source(video: Video, clip: Clip | None = None) -> str:
    """Return the address of the stream, or of its growing preview, for the page's player.

    It has no host, because the viewer may use another name than the public one, and keeps the
    playback link of the page.
    """
    public_url = web_context().config.public_url
    address = stream_url(video, clip) or preview_url(public_url, video.id)
    return request.root_path + address.removeprefix(public_url)


@blueprint.app_template_global()
async def watchable_part(video: Video) -> WatchablePart | None:
    """Return how much can be watched of a video that is being processed."""
    return await read_watchable_part(video) if video.status is VideoStatus.PROCESSING else None


@blueprint.app_template_global()
async def position_attributes(video: Video) -> dict[str, object]:
    """Return attributes of the player for the position of a signed-in person; empty for others."""
    person = await principal()
    if not person.is_signed_in:
        return {}
    saved = await watching.fetch_position(person, video)
    return {
        "data-position-url": url_for("video.save_position", video_id=video.id),
        "data-position": saved and saved.position_s,
        "data-position-age": saved and saved.age_s,
    }


@blueprint.app_template_global()
def described_times(video: Video) -> DescribedTimes:
    """Return where the times in a video's description lead."""
    return DescribedTimes.of(video.described_times, video.keep, video.duration_s)


@blueprint.app_template_global()
def retry_helps(video: Video) -> bool:
    """Return whether a retry of a failed video may succeed."""
    return video.failure_code in publishing.RETRY_HELPS


@blueprint.get("/videos/<video_id>")
@policy(Policy.WATCH)
async def page(video_id: str) -> str:
    """Show a video, or its page alone to people who may not watch it."""
    expect_player(request.scope)
    video = await read_video(video_id, of_page=True)
    values = {
        "categories": await web_context().categories.names(),
        "by": (await names_of([video.owner_id])).get(video.owner_id, ""),
    }
    if await is_page_alone(video):
        return await _render_page_alone(video, values)
    return await render_template("watching/page.html", **await _state_values(video), **values)


@blueprint.get("/videos/<video_id>/")
@policy(Policy.WATCH)
async def page_with_slash(video_id: str) -> WerkzeugResponse:
    """Redirect the address of a video with a slash, as some programs write it."""
    video = await read_video(video_id, of_page=True)
    query = request.query_string.decode("latin-1")
    return redirect(f"{url_for('video.page', video_id=video.id)}{query and '?'}{query}", 308)


@blueprint.get("/videos/<video_id>/status")
@policy(Policy.WATCH, unavailable_template=VIDEO_UNAVAILABLE)
async def status(video_id: str) -> str:
    """Render the fragment with a video's state, which polls itself during processing."""
    return await render_template(
        "watching/_status.html", **await _state_values(await read_video(video_id))
    )


@blueprint.get("/videos/<video_id>/remaining")
@policy(Policy.WATCH, unavailable_template=VIDEO_UNAVAILABLE)
async def remaining(video_id: str) -> str | Response:
    """Render the fragment with the missing renditions, which polls itself until there are none."""
    video = await read_video(video_id)
    if video.status is not VideoStatus.FAILED:
        return await render_template("watching/_remaining.html", **await _state_values(video))
    # The video can't be played any more.
    failed = await render_template("watching/_status.html", **await _state_values(video))
    return Response(failed, headers={"HX-Retarget": "#status", "HX-Reswap": "outerHTML"})


@blueprint.get("/videos/<video_id>/share")
@policy(Policy.WATCH, unavailable_template=VIDEO_UNAVAILABLE)
async def share(video_id: str) -> str:
    """Render the fragment with a video's addresses, which the page fetches once it plays."""
    video = await read_video(video_id)
    return await render_template("watching/_share.html", **await _state_values(video), is_news=True)


@blueprint.get("/videos/<video_id>/related")
@policy(Policy.WATCH, unavailable_template=VIDEO_UNAVAILABLE)
async def related(video_id: str) -> str:
    """Render the fragment with related videos, which the page fetches after its own video."""
    video = await read_video(video_id)
    videos = await related_videos(video, seen_by=await principal(), limit=RELATED)
    names = await names_of(video.owner_id for video in videos)
    return await render_template("watching/_related.html", videos=videos, names=names)


@blueprint.post("/videos/<video_id>/position")
@policy(Policy.OWN_ACCOUNT)
async def save_position(video_id: str) -> ResponseReturnValue:
    """Save the position of the signed-in person, which the player sends during playback."""
    person = await require_person()
    video = await read_video(video_id)
    position_s = whole_number(
        (await request.form).get("position", ""), max_digits=MAX_POSITION_DIGITS
    )
    if position_s is None:
        message = Message(
            "Send the position in whole seconds, as a form with the field `position`."
        )
        raise InvalidRequest([FieldError("/position", message)])
    await watching.save_position(person, video, position_s)
    return "", 204


@blueprint.post("/videos/<video_id>/position/remove")
@policy(Policy.OWN_ACCOUNT)
async def remove_position(video_id: str) -> WerkzeugResponse:
    """Remove a video from the signed-in person's "Continue watching", and show the library."""
    person = await require_person()
    if parsed := parse_video_id(video_id):
        await watching.mark_finished(person, parsed)
    return redirect(url_for("library.index"), 303)


@blueprint.post("/videos/<video_id>/retry")
@policy(Policy.EDIT)
async def retry(video_id: str) -> WerkzeugResponse:
    """Retry the failed work on a video, and show its page."""
    video = await _retry_and_read(video_id)
    return redirect(url_for("video.page", video_id=video.id), 303)


@blueprint.post("/videos/<video_id>/status")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def retry_status(video_id: str) -> str:
    """Retry a failed video, and render the fragment with its state."""
    return await render_template(
        "watching/_status.html", **await _state_values(await _retry_and_read(video_id))
    )


@blueprint.post("/videos/<video_id>/remaining")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def retry_remaining(video_id: str) -> str:
    """Retry the missing renditions of a ready video, and render their fragment."""
    video = await _retry_and_read(video_id)
    return await render_template("watching/_remaining.html", **await _state_values(video))


async def _render_page_alone(video: Video, values: Mapping[str, object]) -> str:
    """Render the page of a video that the viewer may not watch, and whom to ask for access."""
    owners = await fetch_holders([video.owner_id]) if video.owner_id else []
    is_signed_in = (await principal()).is_signed_in
    return await render_template(
        "watching/page_alone.html",
        video=video,
        has_password=audience_of(video).is_locked,
        next_path=request.full_path.rstrip("?"),
        # Visitors don't learn e-mail addresses.
        owner_email=owners[0].name if owners and is_signed_in else "",
        **values,
    )


async def _state_values(video: Video) -> dict[str, Any]:
    """Return template values of a video and its progress."""
    transcoding = await read_progress(video.id)
    return {"video": video, "transcoding": transcoding, "may_edit": await may_edit(video)}


async def _retry_and_read(video_id: str) -> Video:
    """Retry the failed work on a video, and read the video again."""
    video = await read_video(video_id)
    # The button was pressed twice: the page shows that the retry is in progress.
    with suppress(NothingToRetry):
        await publishing.retry_transcode(video)
    return await read_video(video_id)
