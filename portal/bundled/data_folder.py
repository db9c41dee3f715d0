"""The data folder of `portal up`: its layout, who may use it, and what is remembered in it.

    lock       held by the running `portal up`, with its process number
    env        the settings handed to the children, for `portal doctor --data-dir`
    children   the running children, for a start after a crash
    failing    the children that keep failing, for the web's /readyz
    postgres/  the database cluster        run/     its socket
    objects/   the buckets, one folder each        storage-key  their credentials
    log/       of database, storage and `portal up` itself  work/  the worker's scratch space

Nothing here is meant for other accounts of the machine.
"""

import fcntl
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from portal.bundled.errors import UpError
from portal.processes.records import write_atomically

ENV_NAME = "env"


class DataFolder:
    """Absolute paths below the data folder; `shown` is the path as the user gave it."""

    def __init__(self, root: Path, shown: str) -> None:
        self.root, self.shown = root, shown
        self.children = root / "children"
        self.failing = root / "failing"
        self.cluster = root / "postgres"
        self.run = root / "run"
        self.objects = root / "objects"
        self.storage_key = root / "storage-key"
        self.work = root / "work"

    def log(self, name: str) -> Path:
        return self.root / "log" / f"{name}.log"


def open_data_folder(path: Path) -> DataFolder:
    """Create what is missing, or raise `UpError` in one line."""
    try:
        root = path.resolve()
        folder = DataFolder(root, str(path))
        # 0711 for root: the database then runs as another account, which must pass through.
        root.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        for part in (root / "log", folder.objects, folder.work):
            part.mkdir(mode=0o700, exist_ok=True)
    except (OSError, RuntimeError) as exc:  # RuntimeError: a loop of symbolic links
        raise _unusable(path, exc) from exc
    return folder


@contextmanager
def claim(folder: DataFolder) -> Iterator[None]:
    """Hold the folder alone; `UpError` names the process that has it already."""
    lock = folder.root / "lock"
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise _unusable(Path(folder.shown), exc) from exc
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise UpError(
                f"another portal (pid {holder}) is already using {folder.shown}"
            ) from None
        except OSError as exc:
            raise _unusable(Path(folder.shown), exc) from exc
        yield
    finally:
        os.close(descriptor)  # the lock goes with it, however the process ends


def save_environment(folder: DataFolder, environ: Mapping[str, str]) -> None:
    """Write the settings, readable by the owner alone; a shell can read them too."""
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in sorted(environ.items())]
    write_atomically(folder.root / ENV_NAME, "".join(lines))


def load_environment(data_dir: Path) -> dict[str, str]:
    """The settings of the latest `portal up` of this folder; `UpError` when there was none."""
    try:
        text = (data_dir / ENV_NAME).read_text()
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise UpError(f"{data_dir} is no data folder of `portal up`: {reason}") from exc
    pairs = (entry.partition("=") for entry in shlex.split(text, comments=False))
    return {name: value for name, _, value in pairs}


def _unusable(path: Path, exc: Exception) -> UpError:
    reason = exc.strerror if isinstance(exc, OSError) else str(exc)
    return UpError(f"the data folder {path} cannot be used: {reason}; choose another --data-dir")
