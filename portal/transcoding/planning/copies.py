"""Whether a source's own stream is made a rendition as it is. Pure.

By what a probe finds out. What only reading the whole of it tells, `transcoding.copying` finds.
"""

from fractions import Fraction

from portal.transcoding.probing.cuts import MAX_GOP_S
from portal.transcoding.probing.facts import VideoTrack

# What a copied stream may be: what every player decodes, cut where players can switch.
_PROFILES = frozenset({"Constrained Baseline", "Baseline", "Main", "High"})
_PIX_FMTS = frozenset({"yuv420p", "yuvj420p"})
_MAX_LEVEL, _MAX_LEVEL_ABOVE_HD = 42, 52
_HD_PIXELS = 1920 * 1088
_MAX_BITRATE_RATIO = 3
# At this rate, and this in any segment, a copy is enough to start with. Above it people on slow
# lines need a lower rendition beside it.
_ALONE_BITRATE_BPS = 8_000_000
_ALONE_PEAK_BPS = 16_000_000


def can_copy(
    video: VideoTrack, *, size: tuple[int, int], fps: Fraction, max_bitrate_bps: int
) -> bool:
    """Whether players everywhere take the stream as it is, and can switch to it.

    Whatever its frame timing. The rest is what a rendition of the source's size would be encoded
    with.
    """
    max_bps = max(max_bitrate_bps * _MAX_BITRATE_RATIO, _ALONE_BITRATE_BPS)
    return (
        video.codec == "h264"
        and video.profile in _PROFILES
        and video.pix_fmt in _PIX_FMTS
        and _is_level_common(video)
        and not (video.interlaced or video.rotation or video.mirrored or video.is_hdr)
        and video.sar == 1
        and (video.coded_width, video.coded_height) == size
        and video.fps == fps
        and video.closed_gops
        and video.max_key_distance_s is not None
        and video.max_key_distance_s <= MAX_GOP_S
        and video.bitrate_bps is not None
        and video.bitrate_bps <= max_bps
    )


def is_copy_enough(video: VideoTrack) -> bool:
    """Whether a copy of the stream plays on common lines without a lower rendition beside it."""
    average_bps, peak_bps = video.bitrate_bps, video.peak_bitrate_bps
    return (
        average_bps is not None
        and average_bps <= _ALONE_BITRATE_BPS
        and peak_bps is not None
        and peak_bps <= _ALONE_PEAK_BPS
    )


def _is_level_common(video: VideoTrack) -> bool:
    is_large = video.coded_width * video.coded_height > _HD_PIXELS
    most = _MAX_LEVEL_ABOVE_HD if is_large else _MAX_LEVEL
    return video.level is not None and video.level <= most
