"""How a video's transcoding stands, and another try of what failed."""

from quart import Blueprint, Response
from quart_schema import document_response, tag_blueprint

from portal.database.models import Video
from portal.videos import publishing
from portal.web.api.json_bodies import json_response
from portal.web.api.openapi import document_problems
from portal.web.api.transcode_shapes import TranscodeRecord, transcode_record
from portal.web.auth import Policy, policy
from portal.web.context import web_context
from portal.web.videos import read_progress, read_video

blueprint = Blueprint("api_transcodes", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])


@blueprint.get("/videos/<id>/transcode")
@policy(Policy.WATCH)
@document_response(TranscodeRecord)
@document_problems(404, 503)
async def get_transcode(id: str) -> Response:
    """See how a video's transcoding stands.

    `stage` is the way to ready: waiting, probing, transcoding, finishing, then ready or failed.
    A long video is ready before all its renditions are made; `remaining` then tells how far the
    rest is, and is null once the ladder is complete.
    """
    return await _transcode(await read_video(id))


@blueprint.post("/videos/<id>/transcode")
@policy(Policy.EDIT)
@document_response(TranscodeRecord, 202)
@document_problems(404, 409, 503)
async def retry_transcode(id: str) -> Response:
    """Try again what failed: a failed video, or the renditions that a ready one lacks.

    No body is needed. A failed video is processing again and gets another `transcodeJobId`.
    """
    web = web_context()
    video = await publishing.get_video(id)
    await publishing.retry_transcode(video, queue=web.queue)
    return await _transcode(video, 202)


async def _transcode(video: Video, status: int = 200) -> Response:
    found = await read_progress(video.id)
    video_url = f"{web_context().config.public_url}/videos/{video.id}"
    response = json_response(transcode_record(found, video_url=video_url), status)
    response.headers["Cache-Control"] = "no-cache"
    return response
