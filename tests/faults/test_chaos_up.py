"""`portal up` and all it runs die at random moments, and something starts it again.

What a service manager does for an operator: `portal up` ends by being killed, by being told to,
or because a part cannot be started, and half a second later it runs again on the same folder.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from chaos import chaos
from fault_injection import Source, Stack, check_nothing_runs, make_folders
from random_faults import UP_KINDS
from running_portal import answers, free_port, until
from running_up import children_of, command, environment

from portal.bundled.data_folder import load_environment

START_TIMEOUT_S = 60.0
RESTART_PAUSE_S = 0.5
# Enough for what has died to be started again, not always to have settled.
PAUSE_S = (0.5, 6.0)


@dataclass(slots=True)
class Manager:
    """Keeps `portal up` running in a folder."""

    folder: Path
    port: int = field(default_factory=free_port)
    starts: int = 0
    _process: asyncio.subprocess.Process | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def pid(self, name: str) -> int | None:
        """The number of `portal up` itself by the name `up`, or of a part of it."""
        process = self._process
        if process is None or process.returncode is not None:
            return None
        if name == "up":
            return process.pid
        with suppress(psutil.NoSuchProcess):
            if child := children_of(process.pid).get(name):
                return int(child.pid)
        return None

    async def keep(self) -> None:
        while True:
            with (self.folder / "log/up.log").open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    *command(self.data, self.port),
                    env=environment(TMPDIR=str(self.folder / "tmp")),
                    stdout=log,
                    stderr=log,
                )
            self.starts += 1
            await self._process.wait()
            await asyncio.sleep(RESTART_PAUSE_S)

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            await self._process.wait()


@asynccontextmanager
async def managed_stack(folder: Path) -> AsyncIterator[tuple[Manager, Stack]]:
    """`portal up` in this folder; afterwards nothing of it runs."""
    make_folders(folder)
    manager = Manager(folder)
    keeping = asyncio.create_task(manager.keep())
    try:
        address = f"http://127.0.0.1:{manager.port}"
        await until(lambda: answers(f"{address}/readyz"), timeout_s=START_TIMEOUT_S)
        environ = load_environment(manager.data)
        yield manager, Stack(folder, environ, manager.pid, workers=("worker",), roots=("up",))
    finally:
        keeping.cancel()
        await manager.end()
    check_nothing_runs(folder)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300, 301))
async def test_nothing_is_lost_doubled_or_left_by_portal_up(
    seed: int, sources: list[Source], fault_tally: Counter[str], fault_folder: Path
) -> None:
    folder = fault_folder / str(seed)
    folder.mkdir()
    async with managed_stack(folder) as (manager, stack):
        extent = {"faults": 15, "videos": 6, "pause_s": PAUSE_S}
        await chaos(stack, sources, fault_tally, seed=seed, kinds=UP_KINDS, **extent)
    fault_tally["starts of portal up"] += manager.starts
