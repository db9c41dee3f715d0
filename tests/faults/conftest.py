"""One portal to hurt for each file of tests, and the table of what was done to it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from database_proxy import DatabaseProxy, database_proxy
from fault_injection import Source, Stack, large_source, long_source, running_stack, short_source
from quart import Quart

from portal.config import Config

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is hurt here takes long."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def fault_folder() -> Iterator[Path]:
    """Outside pytest's own folder, which each run closes to the database's account."""
    with TemporaryDirectory(prefix="portal-fault-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
async def stack(fault_folder: Path) -> AsyncIterator[Stack]:
    """A durable portal with two workers."""
    async with running_stack(fault_folder) as stack:
        yield stack


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """What people publish: sent whole, completed later, sent in parts."""
    folder = tmp_path_factory.mktemp("media")
    return [short_source(folder), long_source(folder), large_source(folder)]


@pytest.fixture
def rng(seed: int) -> Random:
    """The choices of a test that is parametrized by a seed."""
    return Random(seed)  # noqa: S311  # to be repeated, not to be secret


@pytest.fixture
async def proxied(config: Config) -> AsyncIterator[tuple[DatabaseProxy, Config]]:
    """A proxy in front of the test's database, and the settings by which it is gone through."""
    async with database_proxy(config.database_url) as (proxy, address):
        yield proxy, replace(config, database_url=address)


@pytest.fixture
def app(own_app: Quart) -> Quart:
    """The app in this process; named here, so that the parameters of its settings are found."""
    return own_app


TALLY: Counter[str] = Counter()


@pytest.fixture(scope="session")
def fault_tally() -> Counter[str]:
    """How often each fault was inflicted; shown after the tests."""
    return TALLY


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under xdist, hand the counts of this process to the one that shows them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = dict(TALLY)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a process of xdist's that has ended."""
    TALLY.update(getattr(node, "workeroutput", {}).get("faults", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was done, and how often."""
    if TALLY:
        terminalreporter.section("faults inflicted")
        for kind, count in sorted(TALLY.items()):
            terminalreporter.line(f"{count:6} {kind}")
