"""Restarts and kills of processes, and the remains of a settled portal, for tests of chaos."""

import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from api_client import rows
from running_portal import until
from running_up import environment

from portal.processes.output import log_output
from portal.processes.supervisor import Children, ChildSpec, RestartPolicy

# Any number of kills is followed by a restart.
SOON = RestartPolicy(0.2, 0.5)
RESTART_TIMEOUT_S = 30
LEFT_TO_DO = """
SELECT (SELECT count(*) FROM videos WHERE status = 'processing' OR complete_job_id IS NOT NULL)
     + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
     + (SELECT count(*) FROM attempts WHERE outcome IS NULL)
     + (SELECT count(*) FROM deletions)
"""
# Lets killed workers count as dead at once, with their leases.
DEAD = """
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute';
UPDATE attempts SET lease_expires_at = now() WHERE outcome IS NULL;
UPDATE pass_parts SET lease_expires_at = now() WHERE NOT is_done;
"""


async def is_settled(database_url: str) -> bool:
    """Return whether all videos are final, and all jobs and removals done."""
    with suppress(psycopg.OperationalError):
        return await rows(database_url, LEFT_TO_DO) == [(0,)]
    return False


def end(process: psutil.Process, name: str, *, at_once: bool) -> None:
    """Kill a process, or send it a signal to end."""
    with suppress(psutil.NoSuchProcess):
        if at_once:
            process.kill()
        else:
            # On SIGTERM a database would wait until its clients disconnect.
            process.send_signal(signal.SIGINT if name == "database" else signal.SIGTERM)


@asynccontextmanager
async def restarted(
    children: Children, environ: Mapping[str, str], logs: Path, **commands: Sequence[str]
) -> AsyncIterator[None]:
    """Run Python with arguments, by the names of the children; print the ends of their logs."""
    specs = [
        ChildSpec(
            name=name,
            argv=(sys.executable, *arguments),
            environ=environment(**environ),
            output=log_output(logs / f"{name}.log"),
        )
        for name, arguments in commands.items()
    ]
    await children.start(*specs)
    try:
        yield
    finally:
        for name in commands:
            sys.stderr.write((logs / f"{name}.log").read_text(errors="replace")[-10_000:])


def pid_of(children: Children, name: str) -> int | None:
    """Return the process id of a running child, or None."""
    running = children._running()
    return next((child.pid for child, spec in running if spec.name == name), None)


async def kill(children: Children, name: str, *, at_once: bool = True) -> None:
    """Kill a child, or ask it to end, and wait until it is gone."""
    waiting = {"timeout_s": RESTART_TIMEOUT_S, "interval_s": 0.01}
    await until(lambda: pid_of(children, name), **waiting)
    pid = pid_of(children, name)
    with suppress(psutil.NoSuchProcess):
        end(psutil.Process(pid), name, at_once=at_once)
    await until(lambda: pid_of(children, name) != pid, **waiting)
