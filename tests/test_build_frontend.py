"""The build hook builds when a source is newer, and explains a failure."""

import os
import shutil
from pathlib import Path

import pytest
from build_frontend import is_fresh
from front_end import STATIC

from portal.http.assets import FrontEndNotBuilt, load_manifest


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """Return a copy of the front end's sources with a newer, finished build."""
    copy = tmp_path / "static"
    shutil.copytree(STATIC, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    dist = copy / "dist"
    dist.mkdir()
    (dist / "manifest.json").write_text('{"app.js": "app-1.js"}', encoding="utf-8")
    for path in copy.rglob("*"):
        os.utime(path, (1_000, 1_000))
    os.utime(dist / "manifest.json", (2_000, 2_000))
    return copy


@pytest.mark.parametrize("source", ["src/main.js", "package-lock.json", "src"])
def test_newer_source_needs_a_build(static: Path, source: str) -> None:
    os.utime(static / source, (3_000, 3_000))
    assert not is_fresh(static)


def test_interrupted_build_is_repeated(static: Path) -> None:
    (static / "dist" / "manifest.json").unlink()
    assert not is_fresh(static)
    with pytest.raises(FrontEndNotBuilt, match="npm ci"):
        load_manifest(static / "dist")
