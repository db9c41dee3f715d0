"""What the attacks share: one app for a file, which is as new for each test."""

from collections.abc import Iterator

import pytest
from log_lines import collected_lines
from quart import Quart
from signed_in import make_account

from portal.database.account_models import Account
from portal.database.states import Role


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
    with collected_lines() as found:
        yield found
