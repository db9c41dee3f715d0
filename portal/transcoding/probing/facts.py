"""Facts about a source, read from the answer of the child process. Pure."""

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
# Sample aspect ratios further from 1 are mistakes of muxers. Anamorphic films have 2:1 at most.
_MAX_STRETCH = 10

# Begin and end of parts of a track, in order, in seconds of the film.
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoTrack:
    """Video track as it is stored (`coded_*`) and as it is shown (`width`, `height`).

    `width` and `height` are in square pixels, after rotation; `mirrored` frames must be flipped
    (FFmpeg does both when it decodes). `constant_rate` means that one frame is shown every 1/`fps`:
    all frames are within a third of that of a grid, and the first one is late by the share
    `grid_lead` of it; if `grid_lead` is None, only the file says so. `level` is that of H.264,
    times ten. Colour fields are code points of ISO/IEC 23091-2 (2 = unspecified).

    `sizes` are the known sizes of frames, beginning with the first frame's. The video has the
    largest size, and other frames are fitted into it. The clean aperture cuts `margins` off each
    frame before it is turned: top, bottom, left, right. `dolby_only` frames have colours of Dolby
    Vision that other decoders don't know. `hidden` is what FFmpeg shows, but the edit list doesn't.

    `start_s` is when the first frame is shown, with edit lists applied. The following fields come
    from the index or from all fragments, and are None if FFmpeg doesn't read all of these. Their
    times count from the film's start, from which the first frame is shown: `last_frame_s` and
    `duration_s` are when the last frame begins and ends, `longest_frame_s` is the longest duration
    of any other frame.
    `misplaced_frames` counts frames with a time far after the end of the track. `frame_count`
    counts shown frames. `bitrate_bps` is the bytes over the duration; bytes that samples share
    count once. `peak_bitrate_bps` is that of any segment of a copy (None if uncertain).
    `max_key_distance_s` is the longest time between key frames, the end included. `closed_gops`
    means that H.264 can be cut at each key frame without decoding: sampled key frames are IDR
    pictures, no frame is discarded, and no samples share bytes. It is False if uncertain.
    `is_sar_certain` is False if the stream has another sample aspect ratio than the file; decoded
    frames have the file's (`sar`).
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
    is_sar_certain: bool = True
    grid_lead: float | None = None
    longest_frame_s: float | None = None
    last_frame_s: float | None = None
    misplaced_frames: int = 0
    margins: Sequence[int] = (0, 0, 0, 0)
    dolby_only: bool = False
    sizes: Sequence[Sequence[int]] = ()
    hidden: Spans = ()

    @property
    def changes_size(self) -> bool:
        """Return whether frames have several sizes."""
        return len(self.sizes) > 1

    @property
    def upright_sar(self) -> Fraction:
        """Return the shape of the pixels of upright frames."""
        return 1 / self.sar if _is_on_its_side(self.rotation) else self.sar

    @property
    def is_hdr(self) -> bool:
        """Return whether light levels are PQ's or HLG's, and the colours can be converted."""
        return self.color_transfer in _HDR_TRANSFERS and not self.dolby_only

    @property
    def is_log(self) -> bool:
        """Return whether frames look like log footage: BT.2020 in ten bits, without a curve."""
        is_wide = self.color_primaries == _BT2020 and self.pix_fmt.endswith(("le", "be"))
        return is_wide and self.color_transfer in _UNNAMED_TRANSFERS and not self.dolby_only


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """Track of text or, as a base class, of sound. Bitmap subtitles are left out.

    `language` is as in the file, None if undetermined. `hidden` is what FFmpeg plays, but the edit
    list doesn't.
    """

    index: int
    codec: str
    language: str | None
    title: str | None
    hidden: Spans = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioTrack(Track):
    """Track of sound that can be decoded.

    `profile` and `layout` are FFmpeg's names, such as LC and 5.1. A layout in an unusual order
    lists its channels: "3 channels (FL+FC+FR)".
    `end_s` is when its samples end, from the film's start; None in files of very many fragments.
    `is_silent` is False for tracks that differ in language or title, which are not examined.
    """

    profile: str | None
    channels: int
    sample_rate_hz: int
    layout: str = ""
    end_s: float | None = None
    is_silent: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """Content of a source. `duration_s` is when the longest of picture and sound ends.

    The duration follows from samples or, in files of very many fragments, from the file's header.
    `readable_share` is the share of the video's samples that are inside the file. The default track
    of sound comes first.
    """

    duration_s: float
    size_bytes: int
    readable_share: float
    video: VideoTrack
    audio: tuple[AudioTrack, ...]
    subtitles: tuple[Track, ...]
    # Chapters with `start_s` and `title`; the first begins at 0.
    chapters: Sequence[dict[str, Any]] = ()
    # Sample entries, such as apac, of sound that can't be decoded; "" for a track without samples.
    unheard: Sequence[str] = ()
    # Time that FFmpeg reads before the film's start, in seconds, in a file whose edit lists last to
    # the end of each track; None in other files.
    lead_s: float | None = None
    # Edit lists have no change of speed, and nothing that FFmpeg leaves out.
    edits_followed: bool = True
    # There is another track with a film that may be missed.
    has_other_picture: bool = False
    # Text tracks that are telemetry by their names were left out.
    has_telemetry: bool = False

    def shows_one_part(self, hidden: Spans) -> bool:
        """Return whether a track with these hidden spans is shown without gaps.

        Its beginning and its end may be hidden.
        """
        return not hidden or (self.lead_s is not None and len(hidden) == 1)


def interpret(answer: dict[str, Any]) -> Probe:
    """Read the child's answer about a source that it did not refuse."""
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
        lead_s=answer.get("lead_s"),
        edits_followed=answer.get("edits_followed", True),
        has_other_picture=answer.get("has_other_picture", False),
        has_telemetry=answer.get("has_telemetry", False),
    )


def _video_track(facts: dict[str, Any]) -> VideoTrack:
    sar = _fraction(facts.pop("sar")) or Fraction(1)
    if not 1 / _MAX_STRETCH <= sar <= _MAX_STRETCH:
        sar = Fraction(1)
    average = _fraction(facts.pop("average_rate"))
    base = _fraction(facts.pop("base_rate"))
    grid_fps = _fraction(facts.pop("grid_fps", None))
    is_constant = facts.pop("constant_rate", average is not None and average == base)
    facts.setdefault("duration_s", None)
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
    """Return the size of upright frames whose pixels are stretched to squares."""
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
    """Return the base rate if the average is close to it, else the average.

    An average of 29.968, for example, means the base rate 30000/1001. `base` is the lowest rate
    that all times fit, which in a variable source can be far too high.
    """
    if average and base and abs(average - base) / base < Fraction(1, 100):
        return base
    return average or base or _FALLBACK_FPS


def _fraction(text: str | None) -> Fraction | None:
    value = Fraction(text) if text else None
    return value if value and value > 0 else None
