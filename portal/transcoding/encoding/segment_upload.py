"""Working folder of a pass, and the upload of its segments while the pass is running.

The folder to which ffmpeg writes is the queue: a segment is finished when it loses its temporary
name. Each segment is inspected, uploaded and deleted. ffmpeg is paused when the sink falls behind,
so disk usage is bounded however long the video is. The folder is deleted in the end.
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

# A failed pass that leaves less free space counts as failed for lack of space, because not every
# process says why it can't write.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SCAN_PERIOD_S = 0.2
_CONCURRENT_PUTS = 4
# ffmpeg is paused above the first number of waiting files, and resumed below the second.
_PAUSE_BACKLOG_FILES = 48
_RESUME_BACKLOG_FILES = 16
# Number of a segment amid the film, per second of its duration; segments last up to ten seconds.
_MIDDLE_PER_S = 1 / 20

CONTENT_TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".vtt": "text/vtt; charset=utf-8",
}

# Called with the name of a segment that is in storage.
OnStored = Callable[[str], Awaitable[None]]
Written = TypeVar("Written")


@contextmanager
def pass_folder(work_dir: Path) -> Iterator[Path]:
    """Create a temporary folder in `work_dir`. Raises `DiskFull` if the disk is full in the end."""
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
    """Destination of output. `put` returns when the data is stored, and raises if it can't be.

    Names are relative, such as `720p/00012.m4s`. A put must have a time limit.
    """

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        """Store a file."""


@dataclass(frozen=True, slots=True)
class Throttle:
    """Signals to ffmpeg: pause while it is too far ahead of the sink, or end."""

    paused: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def balance(self, backlog_files: int) -> None:
        """Pause or resume, by the number of files that wait for the sink."""
        if backlog_files > _PAUSE_BACKLOG_FILES:
            self.paused.set()
        elif backlog_files < _RESUME_BACKLOG_FILES:
            self.paused.clear()


@dataclass(slots=True)
class SegmentUpload:
    """Upload from a working folder to a sink, with sizes of files and facts of segments.

    The `sampled` segments of each rendition stay on disk for the check at the end. `after` has the
    segments after which the current run begins.
    """

    sink: Sink
    work_dir: Path
    sampled: Collection[str] = ()
    after: Continuation | None = None
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    facts: dict[str, SegmentFacts] = field(default_factory=dict)

    def add(self, name: str, made: MadeRendition) -> None:
        """Count the existing segments of a rendition as uploaded."""
        self.sizes_bytes[f"{name}/{INIT_NAME}"] = len(made.init)
        for segment in made.segments:
            self.sizes_bytes[f"{name}/{segment.uri}"] = segment.size_bytes
            self.facts[f"{name}/{segment.uri}"] = segment.facts

    async def replace(self, name: str, made: MadeRendition) -> None:
        """Count these segments of a rendition, and no others, as uploaded."""
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
        """Upload the segments of these renditions until `write` has ended and none is left.

        Returns the result of `write`, which is ended by its throttle once the last segment of the
        run exists. `on_stored` is called with the name of each segment.
        """
        for name in names:
            await asyncio.to_thread((self.work_dir / name).mkdir, parents=True, exist_ok=True)
        before = await asyncio.to_thread(_finished_segments, self.work_dir, names)
        known_names = set[str]()
        reached = dict.fromkeys(names, -1)
        slots = asyncio.Semaphore(_CONCURRENT_PUTS)
        throttle = Throttle()
        is_over = False
        with span("upload"):
            async with task_group() as tasks:
                writing = tasks.create_task(write(throttle))
                while not is_over:
                    is_over = writing.done()  # before the search, so that the last one is complete
                    finished = await asyncio.to_thread(_finished_segments, self.work_dir, names)
                    last = math.inf if run is None or run.last is None else run.last
                    finished = {name for name in finished - before if segment_number(name) <= last}
                    for name in sorted(finished - known_names):
                        tasks.create_task(self._upload(name, slots, on_stored))
                        reached[name.partition("/")[0]] = segment_number(name)
                    known_names |= finished
                    if min(reached.values()) >= last:
                        throttle.ended.set()
                    throttle.balance(len(finished - self.sizes_bytes.keys()))
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
        """Store a file and keep its size."""
        if isinstance(data, bytes):
            size_bytes = len(data)
        else:
            size_bytes = (await asyncio.to_thread(data.stat)).st_size
        await self.sink.put(name, data, CONTENT_TYPES[Path(name).suffix])
        self.sizes_bytes[name] = size_bytes

    async def put_init(self, rendition: str) -> bytes:
        """Return the init segment of a rendition, and store it the first time."""
        name = f"{rendition}/{INIT_NAME}"
        init = await asyncio.to_thread((self.work_dir / name).read_bytes)
        if name not in self.sizes_bytes:
            await self.put(name, init)
        return init

    async def discard(self, rendition: str) -> None:
        """Remove a rendition, which will be made again."""
        for name in self.names_of(rendition):
            del self.sizes_bytes[name]
            self.facts.pop(name, None)
        await asyncio.to_thread(shutil.rmtree, self.work_dir / rendition)

    def names_of(self, rendition: str) -> list[str]:
        """Return the names of a rendition's files in storage."""
        return [name for name in self.sizes_bytes if name.startswith(f"{rendition}/")]

    def _inspect(self, path: Path) -> SegmentFacts:
        """Read a segment. Raises NotContinuable or TranscodeFailed."""
        try:
            return inspect_segment(path.read_bytes())
        except SegmentError as exc:
            if self.after and segment_number(path.name) == self.after.number:
                # The existing segments are the whole film.
                raise NotContinuable("the first segment has no frame") from exc
            raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=f"{path.name}: {exc}") from exc


def sampled_segments(duration_s: float, after: Continuation | None = None) -> frozenset[str]:
    """Return the names of a rendition's first segment and a middle one, also of a later run."""
    middle = int(duration_s * _MIDDLE_PER_S)
    names = {SEGMENT_PATTERN % number for number in (0, middle)}
    if after:
        numbers = {after.number, max(middle, after.number)}
        names |= {after.prefix + SEGMENT_PATTERN % number for number in numbers}
    return frozenset(names)


def segment_number(name: str) -> int:
    """Return the number of a segment in its rendition, from 0."""
    return int(re.split("[-/]", name.removesuffix(SEGMENT_SUFFIX))[-1])


def _finished_segments(work_dir: Path, names: Collection[str]) -> set[str]:
    return {
        f"{rendition}/{path.name}"
        for rendition in names
        for path in (work_dir / rendition).iterdir()
        if path.suffix == SEGMENT_SUFFIX
    }
