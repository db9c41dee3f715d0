"""Running ffmpeg: its reports, its limits, and that nothing of it outlives the call."""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest
from serving import Eventually, FindProcesses, Hanging, cancel

from portal.processes import child
from portal.processes.child import Limits
from portal.transcoding.encoding.ffmpeg import FfmpegLog, RunReport, run
from portal.transcoding.errors import FailCode, TranscodeFailed

# Real time, so that it is still running when the test looks.
ENDLESS = ("-nostdin", "-progress", "pipe:1", "-stats_period", "0.1", "-re", "-f", "lavfi")


@dataclass(frozen=True)
class Endless:
    """An ffmpeg that does not end by itself, known by what no other process is given."""

    find: FindProcesses
    marker: str = field(default_factory=lambda: uuid4().hex)

    @property
    def arguments(self) -> tuple[str, ...]:
        marked = ("-metadata", f"title={self.marker}")
        return (*ENDLESS, "-i", "testsrc2=s=64x64", *marked, "-f", "null", "-")

    def pids(self) -> list[int]:
        return self.find(self.marker)


@pytest.fixture
def endless(processes_naming: FindProcesses) -> Endless:
    return Endless(processes_naming)


def names(pids: list[int]) -> str:
    return " ".join(Path(f"/proc/{pid}/comm").read_text() for pid in pids)


async def started(endless: Endless, eventually: Eventually) -> int:
    """The id of the process, once it is ffmpeg: while it becomes so, it has no arguments."""
    pids: list[int] = []

    def is_ffmpeg() -> bool:
        pids[:] = endless.pids()
        return "ffmpeg" in names(pids)

    await eventually(is_ffmpeg)
    return pids[0]


def state(pid: int) -> str:
    """The state letter of a process: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_failure_carries_the_end_of_stderr_without_signatures(tmp_path: Path) -> None:
    missing = tmp_path / "missing.mp4"
    with pytest.raises(TranscodeFailed) as caught:
        await run(("-i", str(missing), "-f", "null", "-"), timeout_s=100)
    assert caught.value.code == FailCode.FFMPEG_FAILED
    assert "No such file" in caught.value.detail


def encoding(target: Path, *, size: str = "1920x1080") -> tuple[str, ...]:
    picture = ("-f", "lavfi", "-i", f"testsrc2=s={size}:d=120")
    return ("-nostdin", "-y", *picture, "-c:v", "libx264", "-threads", "1", str(target))


LIMITS = {
    FailCode.OUT_OF_MEMORY: Limits(memory_bytes=200 * 1024**2),
    FailCode.TIMED_OUT: Limits(cpu_s=1),
    FailCode.OUTPUT_TOO_LARGE: Limits(file_bytes=10_000),
}


@pytest.mark.parametrize("code", LIMITS)
async def test_a_run_over_its_limits_ends_with_a_code_of_its_own(
    tmp_path: Path, code: FailCode
) -> None:
    with pytest.raises(TranscodeFailed, match=code):
        await run(encoding(tmp_path / "out.mp4"), timeout_s=600, limits=LIMITS[code])


async def test_a_run_is_limited_without_being_told(
    endless: Endless, eventually: Eventually
) -> None:
    task = asyncio.create_task(run(endless.arguments, timeout_s=60))
    pid = await started(endless, eventually)
    limits = Path(f"/proc/{pid}/limits").read_text()
    niceness = os.getpriority(os.PRIO_PROCESS, pid)
    # Where there is none, sessions are no scheduling groups.
    autogroup = Path(f"/proc/{pid}/autogroup")
    group = autogroup.read_text() if autogroup.exists() else "nice 19"
    await cancel(task)
    assert niceness == 19
    assert group.strip().endswith("nice 19")
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    cores = os.cpu_count() or 1
    assert int(rows["Max address space"]) == (6 + cores) * 1024**3
    assert int(rows["Max cpu time"]) == 60 * cores
    assert int(rows["Max file size"]) == 4 * 1024**3


def test_the_log_keeps_complaints_however_they_come() -> None:
    log = FfmpegLog()
    lines = (
        b"[info] Input #0, mov, from 'x':\n"
        b"[h264 @ 0x1] [error] error while decoding MB 1 2\n"
        b"[in#0/mov @ 0x2] [verbose]   Input stream #0:0 (video): 9 packets read (1 bytes); "
        b"8 frames decoded; 1 decode errors; \n"
        b"[in#0/mov @ 0x2] [verbose]   Input stream #0:1 (audio): 5 packets read (1 bytes); "
        b"5 frames decoded; 4 decode errors (9 samples); \n"
    )
    for at in range(0, len(lines), 7):
        log.feed(lines[at : at + 7])
    assert log.text() == "[h264 @ 0x1] [error] error while decoding MB 1 2"
    assert log.report == RunReport(frames_decoded=8, decode_errors=1)


async def test_a_run_over_its_wall_time_is_ended(endless: Endless) -> None:
    with pytest.raises(TranscodeFailed, match=FailCode.TIMED_OUT):
        await run(endless.arguments, timeout_s=0.5)
    assert not endless.pids()


async def test_a_run_without_progress_is_ended(
    hanging: Hanging, processes_naming: FindProcesses
) -> None:
    arguments = ("-progress", "pipe:1", "-i", hanging.address, "-f", "null", "-")
    with pytest.raises(TranscodeFailed, match=FailCode.STALLED):
        await run(arguments, timeout_s=30, stall_s=0.5)
    assert not processes_naming(hanging.address)


async def test_cancelling_ends_the_process(endless: Endless, eventually: Eventually) -> None:
    task = asyncio.create_task(run(endless.arguments, timeout_s=60))
    await eventually(endless.pids)
    await cancel(task)
    assert not endless.pids()


async def test_an_error_in_the_report_ends_the_process(endless: Endless) -> None:
    async def refuse(written_s: float) -> None:
        raise LookupError("the record is gone")

    with pytest.raises(LookupError, match="the record is gone"):
        await run(endless.arguments, on_progress=refuse, timeout_s=60)
    assert not endless.pids()


@dataclass
class Clock:
    """In the place of the module `time`: the real clock, which can be put forward."""

    ahead_s: float = 0
    looks: int = 0

    def monotonic(self) -> float:
        self.looks += 1
        return monotonic() + self.ahead_s


async def test_backpressure_stops_the_process_and_the_clock(
    endless: Endless, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(child, "time", clock)
    paused = asyncio.Event()
    running = run(endless.arguments, timeout_s=1_000, stall_s=1_000, paused=paused)
    task = asyncio.create_task(running)
    pid = await started(endless, eventually)
    paused.set()
    await eventually(lambda: state(pid) == "T")
    # Longer than both limits: had the clock gone on, the run would end by itself.
    clock.ahead_s, looks = 3_600, clock.looks
    await eventually(lambda: task.done() or clock.looks > looks + 3)
    assert not task.done()
    paused.clear()
    await eventually(lambda: state(pid) != "T")
    paused.set()
    await eventually(lambda: state(pid) == "T")
    await cancel(task)  # a stopped process must end too
    assert not endless.pids()


WORKER = """
import asyncio
from portal.transcoding.encoding.ffmpeg import run

async def report(progress):
    print("running", flush=True)

asyncio.run(run({arguments!r}, on_progress=report, timeout_s=60))
"""


async def test_ffmpeg_dies_with_a_killed_worker(endless: Endless, eventually: Eventually) -> None:
    script = WORKER.format(arguments=endless.arguments)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert worker.stdout is not None
        async with asyncio.timeout(120):
            await worker.stdout.readline()
        assert len(endless.pids()) == 2, "the worker and its ffmpeg"
        worker.kill()
        await eventually(lambda: not endless.pids())
    finally:
        if worker.returncode is None:
            worker.kill()
        await worker.communicate()
