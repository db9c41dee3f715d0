"""Choose the poster and finish the storyboard from the frames a first pass left behind."""

import asyncio
from pathlib import Path

from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import POSTER_PATTERN, sprite_arguments
from portal.transcoding.encoding.segment_upload import SegmentUpload
from portal.transcoding.planning.storyboard import (
    SPRITE_PATTERN,
    STORYBOARD_NAME,
    THUMBNAIL_PATTERN,
    Storyboard,
)

POSTER_NAME = "poster.jpg"
_TILING_LIMIT_S = 300.0


async def put_poster(upload: SegmentUpload) -> bool:
    """Put the candidate with most detail: black and blurred frames make small files.

    The first frame is often a title, or not yet sharp: it is taken when there is no other.
    """
    found = await asyncio.to_thread(_found, upload.work_dir, POSTER_PATTERN)
    candidates = found[1:] or found
    if candidates:
        largest = await asyncio.to_thread(max, candidates, key=lambda path: path.stat().st_size)
        await upload.put(POSTER_NAME, largest)
    return bool(candidates)


async def put_storyboard(
    upload: SegmentUpload, storyboard: Storyboard, *, duration_s: float
) -> bool:
    """Tile the thumbnails, put the sprites, and then the WebVTT that leads to them."""
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
