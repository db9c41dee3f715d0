"""The folder that a pass works in, gone afterwards, and told apart when the disk is full."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from portal.transcoding.errors import DiskFull, TranscodeFailed

# With less, a pass that broke off may well have done so for want of room: files are written by
# several, and not everyone who fails says why.
_MIN_FREE_BYTES = 1024**2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


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
