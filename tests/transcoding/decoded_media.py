"""Look at decoded pictures and sound: where the corners are, when it flashes, what is heard.

Colours are computed here from luma and chroma by BT.709's own numbers, so that a mistake in tags
or conversions can't cancel itself out.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.stream import Disposition
from numpy.typing import NDArray

RGB = tuple[float, float, float]
Source = Path | bytes | io.BytesIO

_BRIGHT = 110
_LOUD = 0.1
_PAUSE_S = 0.25
_SOUND_RATE_HZ = 48_000


@dataclass(frozen=True)
class Packet:
    """When it is shown and decoded, in seconds, and what it holds; lengths may be guesses."""

    shown_s: Fraction
    decoded_s: Fraction
    data: bytes = field(repr=False)
    length_s: Fraction = field(compare=False)
    is_key: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A decoded picture; `corners`, in reading order, are true for 4:2:0 in studio range only."""

    time_s: float
    length_s: float
    is_key: bool
    size: tuple[int, int]
    format: str
    tags: tuple[int, int, int, int]
    is_interlaced: bool
    centre_luma: float
    corners: tuple[RGB, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """A decoded sound track: its channels' samples at 48 kHz, from `start_s` on."""

    start_s: float
    channels: NDArray[np.float32]

    @property
    def end_s(self) -> float:
        return self.start_s + len(self.channels[0]) / _SOUND_RATE_HZ

    def onsets_s(self) -> list[float]:
        """Return the times at which it gets loud after a pause."""
        loud = np.flatnonzero(np.abs(self.channels[0]) > _LOUD)
        pauses = np.diff(loud, prepend=-_PAUSE_S * _SOUND_RATE_HZ)
        onsets = loud[pauses >= _PAUSE_S * _SOUND_RATE_HZ]
        return [self.start_s + int(number) / _SOUND_RATE_HZ for number in onsets]

    def level(self, from_s: float, to_s: float, channel: int = 0) -> float:
        """The root of the mean square of a stretch."""
        part = self._part(from_s, to_s, channel)
        return float(np.sqrt(np.mean(np.square(part, dtype=np.float64))))

    def frequency_hz(self, from_s: float, to_s: float, channel: int = 0) -> float:
        """Return the frequency of a pure tone: half the number of its zero crossings."""
        part = self._part(from_s, to_s, channel)
        return np.count_nonzero(np.diff(part < 0)) / 2 / (len(part) / _SOUND_RATE_HZ)

    def _part(self, from_s: float, to_s: float, channel: int) -> NDArray[np.float32]:
        first, last = (int((at - self.start_s) * _SOUND_RATE_HZ) for at in (from_s, to_s))
        return self.channels[channel, first:last]


def open_media(source: Source, **options: str) -> Any:
    """Open an MP4 whatever its metadata is."""
    opened: Any = io.BytesIO(source) if isinstance(source, bytes) else source
    opened = str(opened) if isinstance(opened, Path) else opened
    return av.open(opened, format="mov", metadata_errors="ignore", options=options)


def packets(source: Source, kind: str = "video") -> list[Packet]:
    """Return the packets of the first track of a kind, in decode order; none without a track."""
    with open_media(source) as container:
        return [
            Packet(
                packet.pts * packet.time_base,
                packet.dts * packet.time_base,
                bytes(packet),
                packet.duration * packet.time_base,
                packet.is_keyframe,
            )
            for stream in getattr(container.streams, kind)[:1]
            for packet in container.demux(stream)
            if packet.size
        ]


def look(source: Source, *, strict: bool = True) -> list[Shown]:
    """Decode every picture; when strict, the least fault in the stream is an error."""
    options = {"err_detect": "explode"} if strict else {}
    with open_media(source, **options) as container:
        stream = moving_pictures(container)
        stream.codec_context.options = options
        stream.thread_type = "AUTO"
        decoded = container.decode(stream) if strict else _frames_leniently(container, stream)
        return [_shown(frame) for frame in decoded]


def moving_pictures(container: Any) -> Any:
    """The video, which is not the cover, and the largest one if several are enabled."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    moving = [stream for stream in container.streams.video if not stream.disposition & still]
    return max(
        moving,
        key=lambda stream: (
            bool(stream.disposition & Disposition.default),
            stream.width * stream.height * stream.frames,
        ),
    )


def listen(source: Source, number: int = 0, *, mixed: bool = False) -> Heard:
    """Decode a whole sound track; faults are left out, gaps are silent, `mixed` is one channel."""
    with open_media(source) as container:
        frames = list(_frames_leniently(container, container.streams.audio[number]))
    layout = "mono" if mixed else frames[0].layout.name
    start_s = frames[0].time or 0.0
    parts: list[NDArray[np.float32]] = []
    heard = 0
    form = None
    for frame in frames:
        # Sources change their channels on the way.
        if form != (form := (frame.format.name, frame.layout.name, frame.sample_rate)):
            resampler = av.AudioResampler(format="fltp", layout=layout, rate=_SOUND_RATE_HZ)
        gap = round(((frame.time or 0.0) - start_s) * _SOUND_RATE_HZ) - heard
        for samples in (part.to_ndarray() for part in resampler.resample(frame)):
            silence = np.zeros((len(samples), gap if gap > _SOUND_RATE_HZ // 20 else 0), np.float32)
            parts += [silence, samples]
            heard += silence.shape[1] + samples.shape[1]
            gap = 0
    return Heard(start_s=start_s, channels=np.concatenate(parts, axis=1))


def flashes_s(pictures: Sequence[Shown]) -> list[float]:
    """When the centre turns bright."""
    bright = [picture.centre_luma > _BRIGHT for picture in pictures]
    turns = zip(pictures, [False, *bright], bright, strict=False)
    return [picture.time_s for picture, before, now in turns if now and not before]


def display_aspect(path: Path) -> Fraction:
    """Width to height as a player shows it: aperture, pixel shape and display matrix applied."""
    with open_media(path) as container:
        stream = moving_pictures(container)
        frame = next(_frames_leniently(container, stream))
        sar = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio or 1
        width, height = _aperture(path, (frame.width, frame.height))
        aspect = width / height * Fraction(sar)
        return 1 / aspect if frame.rotation % 180 == 90 else aspect


def _aperture(path: Path, size: tuple[int, int]) -> tuple[Fraction, Fraction]:
    """Return the size of the clean aperture of frames of this size."""
    content = path.read_bytes()
    at = content.find(struct.pack(">I4s", 40, b"clap"))
    # The sample entry begins with the size of frames, up to a few boxes before.
    if at < 0 or struct.pack(">HHII", *size, 72 << 16, 72 << 16) not in content[at - 4096 : at]:
        return Fraction(size[0]), Fraction(size[1])
    width, width_below, height, height_below = struct.unpack_from(">4i", content, at + 8)
    return Fraction(width, width_below), Fraction(height, height_below)


def _frames_leniently(container: Any, stream: Any) -> Iterator[Any]:
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.FFmpegError:
            continue


def _shown(frame: av.VideoFrame) -> Shown:
    form = frame.format.name
    tags = (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range)
    time_s = frame.time or 0.0
    length_s = float((frame.duration or 0) * (frame.time_base or 0))
    if form != "yuv420p":
        frame = frame.reformat(format="yuv420p")
    return Shown(
        time_s=time_s,
        length_s=length_s,
        is_key=bool(frame.key_frame),
        size=(frame.width, frame.height),
        format=form,
        tags=tuple(int(tag) for tag in tags),
        is_interlaced=bool(frame.interlaced_frame),
        centre_luma=_mean(frame, 0, 0.5, 0.5),
        corners=tuple(
            _rgb(*(_mean(frame, plane, x, y) for plane in range(3)))
            for y in (0.12, 0.88)
            for x in (0.12, 0.88)
        ),
    )


def _mean(frame: av.VideoFrame, number: int, x: float, y: float) -> float:
    """Return the mean of a patch around a place given in shares of width and height."""
    plane = frame.planes[number]
    lines = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return float(lines[_patch(y, plane.height), _patch(x, plane.width)].mean())


def _patch(share: float, length: int) -> slice:
    """Return a tenth of a length, around a place given as a share of it."""
    middle = int(share * length)
    half = max(1, length // 20)
    return slice(max(0, middle - half), min(length, middle + half))


def _rgb(luma: float, blue: float, red: float) -> RGB:
    """Convert BT.709 in studio range to full-range RGB (ITU-R BT.709-6, items 3.2 and 3.4)."""
    y = (luma - 16) / 219
    r = y + 1.5748 * (red - 128) / 224
    b = y + 1.8556 * (blue - 128) / 224
    g = (y - 0.2126 * r - 0.0722 * b) / 0.7152
    return (r * 255, g * 255, b * 255)
