"""Seed of random choices, and data folders, for the tests of faults."""

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psutil
import pytest
from quart import Quart

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as slow."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def rng() -> Random:
    """Random choices of a test, which prints the seed that repeats them."""
    seed = os.environ.get("PORTAL_FAULT_SEED", "1")
    print(f"PORTAL_FAULT_SEED={seed}")  # noqa: T201
    return Random(int(seed))  # noqa: S311  # repeatable, not secret


@pytest.fixture
def app(own_app: Quart) -> Quart:
    """App in this process; defined here so that pytest finds its settings' parameters."""
    return own_app


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    """Data folder; fails if a process still runs in it after the test."""
    # pytest's own folder is closed to the database's account.
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
        _, alive = psutil.wait_procs(processes_of(Path(folder)), timeout=60)
        assert not alive, f"still running: {[process.cmdline() for process in alive]}"


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes with the folder in command line, environment or working directory."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            texts = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if any(str(folder) in text for text in texts):
                processes.append(process)
    return processes
