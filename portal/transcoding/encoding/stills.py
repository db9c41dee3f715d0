"""Compose the ffmpeg commands that make pictures: posters, and sprites of thumbnails. Pure.

A first poster comes from key frames, which decode by themselves, wherever the source has enough of
them: few packets are decoded then, and it need not wait for the renditions.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

from portal.transcoding.encoding.command import BARE, general_options, source_input
from portal.transcoding.encoding.filters import still_filters
from portal.transcoding.planning.storyboard import TILING
from portal.transcoding.probing.facts import Probe

POSTER_CANDIDATE = "poster-candidate.jpg"
POSTER_MAX_SIDE = 1280
# Of a picture that was sent.
MAX_PICTURE_PIXELS = 50_000_000
# When the candidates for a poster are shown, as shares of the video: neither title nor credits.
_POSTER_AT = (0.1, 0.2, 0.3, 0.45, 0.6)
# Further apart than this, key frames are too few to choose a poster from.
_MAX_KEY_DISTANCE_S = 20.0
# Without them, frames of the beginning are decoded up to here.
_DECODED_S = 10.0
_KEY_FRAMES_ONLY = ("-skip_frame", "nokey")


class PictureKind(Enum):
    """What a picture may be: its demuxer and its decoder."""

    JPEG = ("jpeg_pipe", "mjpeg")
    PNG = ("png_pipe", "png")
    WEBP = ("webp_pipe", "webp")


def poster_arguments(source_url: str, probe: Probe) -> Iterator[tuple[str, ...]]:
    """Write a candidate for a poster; one run for each place that one is taken from.

    All in one run would take as many times the memory.
    """
    distance_s = probe.video.max_key_distance_s
    has_keys = distance_s is not None and distance_s <= _MAX_KEY_DISTANCE_S
    options = (*_KEY_FRAMES_ONLY, "-noaccurate_seek") if has_keys else ()
    filters = ",".join(("select='eq(n,0)'", *still_filters(probe.video, _poster_size(probe))))
    for at_s in _poster_times_s(probe, has_keys=has_keys):
        yield (
            *general_options(),
            *source_input(source_url, probe, "-threads", "1", *options, "-ss", f"{at_s:.3f}"),
            *("-map", f"0:{probe.video.index}", *BARE, "-vf", filters),
            *_jpegs(POSTER_CANDIDATE, "3", "-frames:v", "1", "-update", "1"),
        )


def sprite_arguments(
    source_name: str,
    sprite_name: str,
    size: tuple[int, int],
    numbers: Sequence[int],
    *,
    from_keys: bool,
) -> tuple[str, ...]:
    """Tile frames of a file of our own, counted from 0 as they are shown, scaled to this size.

    `from_keys` decodes and counts IDR pictures only.
    """
    chosen = "+".join(f"eq(n,{number})" for number in numbers)
    filters = f"select='{chosen}',scale={size[0]}:{size[1]}:out_range=pc,setsar=1,{TILING}"
    options = _KEY_FRAMES_ONLY if from_keys else ()
    return (
        *general_options(),
        *(*options, "-protocol_whitelist", "file", "-f", "mov", "-i", f"file:{source_name}"),
        *("-map", "0:v:0", *BARE, "-vf", filters),
        *_jpegs(sprite_name, "5", "-frames:v", "1", "-update", "1"),
    )


def frame_arguments(source_name: str, frame_name: str, *, number: int) -> tuple[str, ...]:
    """Write one frame, counted from 0 as they are shown, of a file of our own as JPEG."""
    fit = (
        f"scale=w='min(iw,{POSTER_MAX_SIDE})':h='min(ih,{POSTER_MAX_SIDE})'"
        ":force_original_aspect_ratio=decrease:force_divisible_by=2:out_range=pc"
    )
    return (
        *general_options(),
        *("-protocol_whitelist", "file", "-f", "mov", "-i", f"file:{source_name}"),
        *("-map", "0:v:0", *BARE, "-vf", f"select='eq(n,{number})',{fit}"),
        *_jpegs(frame_name, "3", "-frames:v", "1", "-update", "1"),
    )


def picture_arguments(
    source_name: str, poster_name: str, *, kind: PictureKind, shape: tuple[int, int]
) -> tuple[str, ...]:
    """Write the middle of a picture in this shape as JPEG; what is transparent becomes black.

    It is cut before it is scaled: scaled, one with a side of a pixel would be huge.
    """
    demuxer, decoder = kind.value
    width, height = _fitting(*shape)
    filters = (
        f"crop=w='min(iw,ih*{width}/{height})':h='min(ih,iw*{height}/{width})'",
        f"scale={width}:{height}:out_range=pc",
        "format=gbrap,premultiply=inplace=1",
    )
    return (
        *general_options(),
        *("-threads", "1", "-filter_threads", "1", "-max_pixels", str(MAX_PICTURE_PIXELS)),
        *("-protocol_whitelist", "file", "-f", demuxer, "-c:v", decoder),
        *("-i", f"file:{source_name}", "-map", "0:v:0", *BARE, "-vf", ",".join(filters)),
        *_jpegs(poster_name, "3", "-frames:v", "1", "-update", "1"),
    )


def _poster_size(probe: Probe) -> tuple[int, int]:
    return _fitting(probe.video.width, probe.video.height)


def _fitting(width: int, height: int) -> tuple[int, int]:
    """The size of the poster of a video of this size."""
    shrink = min(1.0, POSTER_MAX_SIDE / max(width, height))
    return max(2, round(width * shrink)), max(2, round(height * shrink))


def _poster_times_s(probe: Probe, *, has_keys: bool) -> Iterator[float]:
    duration_s = probe.video.duration_s or probe.duration_s
    reachable_s = duration_s if has_keys else min(duration_s, _DECODED_S)
    return (reachable_s * share for share in _POSTER_AT)


def _jpegs(pattern: str, quality: str, *options: str) -> tuple[str, ...]:
    return (
        *(*options, "-fps_mode", "passthrough"),
        *("-c:v", "mjpeg", "-q:v", quality, "-pix_fmt", "yuv420p", "-color_range", "pc"),
        *("-strict", "unofficial", "-f", "image2", pattern),
    )
