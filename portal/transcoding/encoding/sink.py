"""Destination of a pass's files, and the folder in which ffmpeg writes them."""

import asyncio
import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from portal.transcoding.errors import DiskFull, TranscodeFailed

# A failed pass that leaves less free space counts as failed for lack of space, because not every
# process says why it can't write.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

CONTENT_TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".vtt": "text/vtt; charset=utf-8",
}


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
