"""Reports and limits of ffmpeg, which never outlives the call."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psutil
import pytest
from serving import Hanging, cancel, children_naming, eventually

from portal.processes import child
from portal.processes.child import Limits
from portal.transcoding.encoding.ffmpeg import FfmpegLog, RunReport, run
from portal.transcoding.errors import FailCode, TranscodeFailed

PROGRESS = ("-nostdin", "-progress", "pipe:1", "-stats_period", "0.1")
# Arguments of a run in real time, which does not end during the test.
ENDLESS = (*PROGRESS, "-re", "-f", "lavfi", "-i", "testsrc2=s=64x64", "-f", "null", "-")
LARGE = ("-nostdin", "-y", "-f", "lavfi", "-i", "testsrc2=s=1920x1080:d=120")
ENCODING = (*LARGE, "-c:v", "libx264", "-threads", "1")


async def started() -> psutil.Process:
    """Return the child process once it runs ffmpeg."""
    await eventually(lambda: any("ffmpeg" in child.name() for child in children_naming("testsrc2")))
    return children_naming("testsrc2")[0]


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


def test_the_log_reads_loudness_from_lines_that_another_thread_goes_on_with() -> None:
    log = FfmpegLog()
    log.feed(
        b"[Parsed_ebur128_1 @ 0x1] [info] Summary:\n\n  Integrated loudness:\n"
        b"    I:         -18.7 LUFS\n    Threshold: -28.7 LUFS\n\n  Loudness range:\n"
        b"    LRA:         0.0 LU\n    LRA high:    3.0 LUFSEncoder thread received EOF\n"
        b"[Parsed_ebur128_1 @ 0x1] [info] \n\n  True peak:\n"
        b"    Peak:      -18.1 dBFSAll streams finished\n"
    )
    assert log.report.loudness == {"I": -18.7, "LRA": 0.0, "Peak": -18.1}


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        (FailCode.OUT_OF_MEMORY, Limits(memory_bytes=200 * 1024**2)),
        (FailCode.TIMED_OUT, Limits(cpu_s=1)),
        (FailCode.OUTPUT_TOO_LARGE, Limits(file_bytes=10_000)),
    ],
)
async def test_each_limit_that_a_run_exceeds_has_a_code(
    tmp_path: Path, code: FailCode, limits: Limits
) -> None:
    with pytest.raises(TranscodeFailed, match=code):
        await run((*ENCODING, str(tmp_path / "out.mp4")), timeout_s=600, limits=limits)


async def test_a_run_has_limits_by_default() -> None:
    task = asyncio.create_task(run(ENDLESS, timeout_s=60))
    ffmpeg = await started()
    cores = len(os.sched_getaffinity(0))
    assert ffmpeg.nice() == 19
    assert ffmpeg.rlimit(psutil.RLIMIT_AS)[0] == (6 + cores) * 1024**3
    assert ffmpeg.rlimit(psutil.RLIMIT_CPU)[0] == 60 * cores
    assert ffmpeg.rlimit(psutil.RLIMIT_FSIZE)[0] == 4 * 1024**3
    await cancel(task)


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
    assert not children_naming(hanging.address)


@dataclass
class Clock:
    """Replacement of the module `time`: the real clock, which can be put forward."""

    ahead_s: float = 0
    looks: int = 0

    def monotonic(self) -> float:
        self.looks += 1
        return monotonic() + self.ahead_s


async def test_backpressure_stops_the_process_and_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(child, "time", clock)
    paused = asyncio.Event()
    task = asyncio.create_task(run(ENDLESS, timeout_s=1_000, stall_s=1_000, paused=paused))
    ffmpeg = await started()
    paused.set()
    await eventually(lambda: ffmpeg.status() == psutil.STATUS_STOPPED)
    # This exceeds both limits, so the run would end if its clock were not stopped.
    clock.ahead_s = 3_600
    looks = clock.looks
    await eventually(lambda: task.done() or clock.looks > looks + 3)
    assert not task.done()
    paused.clear()
    await eventually(lambda: ffmpeg.status() != psutil.STATUS_STOPPED)
    paused.set()
    await eventually(lambda: ffmpeg.status() == psutil.STATUS_STOPPED)
    await cancel(task)  # a stopped process must end too
    assert not children_naming("testsrc2")
