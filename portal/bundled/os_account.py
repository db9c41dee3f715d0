"""The account the embedded database runs as. PostgreSQL refuses to run as root.

Started as root, the portal gives it an account of its own and lets that account through, by the
least change of permissions; started by anyone else, the database runs as that account.
"""

import logging
import os
import pwd
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

from portal.bundled.errors import UpError
from portal.processes.child import SystemUser

logger = logging.getLogger(__name__)

ACCOUNT_NAME = "pgserver"
ADD_TIMEOUT_S = 10


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
