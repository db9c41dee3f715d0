"""Clients of the tests of the web process."""

import pytest
from quart import Quart
from signed_in import OWN_PAGE, Sender, signed_in

from portal.database.account_models import Account


@pytest.fixture
def anyone(app: Quart) -> Sender:
    """A browser in which nobody is signed in."""
    return Sender(app, OWN_PAGE)


@pytest.fixture
def here(app: Quart) -> Sender:
    """A browser on the portal's own machine."""
    return Sender(app, OWN_PAGE, address="127.0.0.1")


@pytest.fixture
async def owner(app: Quart, olga: Account) -> Sender:
    """A browser in which the owner is signed in."""
    return await signed_in(app, olga)
