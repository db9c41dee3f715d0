"""`portal up`: everything on one machine, from an empty folder to an address to open.

Decides what runs, in which order and with which settings; `portal.processes.supervisor` keeps it
running. It ends by a signal, or when database or storage cannot be started at first. The lines of
the children are shown in one terminal, each with its name in front.
"""

import asyncio
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
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

REGION = "us-east-1"  # the only one an S3 server without regions is sure to know
# The storage gets the next port, so that its address stays the same from start to start.
STORAGE_PORTS_TRIED = 20
MIGRATE_TIMEOUT_S = 3600
# With 0.5 s for last lines and 3 s for database and storage, all is over within 10 s.
STOP_GRACE_S = 5.5
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUEUE_LINES = 2_000
FLUSH_TIMEOUT_S = 1.0
STDOUT = 1

# Would lead libpq or the AWS client elsewhere than to the embedded parts.
LIBPQ_PREFIX, AWS_PREFIX = "PG", "AWS_"
# What leads to parts the user brings.
OWN_DATABASE = "DATABASE_URL"
OWN_STORAGE = ("S3_ENDPOINT_URL", "S3_BUCKET")
# Names the settings in the data folder's `env` that the user did not give.
MADE_SETTINGS = "PORTAL_UP_SETTINGS"


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is asked for, checked, and what follows from it."""

    host: str
    port: int
    folder: data_folder.DataFolder
    environ: Mapping[str, str]

    @property
    def has_own_database(self) -> bool:
        return bool(self.environ.get(OWN_DATABASE))

    @property
    def has_own_storage(self) -> bool:
        return any(self.environ.get(name) for name in OWN_STORAGE)

    @property
    def public_url(self) -> str:
        given = self.environ.get("PUBLIC_URL", "").rstrip("/")
        host = addresses.reachable_host(self.host)
        return given or f"http://{addresses.authority(host, self.port)}"

    @property
    def storage_port(self) -> int | None:
        if self.has_own_storage:
            return None
        after = range(self.port + 1, min(self.port + 1 + STORAGE_PORTS_TRIED, 65536))
        return addresses.free_port(self.host, after)


class Terminal:
    """Writes whole lines to standard output; made by `open_terminal`.

    They wait in a short queue for a thread of their own: a terminal that is held (Ctrl-S), or a
    pipe that nobody reads, loses lines but never stops a child or the supervision.
    """

    def __init__(self, descriptor: int = STDOUT) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(QUEUE_LINES)
        # A daemon, because it may be held by the terminal for ever when all the rest has ended.
        self._thread = threading.Thread(target=self._write_all, name="terminal", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Show a line, soon; one that is shown too slowly is lost."""
        with suppress(queue.Full):
            self._lines.put_nowait(text)

    def close(self) -> None:
        """Show what is queued, as long as somebody looks."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=FLUSH_TIMEOUT_S)
            self._thread.join(FLUSH_TIMEOUT_S)

    def _write_all(self) -> None:
        # When the terminal was closed, the portal goes on without it.
        with suppress(OSError), open(self._descriptor, "wb", closefd=False) as stream:
            while (text := self._lines.get()) is not None:
                stream.write(f"{text}\n".encode(errors="replace"))
                stream.flush()


@contextmanager
def open_terminal(log: Path) -> Iterator[Terminal]:
    """A terminal that also shows what this process logs; the log file keeps that as well."""
    terminal, logger = Terminal(), logging.getLogger("portal")
    shown = logging.StreamHandler(terminal)
    shown.terminator = ""
    shown.setFormatter(logging.Formatter("portal  | %(message)s"))
    kept = RotatingFileHandler(log, maxBytes=LOG_FILE_LIMIT_BYTES, backupCount=1, delay=True)
    kept.setFormatter(LineFormatter(TEXT_FORMAT))
    logger.addHandler(shown)
    logger.addHandler(kept)
    try:
        yield terminal
    finally:
        logger.removeHandler(shown)
        logger.removeHandler(kept)
        kept.close()
        terminal.close()


async def up(*, host: str, port: int, data_dir: Path) -> None:
    """Run the portal until told to stop. Raises `UpError` when it cannot start."""
    with _stop_signals() as stop:
        folder = data_folder.open_data_folder(data_dir)
        with data_folder.claim(folder), open_terminal(folder.log("portal")) as terminal:
            await asyncio.to_thread(end_orphans, folder.children)
            addresses.check_port(host, port)
            plan = _Plan(host, port, folder, without_made_settings(os.environ))
            try:
                async with running_children(
                    record=folder.children, failing=folder.failing
                ) as children:
                    stop.at_once = children.stop_now
                    await stop.interrupt(_run(plan, children, terminal))
                    terminal.write("Stopping; press Ctrl-C again to stop at once.")
            except ChildError as exc:
                raise data_folder.UpError(str(exc)) from exc
            finally:
                release_socket_folder(folder)
            terminal.write(f"Stopped. Start again on {folder.shown} to continue.")


def without_made_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out settings that a shell read from the `env` of a data folder.

    Otherwise a `portal up` in that shell would take its own database for one the user brings.
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
    """Add the parts wanted to the running set, wait until they work, return the settings.

    Afterwards, when the set has ended, call `release_socket_folder`.
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


class _Stop:
    """The signals to stop; the second one stops at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.at_once: Callable[[], None] = lambda: None

    def request(self) -> None:
        if self.requested.is_set():
            self.at_once()
        self.requested.set()

    async def interrupt(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work until it ends, fails or a signal comes."""
        async with asyncio.TaskGroup() as group:
            working, waiting = group.create_task(work), group.create_task(self.requested.wait())
            await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            waiting.cancel()


@contextmanager
def _stop_signals() -> Iterator[_Stop]:
    loop, stop = asyncio.get_running_loop(), _Stop()
    # Under nohup the end of the terminal must go unnoticed.
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    handled = [s for s in STOP_SIGNALS if not (s == signal.SIGHUP and is_nohup)]
    for number in handled:
        loop.add_signal_handler(number, stop.request)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def _run(plan: _Plan, children: Children, terminal: Terminal) -> None:
    embedded = await start_embedded(
        children,
        plan.folder,
        host=plan.host,
        storage_port=plan.storage_port,
        public_host=urlsplit(plan.public_url).hostname or "",
        database=not plan.has_own_database,
    )
    settings = {**embedded, **_settings(plan)}
    environ = _child_environ(plan, settings)
    # With what the user brings, so that another shell can do without both.
    theirs = (OWN_DATABASE, "S3_", "AWS_")
    saved = {
        name: value
        for name, value in environ.items()
        if name in settings or name.startswith(theirs)
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
    terminal.write(_announcement(plan))
    await asyncio.Event().wait()


def _settings(plan: _Plan) -> dict[str, str]:
    """The settings that follow from the plan; a public storage address given by the user stays."""
    given = plan.environ.get("S3_PUBLIC_ENDPOINT_URL")
    return {
        "HOST": plan.host,
        "PORT": str(plan.port),
        "PUBLIC_URL": plan.public_url,
        "LOG_FORMAT": plan.environ.get("LOG_FORMAT") or "text",
        **({"S3_PUBLIC_ENDPOINT_URL": given} if given else {}),
    }


def _child_environ(plan: _Plan, settings: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without what would lead astray, and the settings over it."""
    kept = {
        name: value
        for name, value in plan.environ.items()
        if (plan.has_own_storage or not name.startswith(AWS_PREFIX))
        and (plan.has_own_database or not name.startswith(LIBPQ_PREFIX))
    }
    # The web cannot see its siblings.
    failing = str(plan.folder.failing)
    return {**kept, **settings, "PYTHONUNBUFFERED": "1", "FAILING_PROCESSES_FILE": failing}


def _announcement(plan: _Plan) -> str:
    rows = [
        f"The portal is ready: {plan.public_url}",
        f"Its data is in {plan.folder.root}",
        "Press Ctrl-C to stop; nothing is lost.",
    ]
    rule = "-" * (max(map(len, rows)) + 2)
    return "\n".join(["", rule, *(f" {row}" for row in rows), rule, ""])
