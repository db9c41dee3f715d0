"""Destination of a pass's files, and the upload of segments while ffmpeg writes them.

The folder to which ffmpeg writes is the queue: a segment is finished when it loses its temporary
name. Each segment is inspected, uploaded and deleted. ffmpeg is paused when the sink falls behind,
so disk usage is bounded however long the video is.
"""

import asyncio
import errno
import re
import shutil
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from portal.concurrency import task_group
from portal.telemetry.tracing import span
from portal.transcoding.encoding.command import SEGMENT_SUFFIX
from portal.transcoding.encoding.parts import PartsDontJoin, Rendition, Segment
from portal.transcoding.errors import DiskFull, FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError, inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME

# A failed pass that leaves less free space counts as failed for lack of space, because not every
# process says why it can't write.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

CONTENT_TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".bin": "application/octet-stream",
    ".vtt": "text/vtt; charset=utf-8",
}
_SCAN_PERIOD_S = 0.2
_CONCURRENT_PUTS = 4
# ffmpeg is paused above the first number of waiting files, and resumed below the second.
_PAUSE_BACKLOG_FILES = 48
_RESUME_BACKLOG_FILES = 16

# Takes the name of a rendition and a segment of it that is in storage.
OnStored = Callable[[str, Segment], None]
# Checks the file of a segment with this number, beside its init segment.
Check = Callable[[Path, int], Awaitable[None]]
Written = TypeVar("Written")


class Sink(Protocol):
    """Destination of output. `put` returns when the data is stored, and raises if it can't be.

    Names are relative, such as `720p/00012.m4s`. A put must have a time limit.
    """

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        """Store a file."""


async def put_file(sink: Sink, name: str, data: Path | bytes) -> int:
    """Store a file with the content type of its name, and return its size in bytes."""
    if isinstance(data, bytes):
        size_bytes = len(data)
    else:
        size_bytes = (await asyncio.to_thread(data.stat)).st_size
    await sink.put(name, data, CONTENT_TYPES[Path(name).suffix])
    return size_bytes


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


def ignore_stored(rendition: str, segment: Segment) -> None:
    """Take no note of a stored segment."""


async def upload_segments(
    write: Callable[[asyncio.Event], Coroutine[Any, Any, Written]],
    names: Collection[str],
    *,
    folder: Path,
    sink: Sink,
    on_stored: OnStored,
    check: Check,
    end: int | None = None,
    inits: Mapping[str, bytes] | None = None,
) -> tuple[Written, dict[str, Rendition]]:
    """Upload the segments of the renditions `names` while `write` writes them to the folder.

    `write` gets an event, and has to pause while it is set, because too many files wait. Segments
    numbered `end` or higher are not uploaded. A segment is deleted once it is stored and checked.
    `inits` are the init segments in storage, by rendition; those of others are uploaded, too.
    Returns the result of `write`, and by name the renditions with the segments of this call. Raises
    PartsDontJoin if a rendition has another init segment, TranscodeFailed if a segment can't be
    read, or whatever `write`, `check` or the sink raised.
    """
    for name in names:
        await asyncio.to_thread((folder / name).mkdir, parents=True, exist_ok=True)
    paused = asyncio.Event()
    with span("upload"):
        async with task_group() as tasks:
            uploads = _Uploads(
                folder=folder,
                sink=sink,
                on_stored=on_stored,
                check=check,
                inits=inits or {},
                tasks=tasks,
            )
            writing = tasks.create_task(write(paused))
            is_over = False
            while not is_over:
                is_over = writing.done()  # before the search, so that the last one is complete
                uploads.begin(await asyncio.to_thread(_finished_segments, folder, names, end=end))
                backlog_files = uploads.count_unfinished()
                if backlog_files > _PAUSE_BACKLOG_FILES:
                    paused.set()
                elif backlog_files < _RESUME_BACKLOG_FILES:
                    paused.clear()
                await asyncio.wait({writing}, timeout=_SCAN_PERIOD_S)
    return writing.result(), uploads.renditions()


@dataclass(kw_only=True, slots=True)
class _Uploads:
    """Uploads of the init segments and segments in a folder, as tasks of a group.

    Its public fields are arguments of `upload_segments`.
    """

    folder: Path
    sink: Sink
    on_stored: OnStored
    check: Check
    inits: Mapping[str, bytes]
    tasks: asyncio.TaskGroup
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT_PUTS))
    _of_inits: dict[str, asyncio.Task[bytes]] = field(default_factory=dict)
    _of_segments: dict[str, asyncio.Task[Segment]] = field(default_factory=dict)

    def begin(self, finished: set[str]) -> None:
        """Begin to upload finished segments, given by their names, unless this was done before."""
        # Viewers of the unfinished film need each segment of all renditions.
        for name in sorted(finished - self._of_segments.keys(), key=segment_number):
            rendition = name.partition("/")[0]
            if rendition not in self._of_inits:
                expected = self.inits.get(rendition)
                put_init = _put_init(rendition, self.folder, self.sink, expected)
                self._of_inits[rendition] = self.tasks.create_task(put_init)
            self._of_segments[name] = self.tasks.create_task(self._upload(name))

    async def _upload(self, name: str) -> Segment:
        rendition = name.partition("/")[0]
        path = self.folder / name
        async with self._slots:
            segment = await asyncio.to_thread(_inspect, path, await self._of_inits[rendition])
            await put_file(self.sink, name, path)
            self.on_stored(rendition, segment)
        await self.check(path, segment.number)
        await asyncio.to_thread(path.unlink)
        return segment

    def count_unfinished(self) -> int:
        """Return the number of segments that are not stored and checked yet."""
        return sum(not task.done() for task in self._of_segments.values())

    def renditions(self) -> dict[str, Rendition]:
        """Return the renditions by name, once all tasks are done."""
        segments = {name: task.result() for name, task in self._of_segments.items()}
        return {
            name: _rendition(name, task.result(), segments) for name, task in self._of_inits.items()
        }


def _rendition(name: str, init: bytes, segments: Mapping[str, Segment]) -> Rendition:
    """Return a rendition with the segments in its folder, by their paths."""
    own = [segment for path, segment in segments.items() if path.startswith(f"{name}/")]
    own.sort(key=lambda segment: segment.number)
    return Rendition(init=init, segments=tuple(own))


async def _put_init(rendition: str, folder: Path, sink: Sink, expected: bytes | None) -> bytes:
    """Return the init segment of a rendition; store it unless another one is expected."""
    name = f"{rendition}/{INIT_NAME}"
    init = await asyncio.to_thread((folder / name).read_bytes)
    if expected is None:
        await put_file(sink, name, init)
    elif init != expected:
        raise PartsDontJoin(f"{rendition} has another init segment")
    return init


def _inspect(path: Path, init: bytes) -> Segment:
    data = path.read_bytes()
    try:
        facts = inspect_segment(data)
    except SegmentError as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=f"{path.name}: {exc}") from exc
    return Segment(
        number=segment_number(path.name),
        uri=path.name,
        size_bytes=len(data),
        duration_s=(facts.until_ticks - facts.from_ticks) / time_scale(init),
        facts=facts,
    )


def segment_number(name: str) -> int:
    """Return the number of a segment in its rendition, from 0."""
    return int(re.split("[-/]", name.removesuffix(SEGMENT_SUFFIX))[-1])


def _finished_segments(folder: Path, names: Collection[str], *, end: int | None = None) -> set[str]:
    """Return the finished segments below the number `end`, such as `720p/00012.m4s`."""
    return {
        f"{rendition}/{path.name}"
        for rendition in names
        for path in (folder / rendition).iterdir()
        if path.suffix == SEGMENT_SUFFIX and (end is None or segment_number(path.name) < end)
    }
