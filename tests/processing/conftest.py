"""A film that several passes are made of, and what makes passes of a short one as of a long one."""

from pathlib import Path

import pytest
from passes import make_source

from portal.transcoding.planning import ladder


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two thirds of a minute in few frames, encoded in moments."""
    return make_source(tmp_path_factory.mktemp("media") / "film.mp4", seconds=40, rate=5)


@pytest.fixture
def early_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ladder is made in two passes, however soon it is encoded."""
    monkeypatch.setattr(ladder, "_EARLY_FROM_ENCODE_S", 0)
