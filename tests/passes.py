"""Sources that need several passes, and passes run in this process."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

from api_client import Client, metadata, presign
from running_portal import run_ffmpeg

from portal.database.models import Rendition, Video
from portal.database.work_models import MadeSegment
from portal.features import VERSION_HOOKS
from portal.films import attempts, passes, renditions, storyboards
from portal.films.attempts import OpenAttempt
from portal.films.encoding import Tools
from portal.films.progress import Heartbeat
from portal.http.composition import WebContext
from portal.transcoding.encoding.parts import Segment

# Stands for the beginning of the sound; no segment has this number.
SOUND = -1
# Renditions of the first pass over a long 720p source, and of the later ones.
EARLY = ["360p"]
LATER = ["240p", "480p", "720p"]


def make_source(
    path: Path, *options: str, seconds: int = 61, size: str = "1280x720", rate: int = 15
) -> Path:
    """Make a long video of few frames, whose key frames are too far apart to be copied."""
    picture = f"testsrc2=size={size}:rate={rate}:duration={seconds}"
    inputs = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", f"sine=duration={seconds}"]
    encoding = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
    return run_ffmpeg(path, *inputs, *encoding, *options)


async def published_file(client: Client, resources: WebContext, file: Path) -> Video:
    """Create a video from a file through the API."""
    upload = await presign(client)
    await resources.storage.put(upload["key"], file, content_type="video/mp4")
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    assert response.status_code == 201
    return await Video.get(id=(await response.get_json())["id"])


def tools_for(resources: WebContext, work_dir: Path = Path(), **changed: Any) -> Tools:
    """Return the tools of a worker, some of them changed."""
    used = {"config": resources.config, "storage": resources.storage, **changed}
    return Tools(worker="test", work_dir=work_dir, **used)


async def make_playable(
    video: Video, resources: WebContext, work_dir: Path, *, may_encode: bool = True
) -> Video:
    """Run a first pass as a worker does."""
    await passes.publish_version(
        video.id, tools_for(resources, work_dir), may_encode=may_encode, hooks=VERSION_HOOKS
    )
    return await Video.get(id=video.id)


# The first job of a video may only copy.
looked_into = partial(make_playable, may_encode=False)


async def first_attempt(video: Video) -> OpenAttempt:
    """Begin the first pass of a video."""
    attempt = await attempts.begin(video.id, worker="test")
    assert attempt is not None
    return attempt


async def ready_video(client: Client, resources: WebContext, file: Path, work_dir: Path) -> Video:
    """Create a video from a file, and run its first pass and the job for its storyboard."""
    video = await published_file(client, resources, file)
    video = await make_playable(video, resources, work_dir)
    await storyboards.make(video.id, tools_for(resources, work_dir))
    return await Video.get(id=video.id)


async def begun(video_id: UUID) -> OpenAttempt:
    """Begin a later pass of a video."""
    attempt = await renditions.begin_next(video_id, worker="test")
    assert attempt is not None
    return attempt


async def make_missing(video: Video, resources: WebContext, work_dir: Path) -> bool:
    """Run one later pass as a worker does, and return whether it was the last."""
    await passes.make_missing(await begun(video.id), tools_for(resources, work_dir))
    return (await Video.get(id=video.id)).complete_job_id is None


async def states(video: Video) -> dict[str, str]:
    """Return the state of each rendition."""
    rows = await Rendition.filter(version_id=video.version_id)
    return {row.name: str(row.state) for row in rows}


@dataclass(frozen=True, slots=True)
class Worker:
    """Worker in this process, with a client of its portal and a folder for its files."""

    client: Client
    resources: WebContext
    folder: Path

    @property
    def tools(self) -> Tools:
        return tools_for(self.resources, self.folder)

    async def publish(self, file: Path) -> Video:
        return await published_file(self.client, self.resources, file)

    async def look_into(self, video: Video) -> Video:
        return await looked_into(video, self.resources, self.folder)

    async def make_playable(self, video: Video) -> Video:
        return await make_playable(video, self.resources, self.folder)

    async def make_missing(self, video: Video) -> bool:
        return await make_missing(video, self.resources, self.folder)

    async def run(self, attempt: OpenAttempt) -> None:
        """Run the first pass of an attempt."""
        await passes.make_playable(attempt, self.tools, hooks=VERSION_HOOKS)

    async def end_after(self, attempt: OpenAttempt, *, segments: int) -> None:
        """Run a first pass, and cancel it once this number of further segments is stored.

        The first one must also have stored the beginning of the sound.
        """
        pictures = MadeSegment.filter(version_id=attempt.version_id).exclude(
            rendition__startswith="audio"
        )
        first = len({segment.number for segment in await pictures})
        note = Heartbeat.report_stored
        running = asyncio.create_task(self.run(attempt))
        missing = {*range(first, first + segments), *([] if first else [SOUND])}

        def note_and_end(beat: Heartbeat, rendition: str, segment: Segment) -> None:
            note(beat, rendition, segment)
            if rendition != "audio":
                missing.discard(segment.number)
            elif segment.number == 0:
                missing.discard(SOUND)
            # A second cancellation would interrupt the cleanup.
            if not missing and not running.cancelling():
                running.cancel()

        with (
            patch.object(Heartbeat, "report_stored", note_and_end),
            suppress(asyncio.CancelledError),
        ):
            await running
        assert not missing, "the pass ended by itself"
