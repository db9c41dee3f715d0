"""The app of the attacks, shared by the tests of a file and renewed for each."""

import pytest
from quart import Quart


@pytest.fixture
def app(renewed_app: Quart) -> Quart:
    return renewed_app
