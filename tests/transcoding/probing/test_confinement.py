"""The probe's child process: what it may use, and that it ends, whatever the source does to it."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest
from published import probe
from serving import Hanging, cancel, children_naming

from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing import probe as probing

PROGRAM = "portal.transcoding.probing"


async def test_a_server_that_never_answers_is_given_up(hanging: Hanging) -> None:
    with pytest.raises(TranscodeFailed) as caught:
        await probe(hanging.address, timeout_s=1)
    assert caught.value.code in {FailCode.PROBE_FAILED, FailCode.SOURCE_UNREACHABLE}
    assert not children_naming(PROGRAM)


async def test_the_probe_runs_within_limits_without_secrets_and_ends_when_cancelled(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    task = asyncio.create_task(probe(f"{hanging.address}?X-Amz-Signature=secret"))
    async with asyncio.timeout(100):
        await hanging.requested.wait()
    [child] = children_naming(PROGRAM)
    assert "secret" not in "".join(child.cmdline()), "argv is visible to everyone"
    assert "AWS_SECRET_ACCESS_KEY" not in child.environ()
    for kind, most in {
        psutil.RLIMIT_AS: 4 * 1024**3,
        psutil.RLIMIT_CPU: 18,
        psutil.RLIMIT_FSIZE: 1,
        psutil.RLIMIT_CORE: 0,
        psutil.RLIMIT_NOFILE: 1024,
    }.items():
        assert child.rlimit(kind)[0] == most
    assert "NoNewPrivs:\t1" in Path(f"/proc/{child.pid}/status").read_text()
    await cancel(task)
    assert not children_naming(PROGRAM)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, FailCode.PROBE_FAILED),
        (signal.SIGTERM, FailCode.PROBE_FAILED),
        (signal.SIGSEGV, RejectCode.DAMAGED),
        (signal.SIGXCPU, RejectCode.DAMAGED),
    ],
)
async def test_a_source_that_crashes_its_probe_is_refused_and_a_killed_probe_is_retried(
    number: signal.Signals, code: str, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = f"signal.signal({number:d}, signal.SIG_DFL)" if number != signal.SIGKILL else "pass"
    program = f"import os, signal; {default}; os.kill(os.getpid(), {number:d})"
    monkeypatch.setattr(probing, "_CHILD", ("-I", "-c", program))
    with pytest.raises((SourceRejected, TranscodeFailed)) as caught:
        await probe(plain)
    assert caught.value.code == code
    assert f"probe ended with -{number:d}" in caught.value.detail
