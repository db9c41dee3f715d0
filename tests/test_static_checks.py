"""Python, scripts, styles and templates pass their checkers; the lock file names no registry."""

import json
import re
import sys
from pathlib import Path

import pytest
from front_end import STATIC, install_tools, run, run_node

ROOT = STATIC.parent
# Outside and inside distances, with what is given for them.
DISTANCES = re.compile(r"^\s+(?:margin|padding|(?:row-|column-)?gap)(?:-[a-z-]+)?: ([^;]+);", re.M)
OFF_THE_GRID = re.compile(r"(?<![-\w+.])[\d.]+rem(?! [+-])")


def test_scripts_and_styles_pass_biome() -> None:
    script = install_tools() / "@biomejs" / "biome" / "bin" / "biome"
    run_node(str(script), "check", "--error-on-warnings", ".")


def test_script_types_pass_tsc() -> None:
    run_node(str(install_tools() / "typescript" / "bin" / "tsc"), "-p", "tsconfig.json")


def test_templates_pass_djlint() -> None:
    for mode in ("--lint", "--check"):
        run(sys.executable, "-m", "djlint", mode, "--quiet", "templates", cwd=ROOT)


def test_python_passes_ruff() -> None:
    run(sys.executable, "-m", "ruff", "check", ".", cwd=ROOT)
    run(sys.executable, "-m", "ruff", "format", "--check", ".", cwd=ROOT)


def test_types_pass_mypy() -> None:
    run(sys.executable, "-m", "mypy", cwd=ROOT)


def test_imports_keep_the_contracts_of_the_floors() -> None:
    # Without its cache, which is not safe under several test processes.
    lint_imports = Path(sys.executable).with_name("lint-imports")
    run(str(lint_imports), "--no-cache", cwd=ROOT)


def test_templates_hold_no_inline_script_or_style() -> None:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        assert "style=" not in text, path
        assert "<style" not in text, path
        assert "<script>" not in text, path
        assert " hx-on" not in text, path


def test_fields_are_drawn_by_the_components_alone() -> None:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        if path.name not in {"_components.html", "_multi_select.html"}:
            text = path.read_text(encoding="utf-8")
            assert "field__label" not in text, path
            assert 'class="input select"' not in text, path


MARKUP = ("<progress", "<dialog", 'class="notice', 'class="empty"')


@pytest.mark.parametrize("markup", MARKUP)
def test_components_are_drawn_by_their_macros_alone(markup: str) -> None:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        if path.name != "_components.html":
            assert not re.search(markup + "(?!_)", path.read_text(encoding="utf-8")), path


def test_sizes_of_text_are_those_of_the_scale() -> None:
    for path in sorted((STATIC / "css").glob("*.css")):
        given = re.findall(r"(?:font-size|font): ([^;]+);", path.read_text(encoding="utf-8"))
        assert [it for it in given if re.search(r"\d(?:px|rem)\b", it)] == [], path.name


def test_distances_are_those_of_the_grid() -> None:
    for path in sorted((STATIC / "css").glob("*.css")):
        text = path.read_text(encoding="utf-8")
        given = DISTANCES.findall(text)
        assert [it for it in given if OFF_THE_GRID.search(it)] == [], path.name


def test_lock_file_pins_by_hash_and_names_no_registry() -> None:
    text = (STATIC / "package-lock.json").read_text(encoding="utf-8")
    lock = json.loads(text)
    assert lock["lockfileVersion"] == 3
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
