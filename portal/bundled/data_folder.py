"""The data folder of `portal up`: its layout, who may use it, and what is remembered in it.

    lock       held by the running `portal up`, with its process number
    env        the settings handed to the children, for `portal doctor --data-dir`
    children   the running children, for a start after a crash
    failing    the children that keep failing, for the web's /readyz
    postgres/  the database cluster        run/     its socket
    objects/   the buckets, one folder each        storage-key  their credentials
    log/       of database, storage and `portal up` itself  work/  the worker's scratch space

Nothing here is meant for other accounts of the machine, but for one: PostgreSQL refuses to run as
root. Started as root, the portal gives it an account of its own and lets that account through, by
the least change of permissions; started by anyone else, the database runs as that account.
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
from typing import IO, Any

import click

from portal.processes.child import SystemUser
from portal.processes.records import write_atomically

logger = logging.getLogger(__name__)

ENV_NAME = "env"
ACCOUNT_NAME = "pgserver"
NO_SHELL = "/usr/sbin/nologin"
MAX_NAMED = 20


class UpError(click.ClickException):
    """`portal up` cannot start; the message is all there is to say. Exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"portal up: {self.message}", file=file, err=file is None)


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
    try:
        lock = (folder.root / "lock").open("a+")
    except OSError as exc:
        raise _unusable(Path(folder.shown), exc) from exc
    with lock:  # held until it is closed, however the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise UpError(
                f"another portal (pid {holder}) is already using {folder.shown}"
            ) from None
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        yield


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


def database_account() -> SystemUser | None:
    """The account to change to, made if missing; None to stay what we are."""
    if os.geteuid() != 0:
        return None
    try:
        try:
            entry = pwd.getpwnam(ACCOUNT_NAME)
        except KeyError:
            # An account that nobody can log in to.
            options = ("--system", "--user-group", "--no-create-home", "--shell", NO_SHELL)
            program = shutil.which("useradd") or "/usr/sbin/useradd"
            subprocess.run(
                (program, *options, ACCOUNT_NAME), check=True, capture_output=True, timeout=10
            )
            text = f"made the account {ACCOUNT_NAME}, which the database runs as"
            logger.warning(text, extra={"action": "account_made"})
            entry = pwd.getpwnam(ACCOUNT_NAME)
    except (OSError, KeyError, subprocess.SubprocessError) as exc:
        raise UpError(
            f"PostgreSQL does not run as root, and the account {ACCOUNT_NAME} cannot be made: "
            "create it, or run the portal as an ordinary user"
        ) from exc
    return SystemUser(ACCOUNT_NAME, entry.pw_uid, entry.pw_gid)


def change_owner(account: SystemUser | None, tree: Path) -> None:
    """Make the account the owner of the tree, for example of one copied here by root."""
    if account is None or tree.stat().st_uid == account.uid:
        return
    for folder, _, names in os.walk(tree):
        for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118  # may be many
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def grant_access(account: SystemUser | None, data: Path, programs: Path) -> None:
    """Let the account pass through to its data and read its programs, and nothing more."""
    if account is None:
        return
    trees = (programs, programs.parent.with_name(f"{programs.parent.name}.libs"))
    # A wheel unpacked under a umask of 077 can't be read by others.
    files = (path for tree in trees if tree.exists() for path in (tree, *tree.rglob("*")))
    folders = (it for it in {*data.parents, *programs.parents} if it.stat().st_uid != account.uid)
    changed = []
    for bits, paths in ((stat.S_IROTH, files), (stat.S_IXOTH, folders)):
        for path in paths:
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | bits | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
            if mode != wanted:
                path.chmod(wanted)
                changed.append(str(path))
    if changed:
        logger.warning(
            "let others pass through or read, for the database's account %s: %s",
            account.name,
            " ".join(sorted(changed)[:MAX_NAMED]),
            extra={"action": "grant_access"},
        )
