"""What the attacks share: one app for a file, which is as new for each test."""

import pytest
from quart import Quart


@pytest.fixture
def app(renewed_app: Quart) -> Quart:
    return renewed_app
