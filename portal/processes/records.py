"""Small files in which processes leave their state, and the end of processes named in one.

Linux signals the children of a killed parent, yet they need a moment to end, and elsewhere they
live on. A process is an orphan only when its number and its start time are those recorded, so
that a number used again is never touched.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # publishes no types

GRACE_S = 8.0
KILL_GRACE_S = 2.0
# Start times are told relative to the system clock, which may have been set since.
CLOCK_SLACK_S = 2.0


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one step, readable by the owner alone from its first moment.

    A reader finds the old text or the new one, after a loss of power, too. One writer at a time.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def record_children(record: Path, children: Iterable[tuple[int, int]]) -> None:
    """Write down the running children: process number, start time, signal that ends it."""
    entries = []
    for pid, number in children:
        with suppress(psutil.NoSuchProcess):
            entries.append([pid, psutil.Process(pid).create_time(), number])
    write_atomically(record, json.dumps(entries))


def end_orphans(record: Path) -> int:
    """End every recorded process that still runs, and tell how many. Blocks up to 10 s."""
    found, entries = [], []
    with suppress(FileNotFoundError, ValueError):  # a damaged record names nothing
        entries = json.loads(record.read_text())
    for pid, started, number in entries:
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
