"""`portal up`: start, restarts of its children, errors and end."""

import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import run_program
from running_portal import answers, call, free_port, until
from running_up import CHILDREN, TIMEOUT_S, environment, running

from portal.bundled.data_folder import load_environment
from portal.bundled.up import without_made_settings

# Enough for a busy machine; an idle one takes two seconds.
READY_LIMIT_S = 120.0
STOP_LIMIT_S = 30.0


async def fail(data: Path, port: int = 0) -> str:
    """Run `portal up` where it can't start; return its one-line message."""
    command = (sys.executable, "-m", "portal", "up", "--data-dir", str(data))
    options = ("--port", str(port or free_port()))
    code, out, err = await run_program(*command, *options, env=environment())
    message = out + err
    assert (code, message.count("\n")) == (1, 1), message
    assert message.startswith("Error: ")
    return message


async def until_gone(processes: list[psutil.Process]) -> None:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=STOP_LIMIT_S)
    assert alive == []


async def test_start_on_an_empty_folder_and_end_by_a_signal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    began = time.monotonic()
    async with running(data) as portal:
        assert time.monotonic() - began < READY_LIMIT_S
        assert portal.address in portal.said
        assert str(data) in portal.said
        assert await portal.status("/") == 200
        assert await portal.status("/readyz") == 200
        children = portal.children()
        assert children.keys() == CHILDREN.keys()

        code, took_s = await portal.stop(signal.SIGINT)

    assert (code, took_s < STOP_LIMIT_S) == (0, True)
    await until_gone(list(children.values()))
    # Settings that a shell has read from the folder are ignored by another start.
    shell = {**load_environment(data), "AWS_PROFILE": "mine", "PUBLIC_URL": "https://a.example"}
    assert without_made_settings(shell).keys() == {"AWS_PROFILE"}
    assert "Traceback" not in portal.said


@pytest.mark.slow
@pytest.mark.soak
async def test_children_are_restarted_and_a_killed_portal_can_be_started_again(
    tmp_path: Path,
) -> None:
    port = free_port()
    async with running(tmp_path, port) as portal:
        message = await fail(tmp_path)
        other = f"another `portal up` (pid {portal.process.pid})"
        assert f"{tmp_path} is already in use by {other}" in message

        before = portal.children()
        for line in ("worker died: killed by SIGKILL", "failure 2 in a row"):
            await until(lambda: "worker" in portal.children(), timeout_s=TIMEOUT_S)
            portal.children()["worker"].kill()
            await portal.read_until(line)
        works = {"database": "ok", "storage": "ok"}
        assert await call("GET", f"{portal.address}/readyz") == {**works, "worker": "restarting"}
        assert portal.children() == {k: v for k, v in before.items() if k != "worker"}
        assert "failure 2 in a row" in (tmp_path / "log" / "portal.log").read_text()

        for child in portal.children().values():
            child.kill()
        await until(lambda: portal.children().keys() == CHILDREN.keys(), timeout_s=TIMEOUT_S)
        await until(lambda: answers(f"{portal.address}/readyz"), timeout_s=TIMEOUT_S)

        children = list(portal.children().values())
        portal.process.kill()
        await portal.process.wait()
        # No pause: the old children may still be ending.
        async with running(tmp_path, port) as again:
            assert await again.status("/readyz") == 200
            await until_gone(children)


@pytest.mark.slow
async def test_configured_database_and_storage_replace_the_embedded_ones(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with running(tmp_path, **environ) as portal:
        assert await portal.status("/readyz") == 200
        assert portal.children().keys() == {"web", "worker"}
    assert not (tmp_path / "postgres").exists()


async def test_reason_for_a_failed_start_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = await fail(tmp_path, port)
    assert f"Port {port} on 127.0.0.1 is in use. Choose another one with --port." in message
    tmp_path.chmod(0o500)
    # Root can write to every folder except those of the kernel.
    message = await fail(tmp_path if os.geteuid() else Path("/sys/portal"))
    assert "Permission denied" in message or "Operation not permitted" in message
