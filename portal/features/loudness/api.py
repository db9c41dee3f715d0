"""JSON API of the loudness of a video."""

from typing import Any

from pydantic import Field, StrictBool
from quart import Blueprint, Response, request
from quart_schema import document_headers, document_request, document_response, tag_blueprint

from portal.events.records import Shape
from portal.features.loudness.service import SoundLevel, save_switch
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response, named_versions, read_json
from portal.http.schemas.base import ClosedShape, EditHeaders
from portal.http.schemas.validation import validated
from portal.http.videos import read_video, require_video

blueprint = Blueprint("api_loudness", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Editing"])

SWITCH = "Whether the portal's player applies a gain; otherwise sound plays as it is."


class LoudnessSwitch(ClosedShape):
    """Switch of a video."""

    even_loudness: StrictBool = Field(description=SWITCH)


class LoudnessRecord(Shape):
    """Loudness of the default sound of a video, as EBU R128 measures it.

    The three figures are null until they are measured, within about a minute after the video is
    ready, and for silence, sound shorter than 0.4 s and videos of earlier releases.
    """

    even_loudness: bool = Field(description=SWITCH)
    integrated_lufs: float | None = Field(description="Integrated loudness in LUFS.")
    loudness_range_lu: float | None = Field(description="Loudness range in LU.")
    true_peak_dbtp: float | None = Field(description="Highest true peak in dBTP.")
    target_lufs: float | None = Field(
        description="Loudness that the gain leads to, by the portal's setting `LOUDNESS`; null for "
        "`off`."
    )
    gain_db: float = Field(
        description="Gain that the portal's player applies to the whole video: at most 12 dB, and "
        "no peaks above -1 dBTP by it. 0 if sound plays as it is."
    )


@blueprint.get("/videos/<id>/loudness")
@policy(Policy.EDIT, headers=("ETag",))
@document_response(LoudnessRecord)
async def get_loudness(id: str) -> Response:
    """Read the loudness of a video, and the gain of the player.

    Send the ETag back in If-Match when you change the switch.
    """
    level = SoundLevel.of(await read_video(id), web_context().config.loudness_lufs)
    return await _loudness_response(level).make_conditional(request)


@blueprint.put("/videos/<id>/loudness")
@policy(Policy.EDIT, headers=("ETag",))
@document_headers(EditHeaders)
@document_request(LoudnessSwitch)
@document_response(LoudnessRecord)
async def put_loudness(id: str) -> Response:
    """Switch even loudness of a video on or off, for players that are opened from now on.

    If-Match must name the version that you read, or be `*`. If the loudness was measured or someone
    else has changed the switch since, nothing is written.
    """
    video_id = await require_video(id)
    versions = named_versions(is_required=True)
    switch = validated(LoudnessSwitch, await read_json())
    return _loudness_response(
        await save_switch(
            video_id,
            is_even=switch.even_loudness,
            target_lufs=web_context().config.loudness_lufs,
            versions=versions,
        )
    )


def _loudness_response(level: SoundLevel) -> Response:
    measured = level.measured
    figures: dict[str, Any] = {
        "integrated_lufs": measured and measured.integrated_lufs,
        "loudness_range_lu": measured and measured.loudness_range_lu,
        "true_peak_dbtp": measured and measured.true_peak_dbtp,
    }
    record = LoudnessRecord(
        even_loudness=level.is_even,
        target_lufs=level.target_lufs,
        gain_db=level.gain_db,
        **figures,
    )
    return json_response(record, cache_control="private, no-cache", etag=level.version)
