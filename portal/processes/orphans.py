"""End the processes that an earlier supervisor recorded and left running.

Linux signals the children of a killed parent, yet they need a moment to end, and elsewhere they
live on. A process is an orphan only when its number and its start time are those recorded, so
that a number used again is never touched.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # publishes no types

from portal.processes.files import write_atomically

GRACE_S = 8.0
KILL_GRACE_S = 2.0
# Start times are told relative to the system clock, which may have been set since.
CLOCK_SLACK_S = 2.0


def record_children(record: Path, children: Iterable[tuple[int, int]]) -> None:
    """Write down the running children: process number, start time, signal that ends it."""
    entries = []
    for pid, number in children:
        with suppress(psutil.NoSuchProcess):
            entries.append([pid, psutil.Process(pid).create_time(), number])
    write_atomically(record, json.dumps(entries))


def end_orphans(record: Path) -> int:
    """End every recorded process that still runs, and tell how many. Blocks up to 10 s."""
    found = []
    for pid, started, number in _read(record):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            is_same = abs(process.create_time() - started) < CLOCK_SLACK_S
            if is_same and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
                process.send_signal(number)
    wait_or_kill(found)
    record.unlink(missing_ok=True)
    return len(found)


def wait_or_kill(processes: list[psutil.Process]) -> None:
    """Give processes that were asked to end the time to do so, then kill them."""
    _, alive = psutil.wait_procs(processes, timeout=GRACE_S)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=KILL_GRACE_S)


def _read(record: Path) -> list[list[float]]:
    try:
        entries = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):  # a half-written record names nothing
        return []
    return [[int(pid), float(started), int(number)] for pid, started, number in entries]
