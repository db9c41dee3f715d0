"""Files with the state of processes, and the end of orphans that such a file names.

After a parent was killed its children need a moment to end on Linux, and continue elsewhere. A
process counts as an orphan only if its process id and its start time match the record, so that a
reused process id is never signalled.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # publishes no types

GRACE_S = 8.0
KILL_GRACE_S = 2.0
# Start times are computed from the system clock, which may have been changed since.
CLOCK_SLACK_S = 2.0


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically, readable by its owner only.

    Readers see the old or the new text, also after a power failure. One writer at a time.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def record_children(record: Path, children: Iterable[tuple[int, int]]) -> None:
    """Record the process id, start time and end signal of running children."""
    entries = []
    for pid, number in children:
        with suppress(psutil.NoSuchProcess):
            entries.append([pid, psutil.Process(pid).create_time(), number])
    write_atomically(record, json.dumps(entries))


def end_orphans(record: Path) -> int:
    """End every recorded process that still runs; return how many. Blocks up to 10 s."""
    orphans = []
    entries = []
    with suppress(FileNotFoundError, ValueError):  # a damaged record is ignored
        entries = json.loads(record.read_text())
    for pid, started, number in entries:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            is_same = abs(process.create_time() - started) < CLOCK_SLACK_S
            if is_same and process.status() != psutil.STATUS_ZOMBIE:
                orphans.append(process)
                process.send_signal(number)
    _, alive = psutil.wait_procs(orphans, timeout=GRACE_S)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=KILL_GRACE_S)
    record.unlink(missing_ok=True)
    return len(orphans)
