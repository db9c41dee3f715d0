"""Running ffmpeg: its reports, its limits, and that nothing of it outlives the call."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest
from serving import Hanging, cancel, eventually, processes_naming

from portal.processes import child
from portal.processes.child import Limits
from portal.transcoding.encoding.ffmpeg import FfmpegLog, RunReport, run
from portal.transcoding.errors import FailCode, TranscodeFailed

# No other process is given this. In real time, so that it is still running when the test looks.
MARK = uuid4().hex
ENDLESS = (
    *("-nostdin", "-progress", "pipe:1", "-stats_period", "0.1", "-re"),
    *("-f", "lavfi", "-i", "testsrc2=s=64x64", "-metadata", f"title={MARK}", "-f", "null", "-"),
)
ENCODING = (
    *("-nostdin", "-y", "-f", "lavfi", "-i", "testsrc2=s=1920x1080:d=120"),
    *("-c:v", "libx264", "-threads", "1"),
)


@pytest.fixture
def endless() -> Callable[[], list[int]]:
    """The ids of the processes that run it."""
    return lambda: processes_naming(MARK)


async def started(endless: Callable[[], list[int]]) -> int:
    """The id of the process, once it is ffmpeg: while it becomes so, it has no arguments."""
    await eventually(lambda: any("ffmpeg" in proc(pid, "comm") for pid in endless()))
    return endless()[0]


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def state(pid: int) -> str:
    """The state letter of a process: T is stopped."""
    return proc(pid, "stat").rpartition(")")[2].split()[0]


async def test_a_failure_carries_the_end_of_stderr(tmp_path: Path) -> None:
    missing = tmp_path / "missing.mp4"
    with pytest.raises(TranscodeFailed, match=FailCode.FFMPEG_FAILED) as caught:
        await run(("-i", str(missing), "-f", "null", "-"), timeout_s=100)
    assert "No such file" in caught.value.detail


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


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        (FailCode.OUT_OF_MEMORY, Limits(memory_bytes=200 * 1024**2)),
        (FailCode.TIMED_OUT, Limits(cpu_s=1)),
        (FailCode.OUTPUT_TOO_LARGE, Limits(file_bytes=10_000)),
    ],
)
async def test_a_run_over_its_limits_ends_with_a_code_of_its_own(
    tmp_path: Path, code: FailCode, limits: Limits
) -> None:
    with pytest.raises(TranscodeFailed, match=code):
        await run((*ENCODING, str(tmp_path / "out.mp4")), timeout_s=600, limits=limits)


async def test_a_run_is_limited_without_being_told(endless: Callable[[], list[int]]) -> None:
    task = asyncio.create_task(run(ENDLESS, timeout_s=60))
    pid = await started(endless)
    limits, niceness = proc(pid, "limits"), os.getpriority(os.PRIO_PROCESS, pid)
    await cancel(task)
    assert niceness == 19
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    cores = os.cpu_count() or 1
    assert int(rows["Max address space"]) == (6 + cores) * 1024**3
    assert int(rows["Max cpu time"]) == 60 * cores
    assert int(rows["Max file size"]) == 4 * 1024**3


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        (FailCode.TIMED_OUT, {"timeout_s": 0.5}),
        (FailCode.STALLED, {"timeout_s": 30, "stall_s": 0.5}),
    ],
)
async def test_a_run_over_its_time_or_without_progress_is_ended(
    hanging: Hanging, code: FailCode, limits: dict[str, float]
) -> None:
    arguments = ("-progress", "pipe:1", "-i", hanging.address, "-f", "null", "-")
    with pytest.raises(TranscodeFailed, match=code):
        await run(arguments, **limits)
    assert not processes_naming(hanging.address)


@dataclass
class Clock:
    """In the place of the module `time`: the real clock, which can be put forward."""

    ahead_s: float = 0
    looks: int = 0

    def monotonic(self) -> float:
        self.looks += 1
        return monotonic() + self.ahead_s


async def test_backpressure_stops_the_process_and_the_clock(
    endless: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(child, "time", clock)
    paused = asyncio.Event()
    task = asyncio.create_task(run(ENDLESS, timeout_s=1_000, stall_s=1_000, paused=paused))
    pid = await started(endless)
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
    assert not endless()
