"""Write the files of a copied track: CMAF with one track, and one movie fragment in each segment.

FFmpeg writes the init segment, and `packaging.fragments` the segments.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import av

from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.fragments import Sample, segment_head

_TEMPORARY = ".part"

# The options that FFmpeg's HLS muxer sets; the index is written after the first packet.
_INIT_OPTIONS = {
    "movflags": "+frag_custom+dash+delay_moov",
    "avoid_negative_ts": "disabled",
    "fflags": "+bitexact",
}
_INIT_BOXES = (b"ftyp", b"moov")


class NotWritten(OSError):
    """A file could not be written."""


class Rendition:
    """Writer of a rendition into a folder. `on_segment` is called with the end of each segment."""

    def __init__(self, folder: Path, on_segment: Callable[[float], None]) -> None:
        self._folder = folder
        self._on_segment = on_segment
        self._segments: list[hls.Segment] = []
        self._end_s = 0.0

    def write_init(self, init: bytes) -> None:
        """Write the init segment."""
        self._write(hls.INIT_NAME, [init])

    def add(self, samples: Sequence[Sample], *, until: int, end_s: float) -> None:
        """Write a segment; `until`, in ticks, ends its decoding and `end_s` its presentation."""
        number = len(self._segments)
        try:
            head = segment_head(number, samples, until)
        except struct.error as exc:
            raise CopyUndeliverable("times", detail=f"segment {number}: {exc}") from exc
        self._write(_uri(number), [head, *(sample.data for sample in samples)])
        self.list_segment(end_s)
        self._on_segment(end_s)

    def list_segment(self, end_s: float) -> None:
        """Add the next segment, which ends at `end_s` of the film, to the playlist.

        Its file is written apart from this rendition, if it wasn't written yet.
        """
        uri = _uri(len(self._segments))
        self._segments.append(hls.Segment(uri=uri, duration_s=end_s - self._end_s))
        self._end_s = end_s

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


def _uri(number: int) -> str:
    return f"{number:05}.m4s"


def init_segment(stream: Any, first: bytes, *, at: int) -> bytes:
    """Return the init segment of a copy of an FFmpeg stream, whose first packet is at this time.

    The time is in the stream's ticks, and at most zero. An edit list begins the presentation at
    zero.
    """
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4", options=_INIT_OPTIONS) as output:
        packet: av.Packet[Any] = av.Packet(first)
        packet.stream = output.add_stream_from_template(stream)
        packet.time_base = stream.time_base
        packet.pts = at
        packet.dts = at
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
