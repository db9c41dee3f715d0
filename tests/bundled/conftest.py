"""Data folders for the embedded database and storage."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder outside pytest's own one.

    Run as root, the database has an account of its own, and any other pytest that starts would
    close the common folder to it.
    """
    with TemporaryDirectory(prefix="portal-test-") as folder:
        yield Path(folder)
