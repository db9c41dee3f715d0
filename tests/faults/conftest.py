"""What the tests of faults share: a seed for their choices, and a data folder."""

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
    """Whatever is hurt here takes long."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def rng() -> Random:
    """The choices of a test; it prints the seed that repeats them."""
    seed = os.environ.get("PORTAL_FAULT_SEED", "1")
    print(f"PORTAL_FAULT_SEED={seed}")  # noqa: T201
    return Random(int(seed))  # noqa: S311  # to be repeated, not to be secret


@pytest.fixture
def app(own_app: Quart) -> Quart:
    """The app in this process; named here, so that the parameters of its settings are found."""
    return own_app


@pytest.fixture
async def data() -> AsyncIterator[Path]:
    """A data folder, and nothing left running in it."""
    # Outside pytest's own folder, which each run closes to the database's account.
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"
        _, left = psutil.wait_procs(processes_of(Path(folder)), timeout=60)
        assert not left, f"left running after the end: {[it.cmdline() for it in left]}"


def processes_of(folder: Path) -> list[psutil.Process]:
    """The running processes that mention the folder in command line, environment or place."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            texts = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if any(str(folder) in text for text in texts):
                found.append(process)
    return found
