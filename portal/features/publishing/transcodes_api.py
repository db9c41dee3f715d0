"""JSON API of a video's processing: transcoding, retries, another file, and speech to text.

Members are null until their values are known, and never left out.
"""

from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field
from quart import Blueprint, Response, request
from quart_schema import (
    document_headers,
    document_querystring,
    document_request,
    document_response,
    tag_blueprint,
)

from portal.database.models import Video
from portal.errors import NoTranscription, ReplacementNotFound, TranscriptionNotFound, VideoNotFound
from portal.events.records import Shape, Size, Time, TranscodeFailure, Uri
from portal.features.captions import service as captions
from portal.features.captions import transcription
from portal.features.replacement import service as replacement
from portal.features.replacement.service import Replacement, VersionState
from portal.http.addresses import own_base
from portal.http.auth import Policy, account_id, may_edit, policy
from portal.http.composition import web_context
from portal.http.json_bodies import json_response, named_versions, read_json, showing_present
from portal.http.schemas.base import ClosedShape, PatchHeaders, Problem, QuotaProblem, Text
from portal.http.schemas.metadata import FileName, UploadKey
from portal.http.schemas.validation import validated, validated_query
from portal.http.server.headers import conditional_response
from portal.http.videos import read_pending, read_progress, read_video
from portal.transcoding.errors import Note
from portal.transcoding.packaging.master import Kind
from portal.videos import publishing
from portal.videos.progress import Progress, RenditionStage, TranscodeStage
from portal.videos.reading import preview_url

blueprint = Blueprint("api_transcodes", __name__, url_prefix="/api")
tag_blueprint(blueprint, ["Videos"])

REPLACEMENT = "/videos/<id>/replacement"
TRANSCRIPTION = "/videos/<id>/captions/transcription"


def _round_to(digits: int | None) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else round(value, digits))


Percent = Annotated[float, Field(ge=0, le=100), _round_to(1)]
Seconds = Annotated[int | None, _round_to(None)]


class TranscodeNote(Shape):
    """Difference between the source and the output."""

    code: Note = Field(description="Stable name of the note, for programs.")
    message: str = Field(description="The note for people, in English.")


class RenditionRecord(Shape, from_attributes=True):
    """Rendition, planned or complete."""

    name: str = Field(description="Unique name in the video, such as `720p`.")
    kind: Kind = Field(description="`video`, `audio` or `subtitles`.")
    state: RenditionStage = Field(description="State of the rendition.")
    width: int | None = Field(description="Width of the picture in pixels; null without a picture.")
    height: int | None = Field(
        description="Height of the picture in pixels; null without a picture."
    )
    frame_rate: Annotated[float | None, _round_to(3)] = Field(
        validation_alias="fps", description="Frames per second; null without a picture."
    )
    codecs: str | None = Field(description="CODECS attribute in the master playlist.")
    bandwidth: int | None = Field(
        validation_alias="bandwidth_bps", description="Peak rate in bits per second."
    )
    average_bandwidth: int | None = Field(
        validation_alias="average_bandwidth_bps", description="Average rate in bits per second."
    )
    size_bytes: Size | None = Field(description="Size of all segments; null until it is complete.")
    language: str | None = Field(
        description="Language of the sound or subtitles (BCP 47); null if it is unknown."
    )
    copied: bool = Field(description="Whether the source's own stream is delivered.")
    error_code: str | None = Field(description="Why the rendition failed; null unless it did.")


class TranscodeRemaining(Shape, from_attributes=True):
    """Job that adds the missing renditions of a video that is ready."""

    stage: TranscodeStage = Field(description="Step on the way to ready.")
    percent: Percent = Field(description="Progress of the transcoding.")
    seconds_left: Seconds = Field(
        description="Estimate of the time that is left; null if it is unknown."
    )
    queue_position: int | None = Field(description="1 is next.")
    workers: int = Field(description="Number of workers on it, possibly on several machines.")


class ReplaceFileRequest(ClosedShape):
    """Uploaded file that replaces the file of a video."""

    file_name: FileName
    key: UploadKey


class ReplacementRecord(Shape):
    """File that replaces, or has replaced, the file of a video."""

    state: VersionState = Field(description="`processing`, `failed` or `live`.")
    percent: Percent = Field(description="Progress of the transcoding.")
    file_name: str = Field(description="Name of the new file.")
    size_bytes: Size = Field(description="Size of the new file.")
    failure: TranscodeFailure | None = Field(
        description="Reason why the replacement failed; null unless it did."
    )
    started_at: Time = Field(description="Time of the request.")
    revertible_until: Time | None = Field(
        description="End of the time in which the former file can be restored."
    )


class ReplacementConflict(Problem):
    """Problem details with the replacement as it is now, whose ETag the response has."""

    present: ReplacementRecord = Field(description="The replacement as it is now.")


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


class TranscriptionQuery(ClosedShape):
    """Language of the speech."""

    language: Text | None = Field(None, description="BCP 47. Detected by default.")


class TranscriptionRecord(Shape, from_attributes=True):
    """Progress of automatic captions."""

    state: Literal["waiting", "working", "failed"] = Field(
        description="`waiting`, `working` or `failed`."
    )
    percent: Percent = Field(description="Progress of the transcription.")
    language: str | None = Field(
        description="Language of the speech (BCP 47); null until it is known."
    )
    error_code: str | None = Field(
        description="Why they failed, such as `no_speech` in a video, or `no_sound` in a new file."
    )


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


@blueprint.get(REPLACEMENT)
@policy(Policy.EDIT, headers=("ETag",))
@document_response(ReplacementRecord)
async def get_replacement(id: str) -> Response:
    """Read the file that replaces that of a video.

    `state` goes from processing to live or failed. Returns 404 if there is no such file, and once
    the former file can't be restored any more. Send the ETag in the If-Match of DELETE.
    """
    video = await read_video(id)
    record, version = await _present_replacement(video)
    return await conditional_response(record.model_dump_json(), version=version)


@blueprint.post(REPLACEMENT)
@policy(Policy.EDIT)
@document_request(ReplaceFileRequest)
@document_response(ReplacementRecord, 202)
@document_response(ReplacementRecord, 200)
@document_response(QuotaProblem, 409)
async def replace_file(id: str) -> Response:
    """Replace the file of a video by an uploaded one.

    The former file plays until the new one is ready; then the record of the video has the new
    `storageKey`, `fileName`, `sizeBytes` and `transcodeJobId`. If the new file fails, the former
    one stays. If you repeat the request with the same key, nothing else happens; once the file is
    that of the video, the response is 200.
    """
    web = web_context()
    video = await read_video(id)
    requested = validated(ReplaceFileRequest, await read_json())
    await replacement.begin(
        video.id,
        key=requested.key,
        file_name=requested.file_name,
        storage=web.storage,
        max_source_bytes=web.config.max_source_bytes,
        quota=web.quota,
        owner_id=await account_id(),
    )
    current = await replacement.read(video.id, of_first_file=True)
    if current is None:
        raise VideoNotFound
    is_live = current.state is VersionState.LIVE
    status = HTTPStatus.OK if is_live else HTTPStatus.ACCEPTED
    return json_response(_replacement_record(current), status, etag=current.version)


@blueprint.delete(REPLACEMENT)
@policy(Policy.EDIT)
@document_headers(PatchHeaders)
@document_response(ReplacementConflict, 412)
async def withdraw_replacement(id: str) -> Response:
    """Cancel the replacement of a video's file, dismiss a failed one, or go back.

    Within 7 days after a replacement, the former file becomes the current one again. Send the ETag
    of the replacement in If-Match: otherwise a repeated request brings the new file back.
    """
    web = web_context()
    video = await read_video(id)
    versions = named_versions()
    async with showing_present(partial(_present_replacement, video)):
        await replacement.withdraw(
            video.id, storage=web.storage, hooks=web.hooks, expected=versions
        )
    return Response(status=HTTPStatus.NO_CONTENT)


@blueprint.get(TRANSCRIPTION)
@policy(Policy.WATCH)
@document_response(TranscriptionRecord)
async def get_transcription_answer(id: str) -> Response:
    """Read the progress of automatic captions. Returns 404 once they are complete."""
    return await _transcription_response(await _read_transcribable(id))


@blueprint.post(TRANSCRIPTION)
@policy(Policy.EDIT)
@document_querystring(TranscriptionQuery)
@document_response(TranscriptionRecord, 202)
@document_response(Problem, 409)
async def transcribe(id: str) -> Response:
    """Generate captions automatically, where speech to text is installed.

    Their source is `machine` until a person saves them. Captions that a person has saved are not
    replaced. Send no body.
    """
    spoken = validated_query(TranscriptionQuery, request.args).language
    video = await _read_transcribable(id)
    language = None if spoken is None else captions.language_of(spoken)
    await transcription.request(video.id, language)
    return await _transcription_response(video, HTTPStatus.ACCEPTED)


@blueprint.delete(TRANSCRIPTION)
@policy(Policy.EDIT)
async def cancel_transcription_answer(id: str) -> Response:
    """Cancel automatic captions."""
    video = await _read_transcribable(id)
    await transcription.cancel(video.id)
    return Response(status=HTTPStatus.NO_CONTENT)


async def _video_transcode_response(video: Video, status: int = HTTPStatus.OK) -> Response:
    progress = await read_progress(video.id)
    # Viewers need not know of a file that is not, or is no longer, the one they watch.
    current = await replacement.read(video.id) if await may_edit(video) else None
    return _transcode_response(
        video.id,
        progress,
        await own_base(video),
        status,
        file_replacement=_replacement_record(current) if current else None,
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
        **asdict(progress.work),
        failure=TranscodeFailure.of(progress.failure_code, progress.failure_message),
        notes=[TranscodeNote(code=note, message=note.words) for note in progress.notes],
        renditions=progress.renditions,
        remaining=progress.remaining,
        replacement=file_replacement,
        poster_url=f"{video_url}/poster.jpg" if progress.has_poster else None,
        preview_url=preview_url(base, video_id) if progress.has_preview else None,
        storyboard_url=f"{video_url}/storyboard.vtt" if progress.has_storyboard else None,
    )
    return json_response(record, status, cache_control=cache_control)


def _replacement_record(current: Replacement) -> ReplacementRecord:
    return ReplacementRecord(
        state=current.state,
        percent=current.percent,
        file_name=current.file_name,
        size_bytes=current.size_bytes,
        failure=TranscodeFailure.of(current.failure_code, current.failure_message),
        started_at=current.started_at,
        revertible_until=current.revertible_until,
    )


async def _present_replacement(video: Video) -> tuple[ReplacementRecord, str]:
    """Return the replacement of a video's file, and its version."""
    current = await replacement.read(video.id)
    if current is None:
        raise ReplacementNotFound
    return _replacement_record(current), current.version


async def _read_transcribable(id: str) -> Video:
    video = await read_video(id)
    if web_context().config.captions_model is None:
        raise NoTranscription
    return video


async def _transcription_response(video: Video, status: int = HTTPStatus.OK) -> Response:
    row = await transcription.read(video.id)
    if row is None:
        raise TranscriptionNotFound
    return json_response(TranscriptionRecord.model_validate(row), status)
