"""The data folder of `portal up`: layout, permissions, lock and saved settings.

    lock         locked by the running `portal up`, with its process id
    env          settings of the children, for commands with --data-dir
    children     running children, for a start after a crash
    failing      children that keep failing, for /readyz
    postgres/    database cluster
    run/         socket of the database
    objects/     buckets, one folder each
    storage-key  credentials of the storage server
    log/         logs of database, storage and `portal up`
    work/        temporary files of the worker

Other accounts of the machine have no access, with one exception: PostgreSQL refuses to run as root.
If root starts the portal, the database runs as a separate system account, which gets the minimal
permissions that it needs. Otherwise the database runs as the account that starts the portal.
"""

import fcntl
import logging
import os
import pwd
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from portal.processes.child import SystemUser
from portal.processes.records import write_atomically

logger = logging.getLogger(__name__)

ENV_NAME = "env"
ACCOUNT_NAME = "pgserver"
NO_SHELL = "/usr/sbin/nologin"
MAX_NAMED = 20


class UpError(click.ClickException):
    """Unusable data folder, account or port, shown by commands as one line."""


class DataFolder:
    """Absolute paths below the data folder; `shown` is the path as the user entered it."""

    def __init__(self, root: Path, shown: str) -> None:
        self.root = root
        self.shown = shown
        self.children = root / "children"
        self.failing = root / "failing"
        self.cluster = root / "postgres"
        self.run = root / "run"
        self.objects = root / "objects"
        self.storage_key = root / "storage-key"
        self.work = root / "work"

    def log(self, name: str) -> Path:
        """Return the path of a log file."""
        return self.root / "log" / f"{name}.log"


def open_data_folder(path: Path) -> DataFolder:
    """Create the data folder and its parts unless they exist. Raises `UpError`."""
    try:
        root = path.resolve()
        folder = DataFolder(root, str(path))
        # 0711 for root, because the database's account must be able to pass through.
        root.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        for part in (root / "log", folder.objects, folder.work):
            part.mkdir(mode=0o700, exist_ok=True)
    except (OSError, RuntimeError) as exc:  # symbolic links in a loop raise RuntimeError
        raise _unusable(path, exc) from exc
    return folder


@contextmanager
def claim(folder: DataFolder) -> Iterator[None]:
    """Lock the folder. Raises `UpError` with the process id of the portal that has the lock."""
    try:
        lock = (folder.root / "lock").open("a+")
    except OSError as exc:
        raise _unusable(Path(folder.shown), exc) from exc
    with lock:  # closing the file releases the lock, also when the process is killed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise UpError(
                f"{folder.shown} is already in use by another `portal up` (pid {holder})."
            ) from None
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        yield


def save_environment(folder: DataFolder, environ: Mapping[str, str]) -> None:
    """Save settings in the syntax of a shell, readable by the owner only."""
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in sorted(environ.items())]
    write_atomically(folder.root / ENV_NAME, "".join(lines))


def load_environment(data_dir: Path) -> dict[str, str]:
    """Return the settings of the latest `portal up` of a folder. Raises `UpError`."""
    try:
        text = (data_dir / ENV_NAME).read_text()
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise UpError(f"{data_dir} is not a data folder of `portal up`: {reason}.") from exc
    pairs = (entry.partition("=") for entry in shlex.split(text, comments=False))
    return {name: value for name, _, value in pairs}


def _unusable(path: Path, exc: Exception) -> UpError:
    reason = exc.strerror if isinstance(exc, OSError) else str(exc)
    return UpError(f"Can't use the data folder {path}: {reason}. Choose another --data-dir.")


def database_account() -> SystemUser | None:
    """Return the account of the database, created if necessary; None to use the present one."""
    if os.geteuid() != 0:
        return None
    try:
        try:
            entry = pwd.getpwnam(ACCOUNT_NAME)
        except KeyError:
            # The account has no login shell.
            options = ("--system", "--user-group", "--no-create-home", "--shell", NO_SHELL)
            program = shutil.which("useradd") or "/usr/sbin/useradd"
            subprocess.run(
                (program, *options, ACCOUNT_NAME), check=True, capture_output=True, timeout=10
            )
            text = f"created the system account {ACCOUNT_NAME} for the database"
            logger.warning(text, extra={"action": "account_made"})
            entry = pwd.getpwnam(ACCOUNT_NAME)
    except (OSError, KeyError, subprocess.SubprocessError) as exc:
        raise UpError(
            f"PostgreSQL does not run as root, and the account {ACCOUNT_NAME} can't be created. "
            "Create it, or run the portal as an ordinary user."
        ) from exc
    return SystemUser(ACCOUNT_NAME, entry.pw_uid, entry.pw_gid)


def change_owner(account: SystemUser | None, tree: Path) -> None:
    """Change the owner of a folder and its contents, for example of a copy made by root."""
    if account is None or tree.stat().st_uid == account.uid:
        return
    for folder, _, names in os.walk(tree):
        for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118  # may be many
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def grant_access(account: SystemUser | None, data: Path, programs: Path) -> None:
    """Let the database's account pass through to its data and read its programs."""
    if account is None:
        return
    trees = (programs, programs.parent.with_name(f"{programs.parent.name}.libs"))
    # Other accounts can't read a wheel that was unpacked under a umask of 077.
    files = [path for tree in trees if tree.exists() for path in (tree, *tree.rglob("*"))]
    parents = {*data.parents, *programs.parents}
    folders = [folder for folder in parents if folder.stat().st_uid != account.uid]
    changed = []
    for bits, paths in ((stat.S_IROTH, files), (stat.S_IXOTH, folders)):
        for path in paths:
            mode = stat.S_IMODE(path.stat().st_mode)
            new_mode = mode | bits | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
            if mode != new_mode:
                path.chmod(new_mode)
                changed.append(str(path))
    if changed:
        logger.warning(
            "changed permissions so that the database's account %s can use: %s",
            account.name,
            " ".join(sorted(changed)[:MAX_NAMED]),
            extra={"action": "grant_access"},
        )
