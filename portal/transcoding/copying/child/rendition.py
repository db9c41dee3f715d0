"""The files of one copied track: each is there when it is whole."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from portal.transcoding.copying.child.errors import NotWritten, Undeliverable
from portal.transcoding.copying.child.fragments import Sample, segment_head
from portal.transcoding.packaging import hls

_TEMPORARY = ".part"

OnSegment = Callable[[float], None]


class Rendition:
    """Writes into a folder of its own. `on_segment` is told each time where a segment ends."""

    def __init__(self, folder: Path, *, is_video: bool, on_segment: OnSegment) -> None:
        self._folder = folder
        self._is_video = is_video
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
            head = segment_head(number, samples, until=until, is_video=self._is_video)
        except struct.error as exc:
            raise Undeliverable("times", f"segment {number}: {exc}") from exc
        uri = f"{number:05}.m4s"
        self._write(uri, [head, *(sample.data for sample in samples)])
        self._segments.append(hls.Segment(uri=uri, duration_s=end_s - self._end_s))
        self._end_s = end_s
        self._on_segment(end_s)

    def finish(self) -> None:
        """Write the playlist, for its segments: the target duration is that of all renditions."""
        longest_s = round(max(segment.duration_s for segment in self._segments))
        text = hls.media_playlist(self._segments, target_duration_s=max(1, longest_s))
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
            raise NotWritten(exc) from exc
