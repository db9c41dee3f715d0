"""A whole portal whose processes may be hurt at any moment, and the people who go on using it.

Database, storage, web and workers are processes of their own, started again by the code that
`portal up` starts them with, only sooner. Everything mentions the stack's folder, in its command
line or as TMPDIR, which confined children inherit: so an audit finds what was left running.
"""

import asyncio
import os
import signal
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import aiohttp
import api_client
import click
import psutil
import psycopg
from audit import Accepted, audit, is_settled, processes_of
from running_portal import answers, free_port, make_video, until
from running_up import REPOSITORY

from portal.bundled.data_folder import open_data_folder
from portal.bundled.postgres import prepare_postgres, release_socket_folder
from portal.bundled.up import start_embedded
from portal.client.calls import REQUEST_TIMEOUT, Api, Refused
from portal.client.publish import send_file
from portal.config import Config
from portal.database.connection import migrate
from portal.processes.output import LogFile
from portal.processes.supervisor import ChildSpec, RestartPolicy, running_children
from portal.uploads.parts import MIB

Result = TypeVar("Result")

# A supervisor that starts what died soon, however often.
AT_ONCE = RestartPolicy(first_s=0.3, cap_s=2.0, settled_s=5.0, first_tries=1_000_000)
# Leases, pauses after outages, and a machine busy with other tests.
SETTLE_TIMEOUT_S = 300.0
TIMEOUT_S = 180.0
SEND_TIMEOUT_S = 15.0
WORKERS = ("worker-1", "worker-2")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to publish, and how long what is in it lasts."""

    file: Path
    duration_s: float


@dataclass(slots=True)
class Stack:
    """A running portal. `accepted` are the videos it has confirmed to `publish`.

    `pid` tells the process number of a part, by its name, while it runs.
    """

    folder: Path
    environ: dict[str, str]
    pid: Callable[[str], int | None]
    accepted: list[Accepted] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return self.environ["PUBLIC_URL"]

    def signal(self, name: str, number: signal.Signals) -> bool:
        """Send a signal to one part; False when it is not running at the moment."""
        pid = self.pid(name)
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)
                return True
        return False

    def encoders(self) -> list[psutil.Process]:
        return [each for each in processes_of(self.folder) if "ffmpeg" in _name(each)]

    def probes(self) -> list[psutil.Process]:
        """The processes that examine a source; unlike an ffmpeg, none mentions the folder."""
        found: list[psutil.Process] = []
        for pid in filter(None, map(self.pid, WORKERS)):
            with suppress(psutil.NoSuchProcess):
                children = psutil.Process(pid).children()
                found += [it for it in children if "portal.transcoding.probing" in it.cmdline()]
        return found

    async def rows(self, query: str, *values: Any) -> list[Any]:
        return await api_client.rows(self.environ["DATABASE_URL"], query, *values)

    async def publish(self, source: Source) -> None:
        """Publish a file by the portal's own client calls, each repeated until it succeeds."""
        async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
            api = Api(session, self.base_url)
            key = await _send(api, source.file)
            body = api_client.metadata(key, title=source.file.stem, fileName=source.file.name)
            video = await _insist(lambda: api.call("POST", "/api/videos", body))
        self.accepted.append(Accepted(id=video["id"], key=key, duration_s=source.duration_s))

    async def settle_and_audit(self) -> int:
        """Wait until all work is done and everything runs; then nothing may be amiss.

        Answers how many objects of superseded attempts are left.
        """
        try:
            settled = partial(is_settled, self.environ)
            await until(settled, timeout_s=SETTLE_TIMEOUT_S, interval_s=0.3)
            await until(lambda: answers(f"{self.base_url}/readyz"), timeout_s=TIMEOUT_S)
            return await audit(self.environ, self.folder, self.accepted, roots=self._roots)
        except BaseException:
            await self._tell()
            raise

    def _roots(self) -> list[int]:
        """The parts that may run on after all work, with whatever they have started."""
        return list(filter(None, map(self.pid, ("database", "storage", "web", *WORKERS))))

    async def _tell(self) -> None:
        """What a failed test needs to be understood by."""
        for path in sorted(self.folder.glob("log/*.log")):
            lines = path.read_text(errors="replace").splitlines()[-40:]
            sys.stderr.write("\n".join([f"--- {path.name}", *lines, ""]))
        with suppress(psycopg.Error):
            for query in (
                "SELECT id, task_name, status, lock, scheduled_at FROM procrastinate_jobs",
                "SELECT id, status, failure_code, complete_job_id,"
                " coalesce(encode_job_id, transcode_job_id) AS transcode_job_id FROM videos",
                "SELECT video_id, number, outcome, error_code, stage, worker, started_at,"
                " finished_at FROM attempts ORDER BY started_at",
            ):
                rows = await self.rows(query)
                sys.stderr.write("\n".join(["---", *(" ".join(map(str, row)) for row in rows), ""]))


@asynccontextmanager
async def running_stack(folder: Path) -> AsyncIterator[Stack]:
    """A portal in this folder, with everything durable; afterwards nothing of it runs."""
    for name in ("tmp", "log"):
        (folder / name).mkdir()
    data = open_data_folder(folder / "data")
    port = free_port()
    try:
        async with running_children(policy=AT_ONCE) as children:
            services = await start_embedded(
                children, data, host="127.0.0.1", storage_port=free_port(), database=False
            )
            server = await prepare_postgres(children, data)
            await children.start(server.spec())
            await server.create_database()
            environ = {
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                **services,
                "DATABASE_URL": server.url(),
                "PYTHONPATH": str(REPOSITORY),
                "TMPDIR": str(folder / "tmp"),
                "PORT": str(port),
                "PUBLIC_URL": f"http://127.0.0.1:{port}",
                "LOG_FORMAT": "text",
            }
            await migrate(Config.from_env(environ))
            stack = Stack(folder, environ, children.pid)
            await children.start(
                _portal("web", "web", environ, ready=lambda: answers(f"{stack.base_url}/healthz")),
                *(_portal(name, "worker", environ) for name in WORKERS),
            )
            yield stack
    finally:
        release_socket_folder(data)
    # Some take a moment to end.
    _, left = psutil.wait_procs(processes_of(folder), timeout=60)
    assert not left, f"left running after the end: {[it.cmdline() for it in left]}"


def _portal(name: str, command: str, environ: Mapping[str, str], **options: Any) -> ChildSpec:
    return ChildSpec(
        name=name,
        argv=(sys.executable, "-m", "portal", command),
        environ=environ,
        output=LogFile(Path(environ["TMPDIR"]).with_name("log") / f"{name}.log"),
        stop_signals=((signal.SIGTERM, 8.0),),
        **options,
    )


async def _send(api: Api, file: Path) -> str:
    """The key under which storage has the file; an address that is no good is given up for another.

    That happens when it was signed by a clock that was wrong.
    """
    wanted = {"fileName": file.name, "contentType": "video/mp4"}
    deadline = monotonic() + TIMEOUT_S
    while True:
        upload = await _insist(lambda: api.call("POST", "/api/videos/presign", wanted))
        try:
            await _insist(
                partial(send_file, api, file, upload, content_type="video/mp4"),
                give_up_after_s=SEND_TIMEOUT_S,
            )
        except click.ClickException:
            if monotonic() > deadline:
                raise
            continue
        key: str = upload["key"]
        return key


async def _insist(
    call: Callable[[], Awaitable[Result]], *, give_up_after_s: float = TIMEOUT_S
) -> Result:
    """As people do: try again after whatever went wrong, but not after a refusal."""
    deadline = monotonic() + give_up_after_s
    while True:
        try:
            return await call()
        except Refused:
            raise
        except click.ClickException:
            if monotonic() > deadline:
                raise
        await asyncio.sleep(0.5)


def short_source(folder: Path) -> Source:
    return Source(make_video(folder / "short.mp4"), 2.0)


def long_source(folder: Path) -> Source:
    """A minute and a half of few small pictures: playable first, completed by a later pass."""
    return Source(make_video(folder / "long.mp4", seconds=90, size="640x360", rate=2), 90.0)


def large_source(folder: Path) -> Source:
    """The short one with so much padding that clients send it in parts."""
    whole = make_video(folder / "large.mp4")
    padding = 65 * MIB
    with whole.open("ab") as file:
        file.write(struct.pack(">I4s", padding, b"free"))
        file.truncate(file.tell() + padding - 8)
    return Source(whole, 2.0)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""
