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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click

from portal.processes.child import SystemUser
from portal.processes.records import write_atomically

logger = logging.getLogger(__name__)

ENV_NAME = "env"
ACCOUNT_NAME = "pgserver"
ADD_TIMEOUT_S = 10


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


def database_account() -> SystemUser | None:
    """The account to change to, made if missing; None to stay what we are."""
    if os.geteuid() != 0:
        return None
    try:
        entry = _entry()
    except (OSError, KeyError, subprocess.SubprocessError) as exc:
        raise UpError(
            f"PostgreSQL does not run as root, and the account {ACCOUNT_NAME} cannot be made: "
            "create it, or run the portal as an ordinary user"
        ) from exc
    return SystemUser(ACCOUNT_NAME, entry.pw_uid, entry.pw_gid)


def _entry() -> pwd.struct_passwd:
    with suppress(KeyError):
        return pwd.getpwnam(ACCOUNT_NAME)
    # An account that nobody can log in to.
    program = shutil.which("useradd")
    if program is None:
        raise FileNotFoundError("useradd")
    options = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
    subprocess.run(
        (program, *options, ACCOUNT_NAME), check=True, capture_output=True, timeout=ADD_TIMEOUT_S
    )
    logger.warning(
        "made the account %s, which the database runs as",
        ACCOUNT_NAME,
        extra={"action": "account_made"},
    )
    return pwd.getpwnam(ACCOUNT_NAME)


def change_owner(account: SystemUser | None, tree: Path) -> None:
    """Make the account the owner of the tree, for example of one copied here by root."""
    if account is None:
        if tree.stat().st_uid != os.geteuid():
            owner = tree.stat().st_uid
            raise PermissionError(f"{tree} belongs to another account (uid {owner})")
        return
    if tree.stat().st_uid == account.uid:
        return
    for folder, _, names in os.walk(tree):
        for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118  # may be many
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def grant_access(account: SystemUser | None, data: Path, programs: Path) -> None:
    """Let the account pass through to its data and read its programs, and nothing more."""
    if account is None:
        return
    blocked = [
        folder
        for folder in {*data.parents, *programs.parents}
        if not folder.stat().st_mode & stat.S_IXOTH and folder.stat().st_uid != account.uid
    ]
    for folder in sorted(blocked):
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IXOTH)
    if blocked:
        logger.warning(
            "let others pass through (o+x), for the database's account %s: %s",
            account.name,
            " ".join(map(str, sorted(blocked))),
            extra={"action": "grant_access"},
        )
    # Their shared libraries lie beside the wheel's package, in a folder of its name.
    libraries = programs.parent.with_name(f"{programs.parent.name}.libs")
    for tree in (programs, libraries):
        if tree.exists() and not _is_public(tree):
            _publish(tree)


def _is_public(tree: Path) -> bool:
    files = (path for path in tree.rglob("*") if path.is_file())
    return all(path.stat().st_mode & stat.S_IROTH for path in (tree, next(files, tree)))


def _publish(tree: Path) -> None:
    """Make installed files readable: a wheel unpacked under a umask of 077 is not."""
    for path in (tree, *tree.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if mode != wanted:
            path.chmod(wanted)
    logger.warning(
        "made PostgreSQL's files readable for all: %s", tree, extra={"action": "publish"}
    )
