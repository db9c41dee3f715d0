"""A film for several passes, and a setting under which a short film needs several."""

from pathlib import Path

import pytest
from api_client import Client
from passes import Worker, make_source

from portal.http.composition import WebContext
from portal.transcoding.planning import ladder


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return 40 s of video with few frames, which is encoded quickly."""
    return make_source(tmp_path_factory.mktemp("media") / "film.mp4", seconds=40, rate=5)


@pytest.fixture
def early_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every ladder in two passes, even if it is encoded quickly."""
    monkeypatch.setattr(ladder, "_EARLY_FROM_ENCODE_S", 0)


@pytest.fixture
def worker(client: Client, resources: WebContext, tmp_path: Path) -> Worker:
    return Worker(client, resources, tmp_path)
