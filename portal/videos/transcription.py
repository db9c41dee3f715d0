"""Speech to text: captions that a machine writes when someone asks for them.

A request is a row, and a job in a queue of its own, which workers with a model work off one by one.
A child process hears the sound; it stands still while its worker makes passes. What it has written
is recorded with each beat, and another worker goes on after that. What comes of it is saved as
people save captions, but never over what one of them has saved.
"""

import asyncio
import logging
from pathlib import Path
from uuid import UUID

from tortoise.expressions import F

from portal.concurrency import task_group
from portal.database.connection import NOW, retry_outage, transaction
from portal.database.models import (
    Caption,
    CaptionSource,
    Rendition,
    RenditionState,
    VideoStatus,
)
from portal.database.outages import is_outage
from portal.database.work_models import Transcription
from portal.errors import (
    NoSound,
    NotPlayable,
    TooManyCaptions,
    TranscriptionNotFound,
    VideoNotFound,
)
from portal.processing.captions import UNDETERMINED, CaptionText, names
from portal.processing.outputs import open_rendition
from portal.queue.app import Queue
from portal.queue.enqueue import cancel_job, defer_transcription
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.transcoding.errors import DiskFull, TranscodeFailed
from portal.transcoding.packaging.hls import PlaylistError
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import read_webvtt, webvtt
from portal.transcoding.planning.tracks import language_tag
from portal.transcoding.speech.transcribe import Transcript, transcribe
from portal.videos import captions
from portal.videos.captions import CaptionChange
from portal.videos.reading import locked_video

logger = logging.getLogger(__name__)

BEAT_S = 3
MAX_TRIES = 3
WORKER_LOST, NO_SPEECH = "worker_lost", "no_speech"


class _Unwanted(Exception):
    """Nobody wants it any more, or another job does it."""


async def request(video_id: UUID, language: str | None, *, queue: Queue) -> None:
    """Ask for captions of what is said; of what is under way already nothing changes.

    Raises `VideoNotFound`, `NotPlayable` or `NoSound`.
    """
    async with transaction():
        video = await locked_video(video_id)
        if video.status is not VideoStatus.READY:
            raise NotPlayable
        if await _sound(video_id) is None:
            raise NoSound
        if await Transcription.exists(video_id=video_id, error_code=None):
            return
        await Transcription.filter(video_id=video_id).delete()
        job_id = await defer_transcription(video_id, queue)
        await Transcription.create(video_id=video_id, language=language, job_id=job_id)


async def cancel(video_id: UUID, *, queue: Queue) -> None:
    """Give up what was asked for, or forget that it failed. Raises `TranscriptionNotFound`."""
    async with transaction():
        await locked_video(video_id)
        row = await Transcription.get_or_none(video_id=video_id)
        if row is None:
            raise TranscriptionNotFound
        await row.delete()
        await cancel_job(row.job_id, queue)


async def read(video_id: UUID) -> Transcription | None:
    """How it stands; None when nothing was asked for, and once the captions are there."""
    return await Transcription.get_or_none(video_id=video_id).select_related("video")


async def make_captions(
    video_id: UUID,
    *,
    model: Path,
    storage: Storage,
    queue: Queue,
    work_dir: Path,
    paused: asyncio.Event,
) -> None:
    """Carry out a request. May run any number of times; one that was given up does nothing.

    While `paused` is set nothing is heard.
    """
    row, sound = await _begin(video_id), await _sound(video_id)
    if row is None or sound is None:
        return
    told = {"action": "transcription_begun", "from_s": row.until_s}
    logger.info("Transcription begun", extra=told)
    cues = read_webvtt(row.text)
    transcript = Transcript(cues, row.until_s, row.language)
    try:
        async with task_group() as tasks:
            beating = tasks.create_task(_beat_forever(row, transcript))
            files = await open_rendition(sound, storage)
            await transcribe(files, transcript, model=model, work_dir=work_dir, paused=paused)
            beating.cancel()
        await retry_outage(lambda: _finish(row, transcript, queue))
        logger.info("Transcription is done", extra={"action": "transcription_done"})
    except (_Unwanted, VideoNotFound):
        logger.info("Transcription is not wanted", extra={"action": "transcription_unwanted"})
    except (TranscodeFailed, ObjectMissing, PlaylistError, TooManyCaptions) as exc:
        detail = getattr(exc, "detail", exc)
        logger.warning("No captions: %s", detail, extra={"action": "transcription_failed"})
        await _record(row, error_code=getattr(exc, "code", "rendition_unreadable"))
    except BaseException as exc:
        # Neither the worker's end nor an outage counts as a try.
        if isinstance(exc, asyncio.CancelledError | DiskFull) or is_outage(exc):
            await _record(row, **_written(transcript), tries=F("tries") - 1)
        raise


async def _sound(video_id: UUID) -> Rendition | None:
    made = Rendition.filter(video_id=video_id, kind=Kind.AUDIO, state=RenditionState.COMPLETE)
    return await made.order_by("-is_default", "position").first()


async def _begin(video_id: UUID) -> Transcription | None:
    """The request, unless it failed, with another try counted."""
    asked = Transcription.filter(video_id=video_id, error_code=None)
    await asked.update(tries=F("tries") + 1)
    row = await asked.get_or_none()
    if row is None or row.tries <= MAX_TRIES:
        return row
    await _record(row, error_code=WORKER_LOST)
    return None


async def _beat_forever(row: Transcription, transcript: Transcript) -> None:
    """Record what is written while it goes on. Raises `_Unwanted`."""
    while True:
        if not await _record(row, **_written(transcript), active_at=NOW):
            raise _Unwanted
        await asyncio.sleep(BEAT_S)


def _written(transcript: Transcript) -> dict[str, object]:
    return {
        "text": webvtt(transcript.cues) if transcript.cues else "",
        "until_s": transcript.until_s,
        "language": transcript.language,
    }


async def _record(row: Transcription, **columns: object) -> int:
    """Change the row, unless it is another job's or gone."""
    return await Transcription.filter(video_id=row.video_id, job_id=row.job_id).update(**columns)


async def _finish(row: Transcription, transcript: Transcript, queue: Queue) -> None:
    """Save what was written. Raises `_Unwanted`, or as `captions.put` does."""
    if not transcript.cues:
        await _record(row, error_code=NO_SPEECH)
        return
    said = await asyncio.to_thread(CaptionText.of, transcript.cues)
    change = CaptionChange(content=said, source=CaptionSource.MACHINE)
    async with transaction():
        await locked_video(row.video_id)
        if not await Transcription.filter(video_id=row.video_id, job_id=row.job_id).delete():
            raise _Unwanted
        for language in names(language_tag(transcript.language) or UNDETERMINED):
            tracks = Caption.filter(video_id=row.video_id, language=language)
            if not await tracks.exclude(source=CaptionSource.MACHINE).exists():
                break
        await captions.put(row.video_id, language, change, queue=queue)
