"""Write the files of a copied track: CMAF with one track, and one movie fragment in each segment.

FFmpeg writes the init segment. This module writes the segments (ISO/IEC 14496-12, 8.8), because
FFmpeg's muxer assumes the same delay between decoding and showing in all segments.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import av

from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.packaging import hls

_TEMPORARY = ".part"

# The options that FFmpeg's HLS muxer sets; the index is written after the first packet.
_INIT_OPTIONS = {
    "movflags": "+frag_custom+dash+delay_moov",
    "avoid_negative_ts": "disabled",
    "fflags": "+bitexact",
}
_INIT_BOXES = (b"ftyp", b"moov")
_BASE_IS_MOOF = 0x020000
_HAS_DEFAULT_FLAGS = 0x000020
_DATA_OFFSET = 0x001
_DURATION = 0x100
_SIZE = 0x200
_FLAGS = 0x400
_COMPOSITION = 0x800
# A sample that depends on no other one, and a sample that depends on others.
_SYNC = 0x02000000
_NOT_SYNC = 0x01010000
_TRACK = 1
_SEGMENT_TYPE = struct.pack(">I4s4s4x8s", 24, b"styp", b"msdh", b"msdhmsix")
_BOX_HEADER_BYTES = 8


class NotWritten(OSError):
    """A file could not be written."""


class Rendition:
    """Writer of a rendition into a folder. `on_segment` is called with the end of each segment."""

    def __init__(self, folder: Path, on_segment: Callable[[float], None]) -> None:
        self._folder = folder
        self._on_segment = on_segment
        self._segments: list[hls.Segment] = []
        self._end_s = 0.0

    def begin(self, init: bytes) -> None:
        """Write the init segment."""
        self._write(hls.INIT_NAME, [init])

    def add(self, samples: Sequence[Sample], *, until: int, end_s: float) -> None:
        """Write a segment; `until`, in ticks, ends its decoding and `end_s` its presentation."""
        number = len(self._segments)
        try:
            head = _segment_head(number, samples, until)
        except struct.error as exc:
            raise CopyUndeliverable("times", detail=f"segment {number}: {exc}") from exc
        uri = f"{number:05}.m4s"
        self._write(uri, [head, *(sample.data for sample in samples)])
        self._segments.append(hls.Segment(uri=uri, duration_s=end_s - self._end_s))
        self._end_s = end_s
        self._on_segment(end_s)

    def finish(self) -> None:
        """Write the playlist, with the target duration of its segments."""
        target_s = hls.target_duration_s(self._segments)
        text = hls.media_playlist(self._segments, target_duration_s=target_s)
        self._write(hls.PLAYLIST_NAME, [text.encode()])

    def _write(self, name: str, content: Iterable[bytes]) -> None:
        path = self._folder / name
        temporary = path.with_name(name + _TEMPORARY)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.writelines(content)
            temporary.rename(path)
        except OSError as exc:
            raise NotWritten(exc.errno, exc.strerror) from exc


class Sample(NamedTuple):
    """Access unit: when it is decoded, in ticks, and the time from then until it is shown."""

    decode_at: int
    offset: int
    is_sync: bool
    data: bytes


def init_segment(stream: Any, first: bytes, *, pts: int, dts: int) -> bytes:
    """Return the init segment of a copy of an FFmpeg stream, whose first packet has these times.

    The times are in the stream's ticks, and `dts` is at most zero. The presentation begins at zero,
    by the edit list.
    """
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4", options=_INIT_OPTIONS) as output:
        packet: av.Packet[Any] = av.Packet(first)
        packet.stream = output.add_stream_from_template(stream)
        packet.time_base = stream.time_base
        packet.pts = pts
        packet.dts = dts
        packet.duration = 1
        packet.is_keyframe = True
        output.mux_one(packet)
    data = buffer.getvalue()
    init = b""
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind in _INIT_BOXES:
            init += data[at : at + size]
        at += size
    return init


def _segment_head(number: int, samples: Sequence[Sample], until: int) -> bytes:
    """Return the part of a segment before its samples' data; the last sample lasts to `until`.

    Raises struct.error if a number is too large for its field.
    """
    # Sound needs fewer columns: samples depend on no others, and are shown when they are decoded.
    is_plain = all(sample.is_sync and not sample.offset for sample in samples)
    columns = _DURATION | _SIZE | (0 if is_plain else _FLAGS | _COMPOSITION)
    ends = (*(sample.decode_at for sample in samples[1:]), until)
    rows: list[int] = []
    for (at, offset, is_sync, data), end in zip(samples, ends, strict=True):
        rows += (end - at, len(data))
        if not is_plain:
            rows += (_SYNC if is_sync else _NOT_SYNC, offset)
    table = struct.pack(f">{len(rows)}I", *rows)
    # The fragment contains the offset of the data, which is its size, so it is built twice.
    size_bytes = len(_movie_fragment(number, samples, columns, table, data_offset=0))
    data_offset = size_bytes + _BOX_HEADER_BYTES
    moof = _movie_fragment(number, samples, columns, table, data_offset=data_offset)
    media_bytes = sum(len(sample.data) for sample in samples)
    return _SEGMENT_TYPE + moof + struct.pack(">I4s", _BOX_HEADER_BYTES + media_bytes, b"mdat")


def _movie_fragment(
    number: int, samples: Sequence[Sample], columns: int, table: bytes, *, data_offset: int
) -> bytes:
    run = struct.pack(">III", _DATA_OFFSET | columns, len(samples), data_offset)
    return _box(
        b"moof",
        _box(b"mfhd", struct.pack(">II", 0, number + 1)),
        _box(
            b"traf",
            _box(b"tfhd", struct.pack(">III", _BASE_IS_MOOF | _HAS_DEFAULT_FLAGS, _TRACK, _SYNC)),
            _box(b"tfdt", struct.pack(">IQ", 1 << 24, samples[0].decode_at)),
            _box(b"trun", run, table),
        ),
    )


def _box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", _BOX_HEADER_BYTES + len(body), kind) + body
