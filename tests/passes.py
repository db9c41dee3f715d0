"""What the tests of passes share: sources worth several passes, and passes run in this process."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from api_client import Client, metadata, presign
from running_portal import run_ffmpeg

from portal.database.models import Rendition, Video
from portal.database.work_models import MadeSegment
from portal.processing import attempts, passes, renditions
from portal.processing.attempts import OpenAttempt
from portal.processing.encoding import Tools
from portal.processing.passes import Pass
from portal.processing.progress import Heartbeat
from portal.transcoding.probing.probe import SourceLimits
from portal.web.composition import WebContext

# A number that no segment has.
SOUND = -1
# What a long 720p source gets first, and what later.
EARLY, LATER = ["360p"], ["240p", "480p", "720p"]


def make_source(
    path: Path, *options: str, seconds: int = 61, size: str = "1280x720", rate: int = 15
) -> Path:
    """A long picture of few frames, whose key frames are too far apart for it to be copied."""
    picture = f"testsrc2=size={size}:rate={rate}:duration={seconds}"
    inputs = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=duration={seconds}"]
    encoding = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
    return run_ffmpeg(path, *inputs, *encoding, *options)


async def published_file(client: Client, resources: WebContext, file: Path) -> Video:
    """A video created from a file through the API."""
    upload = await presign(client)
    await resources.storage.put(upload["key"], file, content_type="video/mp4")
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    assert response.status_code == 201
    return await Video.get(id=(await response.get_json())["id"])


def tools_for(resources: WebContext, work_dir: Path) -> Tools:
    """What a worker has."""
    config = resources.config
    limits = SourceLimits(
        max_pixels=config.max_source_pixels,
        max_duration_s=config.max_source_duration_s,
        max_size_bytes=config.max_source_bytes,
        max_transcode_s=config.max_transcode_s,
    )
    used = {"storage": resources.storage, "queue": resources.queue, "limits": limits}
    return Tools(worker="test", work_dir=work_dir, **used)


def pass_of(attempt: OpenAttempt, resources: WebContext, work_dir: Path) -> Pass:
    """A pass as a worker carries it out."""
    return Pass(attempt, tools_for(resources, work_dir))


async def make_playable(
    video: Video, resources: WebContext, work_dir: Path, *, may_encode: bool = True
) -> Video:
    """Run a first pass as a worker does."""
    await passes.make_playable(video.id, tools_for(resources, work_dir), may_encode=may_encode)
    return await Video.get(id=video.id)


# What a job does that may only copy.
looked_into = partial(make_playable, may_encode=False)


async def first_attempt(video: Video) -> OpenAttempt:
    """A first pass, begun."""
    attempt = await attempts.begin(video.id, worker="test")
    assert attempt is not None
    return attempt


async def ended_after(
    attempt: OpenAttempt, resources: WebContext, work_dir: Path, *, segments: int
) -> None:
    """Carry a pass out, and cancel it when so many more segments of it are noted in a row.

    And of a first pass the beginning of the sound.
    """
    pictures = MadeSegment.filter(video_id=attempt.video_id).exclude(rendition__startswith="audio")
    first = len({it.number for it in await pictures})
    at_pass, note = pass_of(attempt, resources, work_dir), Heartbeat.note_stored
    work = at_pass.make_missing() if attempt.targets else at_pass.make_playable()
    running, left = asyncio.create_task(work), {*range(first, first + segments)}
    if not attempt.targets and not first:
        left.add(SOUND)

    def note_and_end(beat: Heartbeat, rendition: str, number: int, made: Any) -> None:
        note(beat, rendition, number, made)
        if rendition != "audio":
            left.discard(number)
        elif number == 0:
            left.discard(SOUND)
        # Once: another would end what is written at the end.
        if not left and not running.cancelling():
            running.cancel()

    with patch.object(Heartbeat, "note_stored", note_and_end), suppress(asyncio.CancelledError):
        await running
    assert not left, "the pass ended by itself"


async def ready_video(client: Client, resources: WebContext, file: Path, work_dir: Path) -> Video:
    """A video created from a file, after its first pass and with its storyboard."""
    video = await published_file(client, resources, file)
    video = await make_playable(video, resources, work_dir)
    await make_missing(video, resources, work_dir)
    return await Video.get(id=video.id)


async def begun(video_id: UUID) -> OpenAttempt:
    """A later pass, begun."""
    attempt = await renditions.begin_next(video_id, worker="test")
    assert attempt is not None
    return attempt


async def make_missing(video: Video, resources: WebContext, work_dir: Path) -> bool:
    """Run one later pass as a worker does; answers whether it was the last."""
    await pass_of(await begun(video.id), resources, work_dir).make_missing()
    return (await Video.get(id=video.id)).complete_job_id is None


async def states(video: Video) -> dict[str, str]:
    """The state of each rendition."""
    rows = await Rendition.filter(video_id=video.id)
    return {row.name: str(row.state) for row in rows}
