"""Make a poster of a picture that somebody sent, in the shape of the video.

Untrusted input: its first bytes tell the kind, and the confined ffmpeg decodes that kind alone and
opens no other file. What cameras note beside a picture is dropped, but that it is turned counts.
"""

import asyncio
from pathlib import Path

from portal.processes.child import Limits
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.stills import PictureKind, picture_arguments
from portal.transcoding.errors import FailCode, PictureFault, PictureRejected, TranscodeFailed

_SIGNATURES = {
    PictureKind.JPEG: ((0, b"\xff\xd8\xff"),),
    PictureKind.PNG: ((0, b"\x89PNG\r\n\x1a\n"),),
    PictureKind.WEBP: ((0, b"RIFF"), (8, b"WEBP")),
}
_SOURCE_NAME, _POSTER_NAME = "picture", "poster.jpg"
_LIMIT_S = 30.0
# Measured with a PNG of 49 megapixels in 16 bits with transparency: 5 s, 0.45 GB.
_LIMITS = Limits(memory_bytes=2 * 1024**3, cpu_s=60, file_bytes=64 * 1024**2)
# What ffmpeg says of a picture with more pixels than it is allowed.
_TOO_MANY_PIXELS = "exceeds specified max pixel count"
_AT_FAULT = {FailCode.FFMPEG_FAILED, FailCode.OUT_OF_MEMORY, FailCode.TIMED_OUT, FailCode.STALLED}


def picture_kind(content: bytes) -> PictureKind | None:
    """The kind that the first bytes tell; None for what is no JPEG, PNG or WebP."""
    for kind, signature in _SIGNATURES.items():
        if all(content.startswith(part, place) for place, part in signature):
            return kind
    return None


async def fit_picture(content: bytes, *, shape: tuple[int, int], work_dir: Path) -> bytes:
    """The middle of the picture in this shape (width, height in pixels), as JPEG.

    Raises PictureRejected, or TranscodeFailed for what is no fault of the picture.
    """
    kind = picture_kind(content)
    if kind is None:
        raise PictureRejected(PictureFault.UNREADABLE)
    await asyncio.to_thread((work_dir / _SOURCE_NAME).write_bytes, content)
    arguments = picture_arguments(_SOURCE_NAME, _POSTER_NAME, kind=kind, shape=shape)
    try:
        await ffmpeg.run(arguments, timeout_s=_LIMIT_S, cwd=work_dir, limits=_LIMITS)
        return await asyncio.to_thread((work_dir / _POSTER_NAME).read_bytes)
    except FileNotFoundError:
        raise PictureRejected(PictureFault.UNREADABLE) from None
    except TranscodeFailed as exc:
        if exc.code not in _AT_FAULT:
            raise
        is_large = _TOO_MANY_PIXELS in exc.detail
        fault = PictureFault.TOO_LARGE if is_large else PictureFault.UNREADABLE
        raise PictureRejected(fault, detail=exc.detail) from exc
