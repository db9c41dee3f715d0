"""Run `portal up` for a test."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import aiohttp
import psutil
from running_portal import free_port, until

import portal

# Limit for waits without another limit, on a machine busy with other tests.
TIMEOUT_S = 40.0
REPOSITORY = Path(portal.__file__).parents[1]
CHILDREN = {"database": "postgres", "storage": "rclone", "web": "web", "worker": "worker"}


class Portal:
    """A running `portal up`; `said` is its output when it was last read or had ended."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, log: Path) -> None:
        self.process = process
        self.address = f"http://127.0.0.1:{port}"
        self.said = ""
        self._log = log

    def look(self) -> None:
        self.said = self._log.read_text(errors="replace")

    async def read_until(self, text: str) -> None:
        def is_said() -> bool:
            self.look()
            assert self.process.returncode is None, f"ended before saying {text!r}:\n{self.said}"
            return text in self.said

        await until(is_said, timeout_s=TIMEOUT_S)

    async def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, float]:
        """Send a signal; return the exit code and the seconds until the end."""
        began = time.monotonic()
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(TIMEOUT_S):
            code = await self.process.wait()
        self.look()
        return code, time.monotonic() - began

    def children(self) -> dict[str, psutil.Process]:
        """Return the running children by name."""
        children = {}
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                words = [Path(word).name for word in child.cmdline()[:4]]
                children |= {name: child for name, word in CHILDREN.items() if word in words}
        return children

    async def status(self, path: str) -> int | None:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(self.address + path) as answer,
            ):
                return answer.status
        except aiohttp.ClientError:
            return None


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **more}


@asynccontextmanager
async def running(data: Path, port: int = 0, **environ: str) -> AsyncIterator[Portal]:
    """Start `portal up` and wait for its announcement; end it in any case."""
    port = port or free_port()
    with NamedTemporaryFile("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "portal", "up"),
            *("--data-dir", str(data), "--port", str(port)),
            env=environment(**environ),
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
        )
        started = Portal(process, port, Path(log.name))
        try:
            await started.read_until("Press Ctrl-C")
            yield started
        finally:
            await started.stop()
