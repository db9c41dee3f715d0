"""Fixtures of the tests of accounts: a database without an app, emptied after each test."""

from collections.abc import AsyncIterator

import pytest
from running_portal import fresh_database
from signed_in import emptied, hash_quickly, make_account

from portal.accounts.passwords import Passwords
from portal.config import Config
from portal.database.account_models import Account
from portal.database.connection import open_database


@pytest.fixture(scope="module")
async def shared_environ(services: dict[str, str]) -> AsyncIterator[dict[str, str]]:
    """Settings with one database for all tests of a file."""
    async with fresh_database(services) as environ:
        yield environ


@pytest.fixture
async def environ(shared_environ: dict[str, str]) -> AsyncIterator[dict[str, str]]:
    async with emptied(shared_environ["DATABASE_URL"]):
        yield shared_environ


@pytest.fixture
async def database(config: Config) -> AsyncIterator[None]:
    async with open_database(config):
        yield


@pytest.fixture
async def ann(database: None) -> Account:
    """Create the first owner."""
    return await make_account("ann")


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> Passwords:
    """Return hashing with cheap parameters."""
    hash_quickly(monkeypatch)
    return Passwords()
