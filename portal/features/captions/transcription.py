"""Speech to text: captions that a machine writes on request.

A request is a row, and a job in a separate queue, which each worker with a model runs one by one. A
child process transcribes the sound; it stands still while its worker encodes. The transcript is
recorded as it grows, so that another worker can resume it. A whole transcript is saved like any
captions, but never over captions that a person has saved.
"""

import asyncio
import logging
from time import monotonic
from uuid import UUID

from tortoise.queryset import QuerySet

from portal.concurrency import running
from portal.database.connection import NOW, retry_outage, transaction
from portal.database.models import Caption, CaptionSource, Rendition, RenditionState, Video
from portal.database.work_models import Transcription
from portal.errors import NoSound, TooManyCaptions, TranscriptionNotFound, VideoNotFound
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.films.captions import TRANSCRIPTION, UNDETERMINED, CaptionText, language_tags
from portal.films.outputs import open_rendition
from portal.queue.jobs import cancel_job
from portal.queue.tools import Tools
from portal.queue.tries import TriesExhausted, counted_try
from portal.storage.calls import ObjectMissing
from portal.transcoding.errors import TranscodeFailed
from portal.transcoding.packaging.hls import PlaylistError
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import read_webvtt, webvtt
from portal.transcoding.planning.tracks import language_tag
from portal.transcoding.speech.transcribe import Transcript, transcribing
from portal.videos.reading import locked_ready_video, locked_video

logger = logging.getLogger(__name__)

BEAT_S = 3
NO_SPEECH = "no_speech"
# Errors of a request that repeating it can't change.
FAULTS = (TranscodeFailed, ObjectMissing, PlaylistError, TooManyCaptions)


class _Superseded(Exception):
    """The request was cancelled, or another job carries it out."""


async def request(video_id: UUID, language: str | None) -> None:
    """Request machine captions, unless a request is pending.

    `language` is the spoken language, None to detect it. Raises `VideoNotFound`, `NotPlayable` or
    `NoSound`.
    """
    async with transaction():
        video = await locked_ready_video(video_id)
        if await _audio_rendition(video.version_id) is None:
            raise NoSound
        if await Transcription.exists(video_id=video_id, error_code=None):
            return
        await Transcription.filter(video_id=video_id).delete()
        job_id = await TRANSCRIPTION.enqueue(video_id=video_id)
        await Transcription.create(video_id=video_id, language=language, job_id=job_id)


async def cancel(video_id: UUID) -> None:
    """Cancel a request, or dismiss a failed one. Raises `TranscriptionNotFound`."""
    async with transaction():
        await locked_video(video_id)
        row = await Transcription.get_or_none(video_id=video_id)
        if row is None:
            raise TranscriptionNotFound
        await row.delete()
        await cancel_job(row.job_id)


async def read(video_id: UUID) -> Transcription | None:
    """Return the pending or failed request of a video, if there is one."""
    return await Transcription.get_or_none(video_id=video_id).select_related("video")


async def make_captions(video_id: UUID, tools: Tools) -> None:
    """Carry out a request. May run any number of times; a cancelled one does nothing.

    The child process stands still while the worker encodes. Raises `LookupError` without a model.
    """
    model = tools.config.captions_model
    if model is None:
        raise LookupError("This worker has no model. Set CAPTIONS_MODEL.")
    row = await Transcription.get_or_none(video_id=video_id, error_code=None)
    video = await Video.get_or_none(id=video_id)
    sound = await _audio_rendition(video.version_id) if video else None
    if row is None:
        return
    # Another job may take over.
    held = Transcription.filter(video_id=video_id, job_id=row.job_id)
    if sound is None:
        # The file was replaced by one without sound.
        await held.update(error_code=NoSound.code)
        return
    fields = {"action": "transcription_begun", "from_s": row.until_s}
    logger.info("Transcription begun", extra=fields)
    transcript = Transcript(tuple(read_webvtt(row.text)), row.until_s, row.language)
    try:
        async with counted_try(held, max_tries=TRANSCRIPTION.max_tries):
            try:
                async with running(_beat_forever(held)):
                    files = await open_rendition(sound, video_id, tools.storage)
                    written_at = monotonic()
                    async with transcribing(
                        files, transcript, model=model, work_dir=tools.work_dir, paused=tools.busy
                    ) as transcripts:
                        async for extended in transcripts:
                            transcript = extended
                            if monotonic() - written_at > BEAT_S:
                                await held.update(**_written(transcript))
                                written_at = monotonic()
            except BaseException:
                await held.update(**_written(transcript))
                raise
            await retry_outage(lambda: _finish(held, video_id, transcript))
        logger.info("Transcription is done", extra={"action": "transcription_done"})
    except (_Superseded, VideoNotFound):
        logger.info("Transcription is superseded", extra={"action": "transcription_unwanted"})
    except (*FAULTS, TriesExhausted) as exc:
        detail = getattr(exc, "detail", exc)
        logger.warning("No captions: %s", detail, extra={"action": "transcription_failed"})
        await held.update(error_code=getattr(exc, "code", "rendition_unreadable"))


async def _audio_rendition(version_id: UUID) -> Rendition | None:
    audio = Rendition.filter(version_id=version_id, kind=Kind.AUDIO, state=RenditionState.COMPLETE)
    return await audio.order_by("-is_default", "position").first()


async def _beat_forever(held: QuerySet[Transcription]) -> None:
    """Record every few seconds that the request is being carried out. Raises `_Superseded`."""
    while True:
        if not await held.update(active_at=NOW):
            raise _Superseded
        await asyncio.sleep(BEAT_S)


def _written(transcript: Transcript) -> dict[str, object]:
    return {
        "text": webvtt(transcript.cues) if transcript.cues else "",
        "until_s": transcript.until_s,
        "language": transcript.language,
    }


async def _finish(held: QuerySet[Transcription], video_id: UUID, transcript: Transcript) -> None:
    """Save a whole transcript as captions. Raises `_Superseded`, or as `captions.put` does."""
    if not transcript.cues:
        await held.update(error_code=NO_SPEECH)
        return
    text = await asyncio.to_thread(CaptionText.of, transcript.cues)
    change = CaptionChange(content=text, source=CaptionSource.MACHINE)
    async with transaction():
        await locked_video(video_id)
        if not await held.delete():
            raise _Superseded
        for language in language_tags(language_tag(transcript.language) or UNDETERMINED):
            tracks = Caption.filter(video_id=video_id, language=language)
            if not await tracks.exclude(source=CaptionSource.MACHINE).exists():
                break
        await captions.put(video_id, language, change)
