"""Passes that end early and are gone on with, for the tests of that."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from published import FolderSink, Result, make_pass

from portal.transcoding.encoding.continuation import MadeRendition, MadeSegment
from portal.transcoding.encoding.transcode import Kept
from portal.transcoding.packaging.hls import INIT_NAME


@dataclass
class Record:
    """What passes told of the segments that they stored."""

    segments: dict[str, dict[int, MadeSegment]] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: int = 0

    def __call__(self, name: str, number: int, segment: MadeSegment) -> None:
        self.segments.setdefault(name, {})[number] = segment
        if self.whole() >= self.wanted:
            self.enough.set()

    def whole(self) -> int:
        """How many segments there are of each rendition, without a gap."""
        counts = [0]
        for made in self.segments.values():
            counts.append(next(n for n in range(len(made) + 1) if n not in made))
        return min(counts[1:], default=0)

    def kept(self, sink: FolderSink, prefix: str, count: int | None = None) -> Kept:
        """The first segments of each rendition, or all."""
        number = self.whole() if count is None else count
        renditions = {
            name: MadeRendition(
                init=(sink.folder / name / INIT_NAME).read_bytes(),
                segments=tuple(made[each] for each in range(number)),
            )
            for name, made in self.segments.items()
        }
        return Kept(renditions=renditions, prefix=prefix)


async def continued(
    path: Path, *, sink: FolderSink, counts: tuple[int, ...], **options: Any
) -> Result:
    """Make a pass, and go on with it after so many segments, several times."""
    record = Record()
    result = await make_pass(path, sink=sink, on_made=record, **options)
    for number, count in enumerate(counts, start=2):
        kept = record.kept(sink, f"{number}-", count)
        result = await make_pass(path, sink=sink, on_made=record, kept=kept, **options)
    return result


async def ended_after(path: Path, record: Record, count: int, **options: Any) -> None:
    """Begin a pass and cancel it when so many segments are stored."""
    record.wanted, record.enough = count, asyncio.Event()
    making = asyncio.create_task(make_pass(path, on_made=record, **options))
    await asyncio.wait(
        {making, asyncio.create_task(record.enough.wait())}, return_when="FIRST_COMPLETED"
    )
    assert not making.done(), "the pass was too fast to be ended"
    making.cancel()
    with suppress(asyncio.CancelledError):
        await making
