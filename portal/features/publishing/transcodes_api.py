"""JSON API of a video's processing: its progress, renditions and retries.

Members are null until their values are known, and never left out.
"""

from http import HTTPStatus
from uuid import UUID

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import document_response, tag_blueprint

from portal.database.models import Video
from portal.errors import VideoNotFound
from portal.events.records import Shape, TranscodeFailure, Uri
from portal.features.replacement import service as replacement
from portal.features.replacement.service import ReplacementRecord
from portal.http.addresses import own_base
from portal.http.auth import Policy, may_edit, policy
from portal.http.json_bodies import json_response
from portal.http.schemas.base import Problem
from portal.http.videos import read_pending, read_progress, read_video
from portal.transcoding.errors import Note
from portal.videos import publishing
from portal.videos.progress import JobProgress, Progress, RenditionRecord
from portal.videos.reading import preview_url

blueprint = Blueprint("api_transcodes", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])


class TranscodeNote(Shape):
    """Difference between the source and the output."""

    code: Note = Field(description="Stable name of the note, for programs.")
    message: str = Field(description="The note for people, in English.")


class TranscodeRemaining(JobProgress, from_attributes=True):
    """Job that adds the missing renditions of a video that is ready."""


class TranscodeRecord(TranscodeRemaining):
    """Progress of a video's transcoding."""

    failure: TranscodeFailure | None = Field(
        description="Reason why the video failed; null unless it did."
    )
    notes: list[TranscodeNote] = Field(description="Differences between the source and the output.")
    renditions: list[RenditionRecord] = Field(description="Planned and complete renditions.")
    remaining: TranscodeRemaining | None = Field(
        description="Work that continues after the video is ready."
    )
    replacement: ReplacementRecord | None = Field(
        description="File that replaces that of the video. Null for callers that may not edit it."
    )
    poster_url: Uri | None = Field(description="Address of the poster; null without a poster.")
    preview_url: Uri | None = Field(
        description="Growing HLS playlist of a video that is not ready yet."
    )
    storyboard_url: Uri | None = Field(description="WebVTT with thumbnails for a seek bar.")


@blueprint.get("/videos/<id>/transcode")
@policy(Policy.WATCH)
@document_response(TranscodeRecord)
async def get_transcode(id: str) -> Response:
    """Read the progress of a video's transcoding.

    `stage` goes from waiting through probing, transcoding and finishing to ready or failed. An
    import begins with importing, and only its owner can see it until the video exists. Its percent
    stays 0 if the server doesn't report the file's size.
    A long video is ready before all its renditions are complete. Until then `remaining` has the
    progress of the others; afterwards it is null.
    """
    try:
        video = await read_video(id)
    except VideoNotFound:
        pending = await read_pending(id)
        # There are no addresses yet.
        return _transcode_response(
            pending.id, pending.progress, "", cache_control="private, no-cache"
        )
    return await _video_transcode_response(video)


@blueprint.post("/videos/<id>/transcode")
@policy(Policy.EDIT)
@document_response(TranscodeRecord, 202)
@document_response(Problem, 409)
async def retry_transcode(id: str) -> Response:
    """Retry a failed video, or the missing renditions of a ready one.

    Send no body. A failed video returns to processing and gets a new `transcodeJobId`.
    """
    video = await read_video(id)
    await publishing.retry_transcode(video)
    return await _video_transcode_response(video, HTTPStatus.ACCEPTED)


async def _video_transcode_response(video: Video, status: int = HTTPStatus.OK) -> Response:
    progress = await read_progress(video.id)
    # Viewers need not know of a file that is not, or is no longer, the one they watch.
    current = await replacement.read(video.id) if await may_edit(video) else None
    return _transcode_response(
        video.id,
        progress,
        await own_base(video),
        status,
        file_replacement=current,
    )


def _transcode_response(
    video_id: UUID,
    progress: Progress,
    base: str,
    status: int = 200,
    *,
    file_replacement: ReplacementRecord | None = None,
    cache_control: str = "no-cache",
) -> Response:
    video_url = f"{base}/videos/{video_id}"
    record = TranscodeRecord(
        **dict(progress.work),
        failure=progress.failure,
        notes=[TranscodeNote(code=note, message=note.words) for note in progress.notes],
        renditions=progress.renditions,
        remaining=progress.remaining,
        replacement=file_replacement,
        poster_url=f"{video_url}/poster.jpg" if progress.has_poster else None,
        preview_url=preview_url(base, video_id) if progress.has_preview else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if progress.has_storyboard else None,
    )
    return json_response(record, status, cache_control=cache_control)
