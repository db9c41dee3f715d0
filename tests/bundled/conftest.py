"""Data folders for the embedded database and storage."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Create a folder outside of pytest's common one.

    Run by root, the database has a separate account, and another pytest process would close the
    common folder to it.
    """
    with TemporaryDirectory(prefix="portal-test-") as folder:
        yield Path(folder)
