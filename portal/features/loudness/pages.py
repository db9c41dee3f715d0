"""Panel of the workshop for the loudness of a video, and the gain for its player."""

from quart import Blueprint, render_template, request
from quart.typing import ResponseReturnValue

from portal.database.models import Video, VideoStatus
from portal.features.loudness.service import SoundLevel, save_switch
from portal.features.workshop.pages import announces_save, redirect_to_panel
from portal.http.auth import VIDEO_UNAVAILABLE, Policy, policy
from portal.http.composition import web_context
from portal.http.videos import read_video

blueprint = Blueprint("loudness", __name__)


@blueprint.app_template_global()
def player_gain_db(video: Video) -> float | None:
    """Return the gain of a ready video's player; None for sound that plays as it is."""
    if video.status is not VideoStatus.READY:
        return None
    return SoundLevel.of(video, web_context().config.loudness_lufs).gain_db or None


@blueprint.post("/videos/<video_id>/loudness")
@policy(Policy.EDIT)
async def save_loudness(video_id: str) -> ResponseReturnValue:
    """Save the switch, and show the result in the workshop."""
    video = await _save_form(video_id)
    return redirect_to_panel(video.id, "loudness", saved="loudness")


@blueprint.post("/videos/<video_id>/loudness/panel")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def save_panel(video_id: str) -> ResponseReturnValue:
    """Save the switch, and return the panel."""
    return await _render_panel(await _save_form(video_id), is_saved=True)


@blueprint.get("/videos/<video_id>/loudness")
@policy(Policy.EDIT, unavailable_template=VIDEO_UNAVAILABLE)
async def panel(video_id: str) -> str:
    """Render the panel, which the page fetches once the loudness is measured."""
    return await _render_panel(await read_video(video_id))


async def read_panel(video: Video) -> dict[str, object]:
    """Return the level of the video, and whether the page announces that the switch was saved."""
    return _panel_values(video, is_saved=announces_save("loudness"))


def _panel_values(video: Video, *, is_saved: bool = False) -> dict[str, object]:
    level = SoundLevel.of(video, web_context().config.loudness_lufs)
    return {"loudness": level, "is_loudness_saved": is_saved}


async def _render_panel(video: Video, *, is_saved: bool = False) -> str:
    values = _panel_values(video, is_saved=is_saved)
    return await render_template("loudness/_panel.html", video=video, **values)


async def _save_form(video_id: str) -> Video:
    """Save the request's form; return the video.

    The switch replaces any recorded value. After a conflict the form would show the same switch.
    """
    video = await read_video(video_id)
    await save_switch(
        video.id,
        is_even="evenLoudness" in await request.form,
        target_lufs=web_context().config.loudness_lufs,
        versions=None,
    )
    return await read_video(video_id)
