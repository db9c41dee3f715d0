"""Supervision of child processes, with tiny programs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from serving import eventually

from portal.processes.output import LineOutput, log_output
from portal.processes.records import end_orphans, record_children
from portal.processes.supervisor import (
    ChildError,
    Children,
    ChildSpec,
    RestartPolicy,
    running_children,
)

QUICK = RestartPolicy(first_s=0.01, cap_s=0.02, first_tries=2)

# Prints its name and process id when it starts, and its name on SIGTERM.
POLITE = """
import os, signal, sys
def end(*_):
    os.write(1, f"end {sys.argv[1]}\\n".encode())
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
os.write(1, f"start {sys.argv[1]} {os.getpid()}\\n".encode())
while True:
    signal.pause()
"""
DYING = "import sys; print('no disk'); sys.exit(3)"
SLEEPER = (sys.executable, "-S", "-c", "import signal; signal.pause()")
STUBBORN = POLITE.replace("sys.exit(0)", "pass")


class Lines(list[str]):
    """Lines that children have printed."""

    @property
    def output(self) -> LineOutput:
        return LineOutput(self.append)


@pytest.fixture
def lines() -> Lines:
    return Lines()


def child(name: str, code: str, output: Any, **options: Any) -> ChildSpec:
    return ChildSpec(
        name=name,
        argv=(sys.executable, "-S", "-c", textwrap.dedent(code), name),
        environ={},
        output=output,
        **options,
    )


def has_printed(lines: Lines, text: str) -> Callable[[], Awaitable[bool]]:
    """Return a readiness check for a line that begins with a text."""

    async def probe() -> bool:
        return any(line.startswith(text) for line in lines)

    return probe


async def never() -> bool:
    return False


@asynccontextmanager
async def polite(
    lines: Lines, code: str = POLITE, *, failing: Path | None = None, **options: Any
) -> AsyncIterator[Children]:
    async with running_children(policy=QUICK, failing=failing) as children:
        spec = child("one", code, lines.output, ready=has_printed(lines, "start"), **options)
        await children.start(spec)
        yield children


async def test_children_start_in_order_and_end_in_reverse(lines: Lines) -> None:
    async with running_children() as children:
        for name in ("first", "second"):
            ready = has_printed(lines, f"start {name}")
            await children.start(child(name, POLITE, lines.output, ready=ready))

    words = [line.split()[:2] for line in lines]
    assert words == [["start", "first"], ["start", "second"], ["end", "second"], ["end", "first"]]


async def test_a_child_that_keeps_dying_is_reported_and_restarted_and_the_others_continue(
    lines: Lines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = tmp_path / "failing"
    async with polite(lines, failing=failing) as children:
        assert failing.read_text() == ""
        await children.start(child("broken", DYING, log_output(tmp_path / "broken.log")))
        await eventually(lambda: len(caplog.messages) >= 6)
        assert failing.read_text() == "broken\n"
    assert caplog.messages[5].startswith("broken died: exit status 3 (failure 6 in a row)")
    assert "no disk" in caplog.messages[5]
    assert [line.split()[:2] for line in lines] == [["start", "one"], ["end", "one"]]


async def test_a_child_that_was_ready_is_restarted_without_a_growing_pause(lines: Lines) -> None:
    policy = RestartPolicy(first_s=0.01, cap_s=1000, served_s=0.0)
    async with running_children(policy=policy) as children:
        await children.start(child("one", POLITE, lines.output, ready=has_printed(lines, "start")))
        for restarts in range(1, 13):
            await eventually(lambda count=restarts: len(lines) == count)
            os.kill(int(lines[-1].split()[-1]), signal.SIGKILL)
        # A pause that doubled with each restart would be 20 s long by now.
        await eventually(lambda: len(lines) == 13)


async def test_a_must_start_child_that_fails_ends_the_set(lines: Lines) -> None:
    dying = child("broken", DYING, lines.output, ready=never, must_start=True)

    message = r"(?s)broken failed 2 times.*exit status 3.*no disk"
    with pytest.raises(ChildError, match=message):  # raised at the end of the block
        async with polite(lines) as children:
            await children.start(dying)

    assert lines.count("no disk") == 2
    assert "end one" in lines  # the other child received SIGTERM


async def test_a_child_that_never_gets_ready_has_failed(lines: Lines) -> None:
    options = {"ready": never, "ready_timeout_s": 0.3, "must_start": True}
    spec = child("idle", POLITE, lines.output, **options)

    with pytest.raises(ChildError, match=r"idle .* not ready within 0\.3 s"):
        async with running_children(policy=QUICK) as children:
            await children.start(spec)


async def test_a_child_that_ignores_signals_is_killed_with_its_children(lines: Lines) -> None:
    code = f"""
    import subprocess, sys
    helper = subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()"])
    print("helper", helper.pid, flush=True)
    {textwrap.indent(STUBBORN, "    ").strip()}
    """
    async with polite(lines, code, stop_signals=((signal.SIGTERM, 3.0),)):
        helper = int(lines[0].split()[1])
        assert psutil.pid_exists(helper)

    await eventually(lambda: is_gone(helper))
    assert "end one" in lines


async def test_a_failed_run_is_reported_with_its_last_lines(lines: Lines) -> None:
    spec = child("migrate", DYING, lines.output)

    with pytest.raises(ChildError, match=r"(?s)migrate failed \(exit status 3\).*no disk"):
        async with running_children() as children:
            await children.run(spec)


async def test_long_output_without_a_line_feed_is_split_and_read(lines: Lines) -> None:
    async with running_children() as children:
        await children.run(child("loud", "print('x' * 1_000_000)", lines.output))

    assert sum(map(len, lines)) == 1_000_000
    assert max(map(len, lines)) < 100_000


async def test_log_file_is_rotated_and_one_older_file_is_kept(tmp_path: Path) -> None:
    log = log_output(tmp_path / "loud.log", limit_bytes=1000)
    async with running_children() as children:
        for number in range(3):
            await children.run(child("loud", f"print('{number}' * 1500)", log))

    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"loud.1.log": "1" * 1500 + "\n", "loud.log": "2" * 1500 + "\n"}


async def test_orphans_of_an_earlier_start_are_ended(tmp_path: Path) -> None:
    record = tmp_path / "children"
    orphan = subprocess.Popen(SLEEPER)  # noqa: ASYNC220  # asyncio would wait for it as well
    record_children(record, [(orphan.pid, signal.SIGTERM)])

    assert await asyncio.to_thread(end_orphans, record) == 1
    assert is_gone(orphan.pid)
    orphan.wait()
    assert not record.exists()


async def test_a_process_that_reuses_the_id_of_an_old_child_is_kept(tmp_path: Path) -> None:
    record = tmp_path / "children"
    stranger = await asyncio.create_subprocess_exec(*SLEEPER)
    record.write_text(json.dumps([[stranger.pid, time.time() - 3600, signal.SIGTERM]]))

    try:
        assert await asyncio.to_thread(end_orphans, record) == 0
        assert stranger.returncode is None
    finally:
        stranger.kill()
        await stranger.wait()


def is_gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return True
