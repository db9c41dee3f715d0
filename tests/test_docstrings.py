"""Docstrings and comments name modules and files that exist."""

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "portal"
MODULES = sorted(PACKAGE.rglob("*.py"))
# `rows.py`, `processing/rows.py`, `processing.rows`, `rows.Row`: as they stand in backticks.
NAMED = re.compile(r"`([\w/.]+\.py|[a-z_]\w*(?:\.\w+)+)`")


def prose(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    with tokenize.open(module) as lines:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT:
                yield token.string


def exists(name: str, module: Path) -> bool:
    """Seen from a module: from its own folder or one above, up to the repository."""
    folders = [folder for folder in module.parents if folder.is_relative_to(ROOT)]
    if name.endswith(".py"):
        return any((folder / name).is_file() for folder in folders)
    *parents, last = name.split(".")
    if any((folder.joinpath(*parents) / last).with_suffix(".py").is_file() for folder in folders):
        return True
    if any(folder.joinpath(*parents, last).is_dir() for folder in folders):
        return True
    # A name in a module, wherever that lies, or of a library.
    homes = [path for path in MODULES if path.stem in (parents[0], parents[-1])]
    return any(last in words(path) for path in homes) or find_spec(parents[0]) is not None


@cache
def words(module: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", module.read_text()))


@pytest.mark.parametrize("module", MODULES, ids=lambda it: str(it.relative_to(PACKAGE)))
def test_what_a_docstring_names_exists(module: Path) -> None:
    named = {name for text in prose(module) for name in NAMED.findall(text)}
    assert {name for name in named if not exists(name, module)} == set()
