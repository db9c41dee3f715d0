"""Finds the templates and the built front end, and the hashed name of each built file.

In a checkout both are read from the repository, in an installed wheel from inside the package.
The front end itself is built by ``static/build_frontend.py``; nothing here builds anything.
"""

import json
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_REPOSITORY = _PACKAGE.parent


class FrontEndNotBuilt(RuntimeError):
    """The front end is not built: run `npm ci && npm run build` in static/, or reinstall."""


def templates_dir() -> Path:
    """The folder of Jinja templates: the packaged one, else the repository's."""
    return _first_existing(_PACKAGE / "_templates", _REPOSITORY / "templates")


def static_dist_dir() -> Path:
    """The folder of built scripts, styles and images: the packaged one, else the repository's."""
    return _first_existing(_PACKAGE / "_static", _REPOSITORY / "static" / "dist")


def load_manifest(dist: Path) -> Mapping[str, str]:
    """Each built file's name (app.js) and its content-hashed name in `dist` (app-1A2B3C4D.js).

    Raises FrontEndNotBuilt when there is no whole build: the manifest is written last.
    """
    try:
        names: dict[str, str] = json.loads((dist / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise FrontEndNotBuilt(FrontEndNotBuilt.__doc__) from exc
    return names


def _first_existing(packaged: Path, checked_out: Path) -> Path:
    return packaged if packaged.is_dir() else checked_out
