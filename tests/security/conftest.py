"""What the attacks share: one app for a file, which is as new for each test."""

import logging
from collections.abc import Iterator

import pytest
from pythonjsonlogger.json import JsonFormatter
from quart import Quart
from signed_in import make_account

from portal.database.account_models import Account, Role


@pytest.fixture
def app(renewed_app: Quart) -> Quart:
    """All files here share one app each."""
    return renewed_app


@pytest.fixture
async def mallory(olga: Account) -> Account:
    """Another editor, who attacks."""
    return await make_account("mallory", Role.EDITOR)


@pytest.fixture
def lines(app: Quart) -> Iterator[list[str]]:
    """All that is logged from now on at any level, with all fields."""
    root, found = logging.getLogger(), list[str]()
    formatter = JsonFormatter(json_ensure_ascii=False)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(formatter.format(record))

    collector, level = Collector(), root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    yield found
    root.removeHandler(collector)
    root.setLevel(level)
