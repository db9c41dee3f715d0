"""Section of the workshop that replaces the file of a video, or brings the former one back."""

from contextlib import suppress
from typing import Any

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue

from portal.database.models import Video
from portal.errors import ReplacementChanged, ReplacementNotFound
from portal.features.captions import transcription
from portal.features.replacement import service as replacement
from portal.features.workshop.pages import redirect_to_panel
from portal.films.versions import VersionState
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.videos import read_progress, read_video

blueprint = Blueprint("replacement", __name__)

# Other parts of the page show the new file on these events.
REPLACED = {
    "HX-Trigger": '{"video-changed": {"target": "body"}, "file-replaced": {"target": "body"}}'
}


@blueprint.get("/videos/<video_id>/replacement")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def panel(video_id: str) -> ResponseReturnValue:
    """Render the section, which polls itself during the processing."""
    video = await read_video(video_id)
    values = await read_panel(video)
    text = await render_template(
        "replacement/_panel.html",
        video=video,
        transcoding=await read_progress(video.id),
        transcription=await transcription.read(video.id),
        **values,
    )
    current = values["replacement"]
    is_live = current is not None and current.state is VersionState.LIVE
    return (text, REPLACED) if is_live else text


@blueprint.post("/videos/<video_id>/replacement/withdraw")
@policy(Policy.EDIT)
async def withdraw(video_id: str) -> ResponseReturnValue:
    """Cancel or dismiss the replacement of the file, or go back, and show the result."""
    web = web_context()
    video = await read_video(video_id)
    version = (await request.form).get("withdrawn", "")
    # The form may be outdated, or sent twice.
    with suppress(ReplacementChanged, ReplacementNotFound):
        await replacement.withdraw(
            video.id, storage=web.storage, hooks=web.hooks, expected={version}
        )
    return redirect_to_panel(video.id, "replacement")


async def read_panel(video: Video) -> dict[str, Any]:
    """Return the values of the section, beside those of the captions."""
    return {
        "replacement": await replacement.read(video.id),
        "max_source_bytes": web_context().config.max_source_bytes,
    }
