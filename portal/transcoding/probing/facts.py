"""What a probe found out about a source, and how the child's answer is read. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_FALLBACK_FPS = Fraction(25)
# Code points of ISO/IEC 23091-2.
_BT2020 = 9
_UNNAMED_TRANSFERS = frozenset({0, 2})
_HDR_TRANSFERS = frozenset({16, 18})


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoTrack:
    """The video as it is stored (`coded_*`) and as it is meant to be seen (`width`, `height`).

    `width` and `height` are after rotation and with square pixels; `mirrored` frames have to be
    flipped, too (FFmpeg does both when it decodes). `constant_rate` means that one frame is
    meant to be shown every 1/`fps`: all are within a third of that of a grid, the first one
    `grid_lead` of it late; where that is None, the file merely claims so. `level` is H.264's, ten
    times its name. The colour fields are the code points of ISO/IEC 23091-2 (2 = unspecified).

    `sizes` are the known sizes of frames, the first frame's first. The largest one is the video's,
    and other frames are fitted into it.
    The clean aperture cuts `margins` off each frame before it is turned: top, bottom, left, right.
    `dolby_only` frames are in colours of Dolby Vision that other decoders don't know.

    `start_s` is when the first frame is shown, edit lists applied. What comes from the file's
    index is None without one (fragmented files). Counted from the film's start, from which on the
    first frame is shown: `duration_s` is when the last frame ends, `last_frame_s` when it begins.
    `longest_frame_s` is how long any other frame is shown. `misplaced_frames` have a time far
    behind the track's end, which counts for nothing. `frame_count` counts what is presented,
    `bitrate_bps` is the stored bytes over the duration, those that samples share counted once,
    `peak_bitrate_bps` that of any segment of a copy (None in doubt), and `max_key_distance_s` the
    longest stretch between key frames, the end included. `closed_gops` means that H.264 can be cut
    at every key frame without decoding: those sampled are IDR pictures, nothing is discarded, and
    no samples share their bytes. It is False in doubt.
    """

    index: int
    codec: str
    width: int
    height: int
    coded_width: int
    coded_height: int
    rotation: int
    sar: Fraction
    fps: Fraction
    constant_rate: bool
    pix_fmt: str
    interlaced: bool
    duration_s: float | None
    color_space: int
    color_transfer: int
    color_primaries: int
    profile: str | None
    level: int | None
    has_alpha: bool
    start_s: float
    mirrored: bool = False
    frame_count: int | None = None
    bitrate_bps: int | None = None
    peak_bitrate_bps: int | None = None
    max_key_distance_s: float | None = None
    closed_gops: bool = False
    grid_lead: float | None = None
    longest_frame_s: float | None = None
    last_frame_s: float | None = None
    misplaced_frames: int = 0
    margins: Sequence[int] = (0, 0, 0, 0)
    dolby_only: bool = False
    sizes: Sequence[Sequence[int]] = ()

    @property
    def changes_size(self) -> bool:
        """Return whether frames have several sizes."""
        return len(self.sizes) > 1

    @property
    def upright_sar(self) -> Fraction:
        """Shape of the pixels of upright frames."""
        return 1 / self.sar if _is_on_its_side(self.rotation) else self.sar

    @property
    def is_hdr(self) -> bool:
        """Return whether light levels are PQ's or HLG's, and the colours can be converted."""
        return self.color_transfer in _HDR_TRANSFERS and not self.dolby_only

    @property
    def is_log(self) -> bool:
        """Return whether frames look like log footage: over eight bits of BT.2020, no curve."""
        is_wide = self.color_primaries == _BT2020 and self.pix_fmt.endswith(("le", "be"))
        return is_wide and self.color_transfer in _UNNAMED_TRANSFERS and not self.dolby_only


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """A track of text, or the base of one of sound. Bitmap subtitles are left out.

    `language` is as in the file, None when undetermined.
    """

    index: int
    codec: str
    language: str | None
    title: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioTrack(Track):
    """A track that can be played.

    `profile` and `layout` are FFmpeg's names, such as LC and 5.1. A layout in an unusual order
    lists its channels: "3 channels (FL+FC+FR)".
    `end_s` is when its samples end, from the film's start; None in files of very many fragments.
    `is_silent` is only found out of tracks that nothing else tells apart.
    """

    profile: str | None
    channels: int
    sample_rate_hz: int
    layout: str = ""
    end_s: float | None = None
    is_silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """What a source holds. `duration_s` is when the last of picture and sound ends.

    It goes by their samples; files of very many fragments are taken at their word.

    `readable_share` is the share of the video's samples that lie inside the file. The audio
    tracks' default comes first.
    """

    duration_s: float
    size_bytes: int
    readable_share: float
    video: VideoTrack
    audio: tuple[AudioTrack, ...]
    subtitles: tuple[Track, ...]
    # Each a `start_s` and a `title`; the first begins at 0.
    chapters: Sequence[dict[str, Any]] = ()
    # Sample entries, such as apac, of sound that can't be decoded; "" for a track without samples.
    unheard: Sequence[str] = ()


def interpret(answer: dict[str, Any]) -> Probe:
    """The child's answer about a source it did not refuse."""
    video = _video_track(answer["video"])
    video_end_s = video.duration_s or answer["duration_s"] or 0.0
    audio_ends_s = (track["end_s"] or 0.0 for track in answer["audio"])
    shortest_s = float(1 / video.fps)
    return Probe(
        duration_s=max(video_end_s, shortest_s, *audio_ends_s),
        size_bytes=answer["size_bytes"],
        readable_share=answer["readable_share"],
        video=video,
        audio=tuple(AudioTrack(**track) for track in answer["audio"]),
        subtitles=tuple(Track(**track) for track in answer["subtitles"]),
        chapters=answer["chapters"],
        unheard=answer["unheard"],
    )


def _video_track(facts: dict[str, Any]) -> VideoTrack:
    sar = _fraction(facts.pop("sar")) or Fraction(1)
    average, base = _fraction(facts.pop("average_rate")), _fraction(facts.pop("base_rate"))
    grid_fps = _fraction(facts.pop("grid_fps", None))
    is_constant = facts.pop("constant_rate", average is not None and average == base)
    if "frame_count" not in facts:  # there is no index to tell from
        facts["duration_s"] = facts.pop("fragments_end_s", None)
    if len(sizes := facts["sizes"]) > 1:
        # An aperture belongs to frames of one size.
        facts["margins"] = (0, 0, 0, 0)
        largest = max(sizes, key=math.prod)
        facts["coded_width"], facts["coded_height"] = largest
    width, height = _display_size(facts, sar)
    return VideoTrack(
        width=width,
        height=height,
        sar=sar,
        fps=grid_fps or _nominal_rate(average, base),
        constant_rate=is_constant,
        **facts,
    )


def _display_size(facts: dict[str, Any], sar: Fraction) -> tuple[int, int]:
    """Square pixels by stretching the axis the ratio says is squeezed; then upright."""
    top, bottom, left, right = facts["margins"]
    width = facts["coded_width"] - left - right
    height = facts["coded_height"] - top - bottom
    if sar > 1:
        width = round(width * sar)
    else:
        height = round(height / sar)
    return (height, width) if _is_on_its_side(facts["rotation"]) else (width, height)


def _is_on_its_side(rotation: int) -> bool:
    """Return whether FFmpeg turns frames by a quarter; other angles leave their size as it is."""
    return abs(rotation % 180 - 90) <= 1


def _nominal_rate(average: Fraction | None, base: Fraction | None) -> Fraction:
    """The base rate when the average says it is meant (30000/1001, not 29.968), else the average.

    `base` is the lowest rate all timestamps fit, so in a variable source it can be absurdly high.
    """
    if average and base and abs(average - base) / base < Fraction(1, 100):
        return base
    return average or base or _FALLBACK_FPS


def _fraction(text: str | None) -> Fraction | None:
    value = Fraction(text) if text else None
    return value if value and value > 0 else None
