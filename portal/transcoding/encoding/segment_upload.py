"""The folder that a pass works in, and the upload of its finished segments meanwhile.

The folder ffmpeg writes to is the queue: a segment is finished once it has lost its temporary
name. Each is inspected, uploaded and deleted; ffmpeg is paused when the sink falls behind, so the
disk holds a bounded amount however long the video is. The folder is gone afterwards.
"""

import asyncio
import errno
import math
import re
import shutil
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from portal.concurrency import task_group
from portal.telemetry.tracing import span
from portal.transcoding.encoding.command import SEGMENT_PATTERN, SEGMENT_SUFFIX
from portal.transcoding.encoding.continuation import (
    Continuation,
    MadeRendition,
    NotContinuable,
    Run,
)
from portal.transcoding.errors import DiskFull, FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError, SegmentFacts, inspect_segment
from portal.transcoding.packaging.hls import INIT_NAME

# With less, a pass that broke off may well have done so for want of room: files are written by
# several, and not everyone who fails says why.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SCAN_PERIOD_S = 0.2
_CONCURRENT_PUTS = 4
# Pause ffmpeg above the first and resume it below the second.
_PAUSE_BACKLOG_FILES = 48
_RESUME_BACKLOG_FILES = 16
# There is a segment of this number amid a video however long segments are; copied ones may last ten
# seconds.
_MIDDLE_PER_S = 1 / 20

CONTENT_TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".vtt": "text/vtt; charset=utf-8",
}

# Told the name of a segment that is in storage.
OnStored = Callable[[str], Awaitable[None]]
Written = TypeVar("Written")


@contextmanager
def pass_folder(work_dir: Path) -> Iterator[Path]:
    """A new folder in `work_dir`. Raises `DiskFull` for what a pass without room broke off with."""
    with TemporaryDirectory(dir=work_dir) as name:
        try:
            yield Path(name)
        except TranscodeFailed as exc:
            if shutil.disk_usage(work_dir).free < _MIN_FREE_BYTES:
                raise DiskFull(work_dir) from exc
            raise
        except OSError as exc:
            if exc.errno in _NO_ROOM:
                raise DiskFull(work_dir) from exc
            raise


class Sink(Protocol):
    """Where the output goes. `put` returns once the data is stored, and raises when it isn't.

    Names are relative, such as `720p/00012.m4s`. A put must have a time limit of its own.
    """

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Throttle:
    """Tells ffmpeg to stand still, while it is too far ahead of the sink, or to end."""

    paused: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def balance(self, backlog_files: int) -> None:
        """So many files wait for the sink."""
        if backlog_files > _PAUSE_BACKLOG_FILES:
            self.paused.set()
        elif backlog_files < _RESUME_BACKLOG_FILES:
            self.paused.clear()


@dataclass(slots=True)
class SegmentUpload:
    """Uploads from one working folder to one sink, and what was learned of the files.

    `facts` are those of the segments. The `sampled` segments of each rendition stay on disk for the
    check at the end. `after` is what the run goes on after.
    """

    sink: Sink
    work_dir: Path
    sampled: Collection[str] = ()
    after: Continuation | None = None
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, SegmentFacts] = field(default_factory=dict)

    def add(self, name: str, made: MadeRendition) -> None:
        """Count what is made of a rendition as uploaded."""
        self.sizes_bytes[f"{name}/{INIT_NAME}"] = len(made.init)
        for segment in made.segments:
            self.sizes_bytes[f"{name}/{segment.uri}"] = segment.size_bytes
            self.facts[f"{name}/{segment.uri}"] = segment.facts

    async def replace(self, name: str, made: MadeRendition) -> None:
        """Count what is made of a rendition as uploaded, and nothing else of it."""
        for path in self.facts.keys() & set(self.names_of(name)):
            del self.sizes_bytes[path], self.facts[path]
        self.add(name, made)
        folder = self.work_dir / name
        await asyncio.to_thread(folder.mkdir, exist_ok=True)
        await asyncio.to_thread((folder / INIT_NAME).write_bytes, made.init)

    async def during(
        self,
        write: Callable[[Throttle], Coroutine[Any, Any, Written]],
        names: Collection[str],
        *,
        on_stored: OnStored | None = None,
        run: Run | None = None,
    ) -> Written:
        """Upload what `write` writes of these renditions until it has ended and none is left.

        Answers what it does, which heeds the throttle: it is ended once the last segment of the
        run is there. `on_stored` is told the name of each segment.
        """
        for name in names:
            await asyncio.to_thread((self.work_dir / name).mkdir, parents=True, exist_ok=True)
        before, seen = await asyncio.to_thread(_finished_segments, self.work_dir, names), set[str]()
        reached = dict.fromkeys(names, -1)
        slots, throttle, is_over = asyncio.Semaphore(_CONCURRENT_PUTS), Throttle(), False
        with span("upload"):
            async with task_group() as tasks:
                writing = tasks.create_task(write(throttle))
                while not is_over:
                    is_over = writing.done()  # before looking, so that the last look misses nothing
                    found = await asyncio.to_thread(_finished_segments, self.work_dir, names)
                    found -= before
                    last = math.inf if run is None or run.last is None else run.last
                    found = {it for it in found if segment_number(it) <= last}
                    for name in sorted(found - seen):
                        tasks.create_task(self._upload(name, slots, on_stored))
                        reached[name.partition("/")[0]] = segment_number(name)
                    seen |= found
                    if min(reached.values()) >= last:
                        throttle.ended.set()
                    throttle.balance(len(found - self.sizes_bytes.keys()))
                    await asyncio.wait({writing}, timeout=_SCAN_PERIOD_S)
        return writing.result()

    async def _upload(
        self, name: str, slots: asyncio.Semaphore, on_stored: OnStored | None
    ) -> None:
        path = self.work_dir / name
        async with slots:
            self.facts[name] = await asyncio.to_thread(self._inspect, path)
            await self.put(name, path)
            if on_stored:
                await on_stored(name)
            if path.name not in self.sampled:
                await asyncio.to_thread(path.unlink)

    async def put(self, name: str, data: Path | bytes) -> None:
        """Store one file and remember its size."""
        if isinstance(data, bytes):
            size_bytes = len(data)
        else:
            size_bytes = (await asyncio.to_thread(data.stat)).st_size
        await self.sink.put(name, data, CONTENT_TYPES[Path(name).suffix])
        self.sizes_bytes[name] = size_bytes

    async def put_init(self, rendition: str) -> bytes:
        """Store the init segment of a rendition, unless it is; returns it."""
        name = f"{rendition}/{INIT_NAME}"
        init = await asyncio.to_thread((self.work_dir / name).read_bytes)
        if name not in self.sizes_bytes:
            await self.put(name, init)
        return init

    async def discard(self, rendition: str) -> None:
        """Leave a rendition out; it will be made again."""
        for name in self.names_of(rendition):
            del self.sizes_bytes[name]
            self.facts.pop(name, None)
        await asyncio.to_thread(shutil.rmtree, self.work_dir / rendition)

    def names_of(self, rendition: str) -> list[str]:
        """The files of a rendition that are in storage."""
        return [name for name in self.sizes_bytes if name.startswith(f"{rendition}/")]

    def _inspect(self, path: Path) -> SegmentFacts:
        """Read a segment. Raises NotContinuable or TranscodeFailed."""
        try:
            return inspect_segment(path.read_bytes())
        except SegmentError as exc:
            if self.after and segment_number(path.name) == self.after.number:
                # What it goes on after is the whole film.
                raise NotContinuable("no frame followed") from exc
            raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=f"{path.name}: {exc}") from exc


def sampled_segments(duration_s: float, after: Continuation | None = None) -> frozenset[str]:
    """The names of a rendition's first segment and of one amid it, and of those of a later run."""
    first, middle = 0, int(duration_s * _MIDDLE_PER_S)
    names = {SEGMENT_PATTERN % number for number in (first, middle)}
    if after:
        numbers = {after.number, max(middle, after.number)}
        names |= {after.prefix + SEGMENT_PATTERN % number for number in numbers}
    return frozenset(names)


def segment_number(name: str) -> int:
    """Which segment of its rendition this is, counted from 0."""
    return int(re.split("[-/]", name.removesuffix(SEGMENT_SUFFIX))[-1])


def _finished_segments(work_dir: Path, names: Collection[str]) -> set[str]:
    return {
        f"{rendition}/{path.name}"
        for rendition in names
        for path in (work_dir / rendition).iterdir()
        if path.suffix == SEGMENT_SUFFIX
    }
