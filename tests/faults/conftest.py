"""What the tests of faults share: a seed for their choices."""

import os
from pathlib import Path
from random import Random

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
