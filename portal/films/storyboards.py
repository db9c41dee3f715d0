"""The storyboard of a ready version: previews for the time bar, made from its lowest rendition.

The job also makes the waveform of the sound for people who cut the film, and measures its loudness
in the same decode. A film may lack both, as films that were made by earlier releases do.

A version has a `storyboard_job_id` while it lacks its storyboard (`renditions.request_storyboard`).
The job is a side job, so that the previews don't wait for passes over any video.
"""

import asyncio
import logging
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from uuid import UUID

from tortoise.expressions import F

from portal.database.connection import lock_version, retry_outage, transaction
from portal.database.models import Rendition, RenditionState, Version, VideoStatus
from portal.films import renditions
from portal.films.jobs import STORYBOARD
from portal.films.outputs import StorageSink, open_rendition
from portal.films.removal import remove_again
from portal.queue.tools import Tools
from portal.queue.tries import is_interruption
from portal.storage.calls import ObjectMissing
from portal.transcoding.encoding.loudness import Loudness
from portal.transcoding.encoding.pictures import make_storyboard
from portal.transcoding.encoding.sound_samples import make_waveform
from portal.transcoding.errors import DiskFull, TranscodeFailed
from portal.transcoding.packaging.hls import PlaylistError
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.storyboard import plan_storyboard

logger = logging.getLogger(__name__)

# Part of a job's time that the waveform may take.
WAVEFORM_TIMEOUT_S = 600
WAVEFORM_FAULTS = (TranscodeFailed, DiskFull, ObjectMissing, PlaylistError, TimeoutError)


async def make(version_id: UUID, tools: Tools) -> None:
    """Make the storyboard of a version that lacks one, or record that it gets none.

    Raises the error that ended the try, after which the job has to run again.
    """
    pending = Version.filter(id=version_id, status=VideoStatus.READY).exclude(
        storyboard_job_id=None
    )
    await pending.update(storyboard_tries=F("storyboard_tries") + 1)
    version = await pending.first()
    if version is None:
        return
    if version.storyboard_tries > STORYBOARD.max_tries:
        logger.warning("No storyboard was made", extra={"action": "storyboard_failed"})
        await _finish(version, is_made=False)
        return
    try:
        async with asyncio.timeout(STORYBOARD.longest_s):
            loudness = await _make_and_store(version, tools)
    except BaseException as exc:
        if is_interruption(exc):
            same_try = pending.filter(storyboard_tries=version.storyboard_tries)
            await same_try.update(storyboard_tries=version.storyboard_tries - 1)
        raise
    finally:
        if not await Version.exists(id=version_id):
            await remove_again(version.video_id, version.storage_key)
    await retry_outage(partial(_finish, version, is_made=True, loudness=loudness))


async def _make_and_store(version: Version, tools: Tools) -> Loudness | None:
    """Store the storyboard, and the waveform of a whole film; return the loudness of its sound."""
    lowest = await renditions.lowest_complete(version)
    files = await open_rendition(lowest, version.video_id, tools.storage)
    sink = StorageSink(tools.storage, version.video_id, version.published_attempt or 0)
    await make_storyboard(
        files,
        plan_storyboard(
            lowest.width or 1,
            lowest.height or 1,
            fps=Fraction(lowest.frame_rate or 1),
            duration_s=files.playlist.duration_s,
        ),
        sink=sink,
        work_dir=tools.work_dir,
    )
    # Films are cut on the time line of the whole film.
    if version.keep is not None:
        return None
    return await _make_waveform(version, files.playlist.duration_s, sink, tools)


async def _make_waveform(
    version: Version, duration_s: float, sink: StorageSink, tools: Tools
) -> Loudness | None:
    """Store the waveform of the default sound of a film, if it has sound that can be read.

    Returns the loudness of that sound, if it could be measured.
    """
    sounds = Rendition.filter(version_id=version.id, kind=Kind.AUDIO, state=RenditionState.COMPLETE)
    sound = await sounds.order_by("-is_default", "position").first()
    if sound is None:
        return None
    try:
        async with asyncio.timeout(WAVEFORM_TIMEOUT_S):
            files = await open_rendition(sound, version.video_id, tools.storage)
            return await make_waveform(
                files, duration_s=duration_s, sink=sink, work_dir=tools.work_dir
            )
    except WAVEFORM_FAULTS:
        logger.exception("No waveform was made", extra={"action": "waveform_failed"})
        return None


async def _finish(version: Version, *, is_made: bool, loudness: Loudness | None = None) -> None:
    """Record that a version has its storyboard, or that it gets none, and its loudness."""
    measured = {} if loudness is None else asdict(loudness)
    async with transaction():
        await lock_version(version.id)
        # If the version was processed again meanwhile, the storyboard is not that of its output.
        same_output = Version.filter(id=version.id, published_attempt=version.published_attempt)
        changed = await same_output.exclude(storyboard_job_id=None).update(
            has_storyboard=is_made, storyboard_job_id=None, **measured
        )
        if changed:
            if measured:
                await Version.filter(video_id=version.video_id, base_id=version.id).update(
                    **measured
                )
            await renditions.record_completion(version)
