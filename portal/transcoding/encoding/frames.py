"""Cut one frame out of a finished rendition: upright, in BT.709, 8-bit 4:2:0.

Limits: one segment, with its init segment, of H.264 as this package writes it; both are in memory
and, while ffmpeg runs, in the working folder.
"""

import asyncio
from pathlib import Path

from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.stills import frame_arguments
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError, frames_until

FRAME_SOURCE, FRAME_NAME = "segment.mp4", "frame.jpg"
_CUT_LIMIT_S = 30.0


async def cut_frame(init: bytes, segment: bytes, *, at_s: float, work_dir: Path) -> bytes:
    """The frame shown `at_s` after the segment's first, as JPEG. Raises TranscodeFailed.

    Later than the last one gives the last one.
    """
    try:
        number = frames_until(init, segment, at_s) - 1
    except SegmentError as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc
    await asyncio.to_thread((work_dir / FRAME_SOURCE).write_bytes, init + segment)
    arguments = frame_arguments(FRAME_SOURCE, FRAME_NAME, number=number)
    await ffmpeg.run(arguments, timeout_s=_CUT_LIMIT_S, cwd=work_dir)
    try:
        return await asyncio.to_thread((work_dir / FRAME_NAME).read_bytes)
    except FileNotFoundError:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no frame was cut") from None
