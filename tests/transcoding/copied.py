"""What the tests do with copies: make one, and hold it against its source, packet by packet."""

import asyncio
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from decoded_media import open_media
from published import joined, playlist

from portal.transcoding.copying.remux import RemuxReport, TrackCopy, remux
from portal.transcoding.packaging.cmaf import inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME, MediaPlaylist

VIDEO = "video"
SOUND = "sound/0"


@dataclass(frozen=True)
class Unit:
    """One packet: when it is shown and decoded, in seconds, and what it holds."""

    shown_s: Fraction
    decoded_s: Fraction
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Copied:
    """A copy, beside its source; `tracks` are the indexes of what was copied, by their names."""

    source: Path
    folder: Path
    tracks: Mapping[str, int]
    report: RemuxReport

    def units(self, name: str, *segments: int) -> list[Unit]:
        """The packets of the copy, as a reader finds them."""
        with open_media(io.BytesIO(joined(self.folder, name, *segments))) as container:
            return _units(container, container.streams[0])

    def source_units(self, name: str) -> list[Unit]:
        """The packets of what became this in the source."""
        with open_media(self.source) as container:
            return _units(container, container.streams[self.tracks[name]])

    def playlist(self, name: str) -> MediaPlaylist:
        return playlist(self.folder, name)

    def starts_s(self) -> list[float]:
        """When the segments of the video begin, by what they hold."""
        scale = time_scale((self.folder / VIDEO / INIT_NAME).read_bytes())
        facts = [
            inspect_segment((self.folder / VIDEO / segment.uri).read_bytes())
            for segment in self.playlist(VIDEO).segments
        ]
        assert all(each.is_closed for each in facts)
        return [(each.from_ticks - facts[0].from_ticks) / scale for each in facts]


def _units(container: Any, stream: Any) -> list[Unit]:
    scale = stream.time_base
    return [
        Unit(packet.pts * scale, packet.dts * scale, bytes(packet))
        for packet in container.demux(stream)
        if packet.size
    ]


async def ignore(copied_s: float) -> None:
    """Progress that nobody watches."""


async def copy(source: Path, folder: Path, *, address: str = "", **how: Any) -> Copied:
    """Copy the first video and all sound tracks, named `sound/0` and so on."""
    with open_media(source) as container:
        tracks = {VIDEO: container.streams.video[0].index}
        for number, stream in enumerate(container.streams.audio):
            tracks[f"sound/{number}"] = stream.index
    video, *audio = (TrackCopy(index=index, name=name) for name, index in tracks.items())
    defaults = {"on_progress": ignore, "paused": asyncio.Event(), "timeout_s": 60}
    report = await remux(
        address or str(source), video=video, audio=audio, work_dir=folder, **{**defaults, **how}
    )
    return Copied(source, folder, tracks, report)
