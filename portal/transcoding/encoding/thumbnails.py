"""Make the pictures that go with a video, from its source: the poster and the storyboard."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from portal.telemetry.spans import span
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.progress import OnProgress, PassProgress
from portal.transcoding.encoding.segment_upload import SegmentUpload, Sink
from portal.transcoding.encoding.source_proxy import ProxiedSource, proxied
from portal.transcoding.encoding.stills import (
    POSTER_CANDIDATE,
    poster_arguments,
    sprite_arguments,
    thumbnail_arguments,
)
from portal.transcoding.encoding.work_folder import pass_folder
from portal.transcoding.errors import TranscodeFailed
from portal.transcoding.planning.storyboard import (
    SPRITE_PATTERN,
    STORYBOARD_NAME,
    THUMBNAIL_PATTERN,
    Storyboard,
    plan_storyboard,
)
from portal.transcoding.probing.facts import Probe

POSTER_NAME = "poster.jpg"
_POSTER_LIMIT_S = 120.0
_TILING_LIMIT_S = 300.0


async def put_poster(source: ProxiedSource, probe: Probe, upload: SegmentUpload) -> bool:
    """Put the candidate with most detail: black and blurred frames make small files.

    False when there is none: a video without a poster is better than none.
    """
    with span("poster"):
        runs = poster_arguments(source.name, probe)
        candidates = [await _poster_candidate(source, run, upload.work_dir) for run in runs]
    poster = max(candidates, key=len)
    if poster:
        await upload.put(POSTER_NAME, poster)
    return bool(poster)


async def _poster_candidate(
    source: ProxiedSource, arguments: Sequence[str], work_dir: Path
) -> bytes:
    """A JPEG; empty when the source gives none there."""
    path = work_dir / POSTER_CANDIDATE
    try:
        await ffmpeg.run(arguments, timeout_s=_POSTER_LIMIT_S, cwd=work_dir, environ=source.environ)
        return await asyncio.to_thread(_taken, path)
    except (TranscodeFailed, FileNotFoundError):
        return b""


def _taken(path: Path) -> bytes:
    """What is in a file, which is removed."""
    content = path.read_bytes()
    path.unlink()
    return content


async def make_storyboard(
    source_url: str,
    probe: Probe,
    *,
    duration_s: float,
    sink: Sink,
    work_dir: Path,
    on_progress: OnProgress,
) -> bool:
    """Make the storyboard of a video of this duration; False for a source that gives no picture.

    Raises TranscodeFailed, DiskFull, or whatever the sink raised.
    """
    storyboard = plan_storyboard(probe.video, duration_s=duration_s)
    progress = PassProgress(on_progress, duration_s)
    progress.next_run(ends_at=1.0)
    with pass_folder(work_dir) as folder:
        async with proxied(source_url) as source:
            upload = SegmentUpload(sink, folder)
            return await _put_storyboard(
                source, probe, storyboard, duration_s=duration_s, upload=upload, progress=progress
            )


async def _put_storyboard(
    source: ProxiedSource,
    probe: Probe,
    storyboard: Storyboard,
    *,
    duration_s: float,
    upload: SegmentUpload,
    progress: PassProgress,
) -> bool:
    """Make and tile the thumbnails, put the sprites, and then the WebVTT that leads to them.

    Raises TranscodeFailed; False when the source gives no thumbnail.
    """
    with span("thumbnails"):
        await ffmpeg.run(
            thumbnail_arguments(source.name, probe, storyboard),
            on_progress=progress.encoded,
            timeout_s=ffmpeg.run_limit_s(probe.duration_s),
            cwd=upload.work_dir,
            environ=source.environ,
        )
    thumbnails = await asyncio.to_thread(_found, upload.work_dir, THUMBNAIL_PATTERN)
    if not thumbnails:
        return False
    await ffmpeg.run(sprite_arguments(), timeout_s=_TILING_LIMIT_S, cwd=upload.work_dir)
    for path in await asyncio.to_thread(_found, upload.work_dir, SPRITE_PATTERN):
        await upload.put(path.name, path)
    text = storyboard.vtt(duration_s=duration_s, thumbnails=len(thumbnails))
    await upload.put(STORYBOARD_NAME, text.encode())
    return True


def _found(work_dir: Path, pattern: str) -> list[Path]:
    prefix, _, suffix = pattern.partition("%")
    return sorted(work_dir.glob(f"{prefix}*{Path(suffix).suffix}"))
