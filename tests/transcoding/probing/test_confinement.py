"""The probe's child process: what it may use, and that it ends, whatever the source does to it."""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from published import probe
from serving import Hanging, cancel

from portal.processes.child import Limits, spawn, stop
from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing import probe as probing


def own_probes() -> list[int]:
    """The probes that this very process has started; others may be running on the machine."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if "portal.transcoding.probing" in child.cmdline():
                found.append(child.pid)
    return found


async def test_a_server_that_never_answers_is_given_up(hanging: Hanging) -> None:
    with pytest.raises(TranscodeFailed) as caught:
        await probe(hanging.address, timeout_s=1)
    assert caught.value.code in {FailCode.PROBE_FAILED, FailCode.SOURCE_UNREACHABLE}
    assert not own_probes()


async def test_the_probe_runs_within_limits_and_ends_when_cancelled(hanging: Hanging) -> None:
    task = asyncio.create_task(probe(f"{hanging.address}?X-Amz-Signature=secret"))
    async with asyncio.timeout(100):
        await hanging.asked.wait()
    (pid,) = own_probes()
    assert "secret" not in "".join(psutil.Process(pid).cmdline()), "argv is visible to everyone"
    limits = Path(f"/proc/{pid}/limits").read_text()
    status = Path(f"/proc/{pid}/status").read_text()
    await cancel(task)
    assert not own_probes()
    rows = {line[:26].strip(): line[26:].split() for line in limits.splitlines()}
    assert rows["Max address space"][0] == str(4 * 1024**3)
    assert rows["Max cpu time"][0] == "18"
    assert rows["Max file size"][0] == "1"
    assert rows["Max core file size"][0] == "0"
    assert int(rows["Max open files"][0]) <= 1024
    assert "NoNewPrivs:\t1" in status


@pytest.mark.parametrize(
    ("number", "code"),
    [
        *((it, FailCode.PROBE_FAILED) for it in (signal.SIGKILL, signal.SIGTERM)),
        *((it, RejectCode.DAMAGED) for it in (signal.SIGSEGV, signal.SIGXCPU)),
    ],
)
async def test_a_source_that_breaks_its_probe_is_told_from_an_end_from_outside(
    number: signal.Signals, code: str, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = f"signal.signal({number:d}, signal.SIG_DFL)" if number != signal.SIGKILL else "pass"
    program = f"import os, signal; {default}; os.kill(os.getpid(), {number:d})"
    monkeypatch.setattr(probing, "_CHILD", ("-I", "-c", program))
    with pytest.raises((SourceRejected, TranscodeFailed)) as caught:
        await probe(str(plain))
    assert caught.value.code == code
    assert f"probe ended with -{number:d}" in caught.value.detail


async def test_a_child_inherits_no_secret_and_low_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    code = "import os; print(os.nice(0), sorted(os.environ))"
    process = await spawn((sys.executable, "-I", "-c", code), limits=Limits())
    try:
        async with asyncio.timeout(60):
            told, _ = await process.communicate()
    finally:
        await stop(process)
    assert told.startswith(b"19 ")
    assert b"AWS" not in told
