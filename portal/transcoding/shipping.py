"""Carry finished files to storage while ffmpeg is still writing the next ones.

The folder ffmpeg writes to is the queue: a segment counts as finished once it has lost its
temporary name. Each is deleted as soon as the sink has it, and ffmpeg is held up when the sink
falls behind, so the disk holds a bounded amount however long the video is.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from portal.transcoding.command import SEGMENT_SUFFIX
from portal.transcoding.ffmpeg import Brake
from portal.transcoding.process import first_error

_SCAN_PERIOD_S = 0.2
_CONCURRENT_PUTS = 4
# Hold ffmpeg above the first and release it below the second.
_MAX_BACKLOG_FILES = 48
_RELEASE_BACKLOG_FILES = 16
_CONTENT_TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
}


class Sink(Protocol):
    """Where the output goes. `put` returns once the data is stored, and raises when it isn't.

    Names are relative, such as `720p/00012.m4s`. A put must have a time limit of its own.
    """

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None: ...


@dataclass(slots=True)
class Shipment:
    """What goes to one sink, and the size of everything that has arrived there."""

    sink: Sink
    folders: Mapping[str, Path]
    brake: Brake = field(default_factory=Brake)
    sizes_bytes: dict[str, int] = field(default_factory=dict)

    async def follow(self, encoding: asyncio.Task[None]) -> None:
        """Ship every segment until `encoding` has ended and none is left."""
        waiting: asyncio.Queue[tuple[str, Path] | None] = asyncio.Queue()
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_CONCURRENT_PUTS):
                    tasks.create_task(self._ship(waiting))
                await self._scan(encoding, waiting)
                for _ in range(_CONCURRENT_PUTS):
                    waiting.put_nowait(None)
        except BaseExceptionGroup as group:
            raise first_error(group) from None

    async def put(self, name: str, data: Path | bytes) -> None:
        """Store one file and remember its size."""
        size_bytes = len(data) if isinstance(data, bytes) else await _size_bytes(data)
        await self.sink.put(name, data, _CONTENT_TYPES[Path(name).suffix])
        self.sizes_bytes[name] = size_bytes

    async def _scan(
        self, encoding: asyncio.Task[None], waiting: asyncio.Queue[tuple[str, Path] | None]
    ) -> None:
        seen: set[str] = set()
        while True:
            ended = encoding.done()  # before looking, so that the last look misses nothing
            found = await asyncio.to_thread(_finished_segments, self.folders)
            for name in sorted(found.keys() - seen):
                waiting.put_nowait((name, found[name]))
            seen |= found.keys()
            if ended:
                return
            self._balance(len(found))
            await asyncio.wait({encoding}, timeout=_SCAN_PERIOD_S)

    def _balance(self, backlog_files: int) -> None:
        if backlog_files > _MAX_BACKLOG_FILES:
            self.brake.held = True
        elif backlog_files < _RELEASE_BACKLOG_FILES:
            self.brake.held = False

    async def _ship(self, waiting: asyncio.Queue[tuple[str, Path] | None]) -> None:
        while (item := await waiting.get()) is not None:
            name, path = item
            await self.put(name, path)
            await asyncio.to_thread(path.unlink)


async def _size_bytes(path: Path) -> int:
    return (await asyncio.to_thread(path.stat)).st_size


def _finished_segments(folders: Mapping[str, Path]) -> dict[str, Path]:
    return {
        f"{rendition}/{path.name}": path
        for rendition, folder in folders.items()
        for path in folder.iterdir()
        if path.suffix == SEGMENT_SUFFIX
    }
