"""The folder that a pass works in: empty before and after, and told apart when the disk is full."""

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from portal.transcoding.errors import DiskFull, TranscodeFailed

# With less, a pass that broke off may well have done so for want of room: files are written by
# several, and not everyone who fails says why.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@asynccontextmanager
async def emptied(work_dir: Path) -> AsyncIterator[None]:
    """Leave nothing behind in `work_dir`, and start with nothing of an earlier attempt's.

    Raises `DiskFull` in place of what a pass without room broke off with.
    """
    await asyncio.to_thread(_empty, work_dir)
    try:
        with _noticing_full_disk(work_dir):
            yield
    finally:
        # Not in a thread: a cancelled await would leave files behind, and few are left by now.
        _empty(work_dir)


@contextmanager
def _noticing_full_disk(work_dir: Path) -> Iterator[None]:
    try:
        yield
    except TranscodeFailed as exc:
        if shutil.disk_usage(work_dir).free < _MIN_FREE_BYTES:
            raise DiskFull(work_dir) from exc
        raise
    except OSError as exc:
        if exc.errno in _NO_ROOM:
            raise DiskFull(work_dir) from exc
        raise


def _empty(work_dir: Path) -> None:
    work_dir.mkdir(parents=True, exist_ok=True)
    for entry in work_dir.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
