"""Many viewers and editors at once: errors, delays, memory and processor time of every part.

Database, storage, web and worker run on this machine, started and stopped here, with their
default settings but for the number of web processes; the crowd runs in this process. Viewers poll
as often as the pages do, until their video is done, and go on to another. Editors publish a film
of ten seconds at once, and then again and again, each time sending 20 MB over two minutes.

    python tests/benchmarks/load.py [--viewers 2000] [--editors 50] [--minutes 5]

Delays, memory and processor time are those from when everyone has come; errors are all there are.
Exits with 1 when there was any error.
"""

import argparse
import asyncio
import os
import statistics
import struct
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import psutil
from benchmark_portal import measured_portal
from load_clients import POLLS, Crowd, Record, gathered
from running_portal import make_video

from portal.web.serve import raise_descriptor_limit

# The portal's lines go to where the tables go.
QUIET = {"LOG_LEVEL": "WARNING"}
SAMPLE_S = 1.0
# An editor's line has some 1.3 Mbit/s.
FILE_BYTES = 20_000_000
UPLOAD_S = 120
AIM_P99_S = 0.25
# The slope is of this last part of the time; before it caches fill and pools grow.
SETTLED_SHARE = 0.6
# How a process's command line tells what it is.
PARTS = {
    "portal web": "web",
    "portal worker": "worker",
    "postgres": "database",
    "rclone": "storage",
}


@dataclass
class Part:
    """Memory of all processes of one part over time, and the processor time they have used."""

    at_s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    cpu_s: dict[int, tuple[float, float]] = field(default_factory=dict)

    def slope_mb_per_min(self) -> float:
        """Of the line through the memory's last samples."""
        begin = int(len(self.at_s) * (1 - SETTLED_SHARE))
        if len(self.at_s) - begin < 2:
            return 0.0
        fit = statistics.linear_regression(self.at_s[begin:], self.memory_mb[begin:])
        return fit.slope * 60

    @property
    def used_cpu_s(self) -> float:
        return sum(last - first for first, last in self.cpu_s.values())


async def main() -> int:
    """Run everything, print the tables, and return the exit code."""
    options = _options()
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="portal-load-") as folder:
        file = _padded(make_video(Path(folder) / "load.mp4", seconds=10, size="640x360"))
        settings = {**QUIET, "WORK_DIR": f"{folder}/work", "WEB_WORKERS": str(options.web_workers)}
        async with measured_portal(Path(folder), worker=True, **settings) as portal:
            crowd = Crowd(portal.base_url, file, upload_bytes_s=len(file) // UPLOAD_S)
            return await _measure(crowd, options)


def _padded(film: Path) -> bytes:
    """The film with an empty box behind it, so that it is large, and yet soon transcoded."""
    box_bytes = FILE_BYTES - film.stat().st_size
    return film.read_bytes() + struct.pack(">I4s", box_bytes, b"free") + bytes(box_bytes - 8)


async def _measure(crowd: Crowd, options: argparse.Namespace) -> int:
    parts = {name: Part() for name in (*PARTS.values(), "crowd")}
    seconds = options.minutes * 60
    async with gathered(
        crowd, viewers=options.viewers, editors=options.editors, arrival_s=options.arrival
    ) as record:
        record.durations_s.clear()
        begun_at = monotonic()
        while monotonic() - begun_at < seconds:
            await asyncio.to_thread(_sample, parts, monotonic() - begun_at)
            await asyncio.sleep(SAMPLE_S)
        took_s = monotonic() - begun_at
        # Those who are sent home in the middle of something are no errors.
        errors = dict(record.errors)
    _print_requests(record, took_s)
    _print_parts(parts, took_s)
    print(f"videos published: {record.published}; errors: {errors or 'none'}")
    print(f"uploads sent again after storage refused them: {dict(record.put_again) or 'none'}")
    return 1 if errors else 0


def _sample(parts: dict[str, Part], at_s: float) -> None:
    memory = dict.fromkeys(parts, 0.0)
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            name = _part(process)
            if name is None:
                continue
            usage, times = process.memory_info(), process.cpu_times()
            # Shared pages are PostgreSQL's buffers, which every one of its processes shows.
            memory[name] += (usage.rss - usage.shared) / 1e6
            # With what ended children have used: ffmpeg's under the worker.
            used_s = sum(times[:4])
            first, _ = parts[name].cpu_s.get(process.pid, (used_s, 0.0))
            parts[name].cpu_s[process.pid] = (first, used_s)
    for name, part in parts.items():
        part.at_s.append(at_s)
        part.memory_mb.append(memory[name])


def _part(process: psutil.Process) -> str | None:
    """What a process belongs to; with several web processes, those are children of one."""
    if process.pid == os.getpid():
        return "crowd"
    command = " ".join(process.cmdline())
    found = next((part for words, part in PARTS.items() if words in command), None)
    parent = process.parent()
    if found or parent is None or parent.pid == os.getpid():
        return found
    return _part(parent)


def _print_requests(record: Record, took_s: float) -> None:
    print(f"{'':16} {'number':>8} {'/s':>7} {'p50':>9} {'p99':>9} {'most':>9}")
    for kind in sorted(record.durations_s):
        _print_row(kind, record, took_s, kind)
    _print_row("all polls", record, took_s, *POLLS)
    p99_s = record.percentile_s(0.99, *POLLS)
    verdict = "reached" if p99_s < AIM_P99_S else "missed"
    print(f"aim for polls at p99: {AIM_P99_S * 1000:.0f} ms, {verdict}")


def _print_row(name: str, record: Record, took_s: float, *kinds: str) -> None:
    number = sum(len(record.durations_s[kind]) for kind in kinds)
    p50, p99, most = (f"{record.percentile_s(it, *kinds) * 1000:.1f} ms" for it in (0.5, 0.99, 1))
    print(f"{name:16} {number:8} {number / took_s:7.1f} {p50:>9} {p99:>9} {most:>9}")


def _print_parts(parts: dict[str, Part], took_s: float) -> None:
    print(f"{'':16} {'begin MB':>9} {'end MB':>8} {'most MB':>8} {'MB/min':>8} {'CPU':>6}")
    for name, part in parts.items():
        memory = part.memory_mb
        print(
            f"{name:16} {memory[0]:9.1f} {memory[-1]:8.1f} {max(memory):8.1f}"
            f" {part.slope_mb_per_min():8.2f} {100 * part.used_cpu_s / took_s:5.0f}%"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--viewers", type=int, default=2000)
    parser.add_argument("--editors", type=int, default=50)
    parser.add_argument("--arrival", type=float, default=30, help="seconds in which viewers come")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--web-workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
