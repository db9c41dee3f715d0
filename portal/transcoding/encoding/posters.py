"""Make posters: of the source, of a frame of a finished rendition, of a picture that was sent.

A first poster comes from key frames, which decode by themselves, wherever the source has enough of
them: few packets are decoded then, and it need not wait for the renditions. A picture that somebody
sent is untrusted input: its first bytes tell the kind, and the confined ffmpeg decodes that kind
alone and opens no other file. What cameras note beside it is dropped, but that it is turned counts.
"""

import asyncio
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from portal.processes.child import Limits
from portal.telemetry.tracing import span
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import (
    BARE,
    KEY_FRAMES_ONLY,
    general_options,
    jpeg_output,
    own_file,
    source_input,
)
from portal.transcoding.encoding.filters import still_filters
from portal.transcoding.encoding.segment_upload import SegmentUpload
from portal.transcoding.encoding.source_proxy import ProxiedSource
from portal.transcoding.errors import FailCode, PictureFault, PictureRejected, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError, shown_frames
from portal.transcoding.probing.facts import Probe

POSTER_NAME = "poster.jpg"
_MAX_SIDE = 1280
_QUALITY = 3
# When the candidates for a poster are shown, as shares of the video: neither title nor credits.
_CANDIDATES_AT = (0.1, 0.2, 0.3, 0.45, 0.6)
_CANDIDATE_LIMIT_S = 120.0
# Further apart than this, key frames are too few to choose a poster from.
_MAX_KEY_DISTANCE_S = 20.0
# Without them, frames of the beginning are decoded up to here.
_DECODED_S = 10.0
# Names in the working folder.
_SEGMENT, _PICTURE = "segment.mp4", "picture"
# Of a frame that is cut out, and of a picture that was sent.
_LIMIT_S = 30.0
MAX_PICTURE_PIXELS = 50_000_000
# Measured with a PNG of 49 megapixels in 16 bits with transparency: 5 s, 0.45 GB.
_PICTURE_LIMITS = Limits(memory_bytes=2 * 1024**3, cpu_s=60, file_bytes=64 * 1024**2)
# What ffmpeg says of a picture with more pixels than it is allowed.
_TOO_MANY_PIXELS = "exceeds specified max pixel count"
_AT_FAULT = {FailCode.FFMPEG_FAILED, FailCode.OUT_OF_MEMORY, FailCode.TIMED_OUT, FailCode.STALLED}


async def put_poster(source: ProxiedSource, probe: Probe, upload: SegmentUpload) -> bool:
    """Put the candidate with most detail: black and blurred frames make small files.

    False when there is none: a video without a poster is better than none.
    """
    with span("poster"):
        candidates = [
            await _poster_candidate(source, arguments, upload.work_dir)
            for arguments in _candidate_arguments(source.name, probe)
        ]
    poster = max(candidates, key=len)
    if poster:
        await upload.put(POSTER_NAME, poster)
    return bool(poster)


async def _poster_candidate(
    source: ProxiedSource, arguments: Sequence[str], work_dir: Path
) -> bytes:
    """A JPEG; empty when the source gives none there."""
    path = work_dir / POSTER_NAME
    try:
        await ffmpeg.run(
            arguments, timeout_s=_CANDIDATE_LIMIT_S, cwd=work_dir, environ=source.environ
        )
        content = await asyncio.to_thread(path.read_bytes)
    except (TranscodeFailed, FileNotFoundError):
        return b""
    await asyncio.to_thread(path.unlink)
    return content


def _candidate_arguments(source_name: str, probe: Probe) -> Iterator[tuple[str, ...]]:
    """Write a candidate for a poster; one run for each place that one is taken from.

    All in one run would take as many times the memory.
    """
    video = probe.video
    distance_s = video.max_key_distance_s
    has_keys = distance_s is not None and distance_s <= _MAX_KEY_DISTANCE_S
    options = (*KEY_FRAMES_ONLY, "-noaccurate_seek") if has_keys else ()
    size = _poster_size(video.width, video.height)
    filters = ",".join(("select='eq(n,0)'", *still_filters(video, size)))
    duration_s = video.duration_s or probe.duration_s
    reachable_s = duration_s if has_keys else min(duration_s, _DECODED_S)
    for share in _CANDIDATES_AT:
        at_s = f"{reachable_s * share:.3f}"
        yield (
            *general_options(),
            *source_input(source_name, probe, "-threads", "1", *options, "-ss", at_s),
            *("-map", f"0:{video.index}", *BARE, "-vf", filters),
            *jpeg_output(POSTER_NAME, _QUALITY),
        )


async def cut_frame(init: bytes, segment: bytes, *, at_s: float, work_dir: Path) -> bytes:
    """The frame shown `at_s` after a segment's first, as JPEG: upright, in BT.709, 8-bit 4:2:0.

    Later than the last one gives the last one. Limits: H.264 as this package writes it; the segment
    is in memory and, while ffmpeg runs, in the working folder. Raises TranscodeFailed.
    """
    try:
        number = sum(shown_s <= at_s for shown_s, _ in shown_frames(init, segment)[1:])
    except SegmentError as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc
    await asyncio.to_thread((work_dir / _SEGMENT).write_bytes, init + segment)
    fit = (
        f"scale=w='min(iw,{_MAX_SIDE})':h='min(ih,{_MAX_SIDE})'"
        ":force_original_aspect_ratio=decrease:force_divisible_by=2:out_range=pc"
    )
    arguments = (
        *(*general_options(), *own_file(_SEGMENT)),
        *("-map", "0:v:0", *BARE, "-vf", f"select='eq(n,{number})',{fit}"),
        *jpeg_output(POSTER_NAME, _QUALITY),
    )
    await ffmpeg.run(arguments, timeout_s=_LIMIT_S, cwd=work_dir)
    try:
        return await asyncio.to_thread((work_dir / POSTER_NAME).read_bytes)
    except FileNotFoundError:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no frame was cut") from None


class PictureKind(Enum):
    """What a picture may be: its demuxer, its decoder, and what it begins with, by the place."""

    JPEG = ("jpeg_pipe", "mjpeg", {0: b"\xff\xd8\xff"})
    PNG = ("png_pipe", "png", {0: b"\x89PNG\r\n\x1a\n"})
    WEBP = ("webp_pipe", "webp", {0: b"RIFF", 8: b"WEBP"})


def picture_kind(content: bytes) -> PictureKind | None:
    """The kind that the first bytes tell; None for what is no JPEG, PNG or WebP."""
    for kind in PictureKind:
        if all(content.startswith(part, place) for place, part in kind.value[2].items()):
            return kind
    return None


async def fit_picture(content: bytes, *, shape: tuple[int, int], work_dir: Path) -> bytes:
    """The middle of the picture in this shape (width, height in pixels), as JPEG.

    Raises PictureRejected, or TranscodeFailed for what is no fault of the picture.
    """
    kind = picture_kind(content)
    if kind is None:
        raise PictureRejected(PictureFault.UNREADABLE)
    await asyncio.to_thread((work_dir / _PICTURE).write_bytes, content)
    arguments = _picture_arguments(kind, shape)
    try:
        await ffmpeg.run(arguments, timeout_s=_LIMIT_S, cwd=work_dir, limits=_PICTURE_LIMITS)
        return await asyncio.to_thread((work_dir / POSTER_NAME).read_bytes)
    except FileNotFoundError:
        raise PictureRejected(PictureFault.UNREADABLE) from None
    except TranscodeFailed as exc:
        if exc.code not in _AT_FAULT:
            raise
        is_large = _TOO_MANY_PIXELS in exc.detail
        fault = PictureFault.TOO_LARGE if is_large else PictureFault.UNREADABLE
        raise PictureRejected(fault, detail=exc.detail) from exc


def _picture_arguments(kind: PictureKind, shape: tuple[int, int]) -> tuple[str, ...]:
    """Write the middle of a picture in this shape as JPEG; what is transparent becomes black.

    It is cut before it is scaled: scaled, one with a side of a pixel would be huge.
    """
    demuxer, decoder, _ = kind.value
    width, height = _poster_size(*shape)
    filters = (
        f"crop=w='min(iw,ih*{width}/{height})':h='min(ih,iw*{height}/{width})'",
        f"scale={width}:{height}:out_range=pc",
        "format=gbrap,premultiply=inplace=1",
    )
    return (
        *general_options(),
        *("-threads", "1", "-filter_threads", "1", "-max_pixels", str(MAX_PICTURE_PIXELS)),
        *("-c:v", decoder, *own_file(_PICTURE, demuxer=demuxer)),
        *("-map", "0:v:0", *BARE, "-vf", ",".join(filters)),
        *jpeg_output(POSTER_NAME, _QUALITY),
    )


def _poster_size(width: int, height: int) -> tuple[int, int]:
    """The size of the poster of a video of this size."""
    shrink = min(1.0, _MAX_SIDE / max(width, height))
    return max(2, round(width * shrink)), max(2, round(height * shrink))
