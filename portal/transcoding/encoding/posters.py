"""Make posters: of the source, of a frame of a finished rendition, of a picture that was sent.

A first poster comes from key frames, which decode by themselves, wherever the source has enough of
them: few packets are decoded then, and it need not wait for the renditions. A picture that somebody
sent is untrusted input: its first bytes tell the kind, and the confined ffmpeg decodes that kind
alone and opens no other file. What cameras note beside it is dropped, but that it is turned counts.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path

from portal.processes.child import Limits
from portal.telemetry.tracing import span
from portal.transcoding.encoding import command, ffmpeg
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
# Further apart than this, key frames are too few to choose a poster from.
_MAX_KEY_DISTANCE_S = 20.0
# Without them, frames of the beginning are decoded up to here.
_DECODED_S = 10.0
# Names in the working folder.
_SEGMENT, _PICTURE = "segment.mp4", "picture"
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
    candidates, folder = [], upload.work_dir
    with span("poster"):
        for arguments in _candidate_arguments(source.name, probe):
            with suppress(TranscodeFailed):
                candidate = await _run(arguments, folder, timeout_s=120.0, environ=source.environ)
                candidates.append(candidate)
    poster = max(candidates, key=len, default=b"")
    if poster:
        await upload.put(POSTER_NAME, poster)
    return bool(poster)


async def _run(
    arguments: Sequence[str],
    work_dir: Path,
    *,
    timeout_s: float = 30.0,
    limits: Limits | None = None,
    environ: Mapping[str, str] | None = None,
) -> bytes:
    """Run ffmpeg for a poster; empty when it writes none. Raises as `ffmpeg.run` does."""
    path = work_dir / POSTER_NAME
    await asyncio.to_thread(path.unlink, missing_ok=True)
    await ffmpeg.run(arguments, timeout_s=timeout_s, cwd=work_dir, limits=limits, environ=environ)
    try:
        return await asyncio.to_thread(path.read_bytes)
    except FileNotFoundError:
        return b""


def _candidate_arguments(source_name: str, probe: Probe) -> Iterator[tuple[str, ...]]:
    """Write a candidate for a poster; one run for each place that one is taken from.

    All in one run would take as many times the memory.
    """
    video = probe.video
    distance_s = video.max_key_distance_s
    has_keys = distance_s is not None and distance_s <= _MAX_KEY_DISTANCE_S
    options = (*command.KEY_FRAMES_ONLY, "-noaccurate_seek") if has_keys else ()
    size = _poster_size(video.width, video.height)
    filters = ",".join(("select='eq(n,0)'", *still_filters(video, size)))
    duration_s = video.duration_s or probe.duration_s
    reachable_s = duration_s if has_keys else min(duration_s, _DECODED_S)
    for share in _CANDIDATES_AT:
        at_s = f"{reachable_s * share:.3f}"
        yield (
            *command.general_options(),
            *command.source_input(source_name, probe, "-threads", "1", *options, "-ss", at_s),
            *("-map", f"0:{video.index}", *command.BARE, "-vf", filters),
            *command.jpeg_output(POSTER_NAME, _QUALITY),
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
        *(*command.general_options(), *command.own_file(_SEGMENT)),
        *("-map", "0:v:0", *command.BARE, "-vf", f"select='eq(n,{number})',{fit}"),
        *command.jpeg_output(POSTER_NAME, _QUALITY),
    )
    if frame := await _run(arguments, work_dir):
        return frame
    raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail="no frame was cut")


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

    What is transparent becomes black. Raises PictureRejected, or TranscodeFailed for what is no
    fault of the picture.
    """
    kind = picture_kind(content)
    if kind is None:
        raise PictureRejected(PictureFault.UNREADABLE)
    demuxer, decoder, _ = kind.value
    width, height = _poster_size(*shape)
    filters = (
        # Cut before it is scaled: scaled, one with a side of a pixel would be huge.
        f"crop=w='min(iw,ih*{width}/{height})':h='min(ih,iw*{height}/{width})'",
        f"scale={width}:{height}:out_range=pc",
        "format=gbrap,premultiply=inplace=1",
    )
    arguments = (
        *command.general_options(),
        *("-threads", "1", "-filter_threads", "1", "-max_pixels", str(MAX_PICTURE_PIXELS)),
        *("-c:v", decoder, *command.own_file(_PICTURE, demuxer=demuxer)),
        *("-map", "0:v:0", *command.BARE, "-vf", ",".join(filters)),
        *command.jpeg_output(POSTER_NAME, _QUALITY),
    )
    await asyncio.to_thread((work_dir / _PICTURE).write_bytes, content)
    try:
        picture = await _run(arguments, work_dir, limits=_PICTURE_LIMITS)
    except TranscodeFailed as exc:
        if exc.code not in _AT_FAULT:
            raise
        is_large = _TOO_MANY_PIXELS in exc.detail
        fault = PictureFault.TOO_LARGE if is_large else PictureFault.UNREADABLE
        raise PictureRejected(fault, detail=exc.detail) from exc
    if not picture:
        raise PictureRejected(PictureFault.UNREADABLE)
    return picture


def _poster_size(width: int, height: int) -> tuple[int, int]:
    """The size of the poster of a video of this size."""
    shrink = min(1.0, _MAX_SIDE / max(width, height))
    return max(2, round(width * shrink)), max(2, round(height * shrink))
