"""Ends what an earlier `portal up` of the same data folder left running.

The kernel ends the children of a killed parent (Linux), yet they need a moment to do so, and
elsewhere they live on. A process counts as a leftover only when its number and its start time
are those written down, so that a number used again is never touched.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # publishes no types

GRACE_S = 8.0
KILL_GRACE_S = 2.0
# Start times are told relative to the system clock, which may have been set since.
CLOCK_SLACK_S = 2.0


def remember(roster: Path, children: Iterable[tuple[int, int]]) -> None:
    """Write down the running children: process number, start time, signal that ends it."""
    entries = []
    for pid, number in children:
        with suppress(psutil.NoSuchProcess):
            entries.append([pid, psutil.Process(pid).create_time(), number])
    fresh = roster.with_suffix(".new")
    fresh.write_text(json.dumps(entries))
    fresh.replace(roster)


def end_leftovers(roster: Path) -> int:
    """End every process written down that still runs, and tell how many. Blocks up to 10 s."""
    found = []
    for pid, started, number in _read(roster):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if (
                abs(process.create_time() - started) < CLOCK_SLACK_S
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
                process.send_signal(number)
    _wait_or_kill(found)
    roster.unlink(missing_ok=True)
    return len(found)


def end_postgres_of(cluster: Path) -> bool:
    """End a server that still uses this cluster although nobody wrote it down."""
    try:
        pid = int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        process = psutil.Process(pid)
        if str(cluster) not in process.cmdline():
            return False
        process.send_signal(signal.SIGINT)
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return False
    _wait_or_kill([process])
    return True


def _read(roster: Path) -> list[list[float]]:
    try:
        entries = json.loads(roster.read_text())
    except (FileNotFoundError, ValueError):  # a half-written list names nothing
        return []
    return [[int(pid), float(started), int(number)] for pid, started, number in entries]


def _wait_or_kill(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=GRACE_S)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=KILL_GRACE_S)
