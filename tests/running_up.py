"""A running `portal up`, for tests to watch, use and end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
import pytest

import portal
from portal.bundled.addresses import free_port

# For what has no limit of its own, on a machine busy with other tests.
TIMEOUT_S = 40.0
REPOSITORY = Path(portal.__file__).parents[1]
CHILDREN = {"database": "postgres", "storage": "rclone", "web": "web", "worker": "worker"}


class Portal:
    """A running `portal up` and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.address = f"http://127.0.0.1:{port}"
        self.said = ""

    async def read_until(self, text: str) -> None:
        stream = self.process.stdout
        async with asyncio.timeout(TIMEOUT_S):
            while stream is not None and text not in self.said:
                data = await stream.read(4096)
                if not data:
                    pytest.fail(f"ended before saying {text!r}:\n{self.said}")
                self.said += data.decode()

    async def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, float]:
        """Ask it to end; returns the exit code and how long that took."""
        began = time.monotonic()
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(TIMEOUT_S):
            rest, _ = await self.process.communicate()
        self.said += rest.decode()
        return self.process.returncode or 0, time.monotonic() - began

    def children(self) -> dict[str, psutil.Process]:
        """The running children by name."""
        return children_of(self.process.pid)

    async def status(self, path: str) -> int | None:
        try:
            async with aiohttp.ClientSession() as session, session.get(self.address + path) as got:
                return got.status
        except aiohttp.ClientError:
            return None


def children_of(pid: int) -> dict[str, psutil.Process]:
    """The running children of the `portal up` of this number, by name."""
    found = {}
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            words = [Path(word).name for word in child.cmdline()[:4]]
            found |= {name: child for name, word in CHILDREN.items() if word in words}
    return found


def command(data: Path, port: int) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "portal", "up"),
        *("--data-dir", str(data), "--port", str(port)),
    )


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **more}


@asynccontextmanager
async def running(data: Path, port: int = 0, **environ: str) -> AsyncIterator[Portal]:
    """Start it and wait for the announcement; whatever happens, it is ended."""
    port = port or free_port("127.0.0.1")
    process = await asyncio.create_subprocess_exec(
        *command(data, port),
        env=environment(**environ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    started = Portal(process, port)
    try:
        await started.read_until("Press Ctrl-C")
        yield started
    finally:
        await started.stop()
