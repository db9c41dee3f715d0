"""`portal up`: run a complete portal on one machine.

Chooses the processes, their order and their settings; `portal.processes.supervisor` keeps them
running. It ends on a signal, or if database or storage can't be started. The terminal shows the
output of all children, each line after the child's name.
"""

import asyncio
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.bundled import addresses, data_folder, object_store
from portal.bundled.postgres import prepare_postgres, release_socket_folder
from portal.processes.output import LOG_FILE_LIMIT_BYTES, LineOutput
from portal.processes.records import end_orphans
from portal.processes.supervisor import ChildError, Children, ChildSpec, running_children
from portal.telemetry.logs import TEXT_FORMAT, LineFormatter

REGION = "us-east-1"  # S3 servers without regions accept it
# Storage gets the next free port after the portal's, so that its URL usually stays the same.
STORAGE_PORTS_TRIED = 20
MIGRATE_TIMEOUT_S = 3600
# Stopping takes at most 10 s, with 0.5 s for last lines and 3 s for database and storage.
STOP_GRACE_S = 5.5
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUEUE_LINES = 2_000
FLUSH_TIMEOUT_S = 1.0
STDOUT = 1

# Prefixes of variables that would connect libpq and the AWS client to other servers.
LIBPQ_PREFIX = "PG"
AWS_PREFIX = "AWS_"
# Variables of the operator's own database and storage, which replace the embedded ones.
OWN_DATABASE = "DATABASE_URL"
OWN_STORAGE = ("S3_ENDPOINT_URL", "S3_BUCKET")
# Variable in the data folder's `env` with the names of settings that `portal up` has added.
MADE_SETTINGS = "PORTAL_UP_SETTINGS"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Options of a start, and the settings that follow from them."""

    host: str
    port: int
    folder: data_folder.DataFolder
    environ: Mapping[str, str]

    @property
    def has_own_database(self) -> bool:
        """Return whether the operator has configured a database."""
        return bool(self.environ.get(OWN_DATABASE))

    @property
    def has_own_storage(self) -> bool:
        """Return whether the operator has configured S3 storage."""
        return any(self.environ.get(name) for name in OWN_STORAGE)

    @property
    def public_url(self) -> str:
        """Return the URL for people."""
        host = addresses.reachable_host(self.host)
        own_url = f"http://{addresses.authority(host, self.port)}"
        return self.environ.get("PUBLIC_URL", "").rstrip("/") or own_url

    @property
    def storage_port(self) -> int | None:
        """Return a free port for the embedded storage; None without it."""
        if self.has_own_storage:
            return None
        after = range(self.port + 1, min(self.port + 1 + STORAGE_PORTS_TRIED, 65536))
        return addresses.free_port(self.host, after)


class Terminal:
    """Writer of lines to standard output, created by `open_terminal`.

    A separate thread writes the lines from a short queue. So a paused terminal (Ctrl-S), or a pipe
    without reader, loses lines but never blocks a child or the supervision.
    """

    def __init__(self, descriptor: int = STDOUT) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        # A daemon, because a paused terminal may block the thread when everything else has ended.
        self._thread = threading.Thread(target=self._write_all, name="terminal", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Enqueue a line; it is dropped if the queue is full."""
        with suppress(queue.Full):
            self._lines.put_nowait(text)

    def close(self) -> None:
        """Write the queued lines, within a time limit."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=FLUSH_TIMEOUT_S)
            self._thread.join(FLUSH_TIMEOUT_S)

    def _write_all(self) -> None:
        # The portal continues after its terminal was closed.
        with suppress(OSError), open(self._descriptor, "wb", closefd=False) as stream:
            while (text := self._lines.get()) is not None:
                stream.write(f"{text}\n".encode(errors="replace"))
                stream.flush()


@contextmanager
def open_terminal(log: Path) -> Iterator[Terminal]:
    """Provide a terminal that also shows log messages of this process; `log` is their file."""
    terminal = Terminal()
    logger = logging.getLogger("portal")
    terminal_handler = logging.StreamHandler(terminal)
    terminal_handler.terminator = ""
    terminal_handler.setFormatter(logging.Formatter("portal  | %(message)s"))
    handler = RotatingFileHandler(log, maxBytes=LOG_FILE_LIMIT_BYTES, backupCount=1, delay=True)
    handler.setFormatter(LineFormatter(TEXT_FORMAT))
    logger.addHandler(terminal_handler)
    logger.addHandler(handler)
    try:
        yield terminal
    finally:
        logger.removeHandler(terminal_handler)
        logger.removeHandler(handler)
        handler.close()
        terminal.close()


async def up(*, host: str, port: int, data_dir: Path) -> None:
    """Run the portal until a signal stops it. Raises `UpError` if it can't start."""
    folder = data_folder.open_data_folder(data_dir)
    with data_folder.claim(folder), open_terminal(folder.log("portal")) as terminal:
        await asyncio.to_thread(end_orphans, folder.children)
        addresses.check_port(host, port)
        plan = _Plan(host, port, folder, without_made_settings(os.environ))
        try:
            async with running_children(record=folder.children, failing=folder.failing) as children:
                with _stop_signals(children) as requested:
                    async with asyncio.TaskGroup() as group:
                        running = group.create_task(_run(plan, children, terminal))
                        await requested.wait()
                        running.cancel()
                    terminal.write("Stopping. Press Ctrl-C again to stop immediately.")
                    await children.stop()
        except ChildError as exc:
            raise data_folder.UpError(str(exc)) from exc
        finally:
            release_socket_folder(folder)
        terminal.write(f"Stopped. Your data is in {folder.shown}.")


def without_made_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without settings that a shell has read from a data folder's `env`.

    With them `portal up` would take its own database for the operator's.
    """
    names = {MADE_SETTINGS, *environ.get(MADE_SETTINGS, "").split(",")}
    return {name: value for name, value in environ.items() if name not in names}


async def start_embedded(
    children: Children,
    folder: data_folder.DataFolder,
    *,
    host: str,
    storage_port: int | None,
    database: bool,
    public_host: str = "",
    durable: bool = True,
) -> dict[str, str]:
    """Start the embedded services in a set of children; return the settings that lead to them.

    The caller must call `release_socket_folder` after the set has ended.
    """
    environ = {"WORK_DIR": str(folder.work)}
    specs: list[ChildSpec] = []
    if storage_port is not None:
        store = object_store.prepare_object_store(folder, host=host, port=storage_port)
        own_host = addresses.local_peer(host)
        public_host = public_host or addresses.reachable_host(host)
        environ |= {
            "S3_ENDPOINT_URL": f"http://{addresses.authority(own_host, storage_port)}",
            "S3_PUBLIC_ENDPOINT_URL": f"http://{addresses.authority(public_host, storage_port)}",
            "S3_BUCKET": object_store.BUCKET,
            "AWS_ACCESS_KEY_ID": store.access_key,
            "AWS_SECRET_ACCESS_KEY": store.secret_key,
            "AWS_REGION": REGION,
        }
        specs.append(store.spec())
        children.background(
            object_store.remove_unfinished_uploads(folder.objects, older_than=time.time())
        )
    if database:
        server = await prepare_postgres(children, folder, durable=durable)
        environ["DATABASE_URL"] = server.url()
        specs.append(server.spec())
    await children.start(*specs)
    if database:
        await server.create_database()
    return environ


@contextmanager
def _stop_signals(children: Children) -> Iterator[asyncio.Event]:
    """Provide the event of a stop signal; a second signal stops the children immediately."""
    loop = asyncio.get_running_loop()
    requested = asyncio.Event()

    def handle_signal() -> None:
        if requested.is_set():
            children.stop_now()
        requested.set()

    # Under nohup, which ignores SIGHUP, the end of the terminal must not stop the portal.
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    handled = [s for s in STOP_SIGNALS if not (s == signal.SIGHUP and is_nohup)]
    for number in handled:
        loop.add_signal_handler(number, handle_signal)
    try:
        yield requested
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def _run(plan: _Plan, children: Children, terminal: Terminal) -> None:
    """Start the services, migrate the database, and start the portal; then wait for ever.

    The settings are saved in the data folder for other commands. Raises `ChildError` if the
    migration fails. The set restarts children that end later.
    """
    embedded = await start_embedded(
        children,
        plan.folder,
        host=plan.host,
        storage_port=plan.storage_port,
        public_host=urlsplit(plan.public_url).hostname or "",
        database=not plan.has_own_database,
    )
    settings = {
        **embedded,
        "HOST": plan.host,
        "PORT": str(plan.port),
        "PUBLIC_URL": plan.public_url,
        "LOG_FORMAT": plan.environ.get("LOG_FORMAT") or "text",
    }
    if storage_url := plan.environ.get("S3_PUBLIC_ENDPOINT_URL"):
        settings["S3_PUBLIC_ENDPOINT_URL"] = storage_url
    environ = _child_environ(plan, settings)
    # Includes the operator's own database and storage, for commands with --data-dir.
    own = (OWN_DATABASE, "S3_", AWS_PREFIX)
    saved = {
        name: value for name, value in environ.items() if name in settings or name.startswith(own)
    }
    saved[MADE_SETTINGS] = ",".join(sorted(settings.keys() - plan.environ.keys()))
    data_folder.save_environment(plan.folder, saved)

    def portal(command: str, *arguments: str, **options: Any) -> ChildSpec:
        return ChildSpec(
            name=command,
            argv=(sys.executable, "-m", "portal", command, *arguments),
            environ=environ,
            output=LineOutput(lambda line: terminal.write(f"{command:7} | {line}")),
            stop_signals=((signal.SIGTERM, STOP_GRACE_S),),
            **options,
        )

    await children.run(portal("migrate", ready_timeout_s=MIGRATE_TIMEOUT_S))

    async def web_answers() -> bool:
        host = addresses.local_peer(plan.host)
        return await addresses.http_status(host, plan.port, "/healthz") == 200

    web = portal("web", "--host", plan.host, "--port", str(plan.port), ready=web_answers)
    await children.start(web, portal("worker"))
    terminal.write(
        f"\nThe portal is ready: {plan.public_url}\n"
        f"Data folder: {plan.folder.root}\n"
        "Press Ctrl-C to stop.\n"
    )
    await asyncio.Event().wait()


def _child_environ(plan: _Plan, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the operator's environment, without misleading variables, with the settings."""
    inherited = {
        name: value
        for name, value in plan.environ.items()
        if (plan.has_own_storage or not name.startswith(AWS_PREFIX))
        and (plan.has_own_database or not name.startswith(LIBPQ_PREFIX))
    }
    # The web process reports failing siblings in /readyz.
    failing = str(plan.folder.failing)
    return {**inherited, **settings, "PYTHONUNBUFFERED": "1", "FAILING_PROCESSES_FILE": failing}
