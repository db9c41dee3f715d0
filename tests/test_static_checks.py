"""Python, scripts, styles and templates pass their checkers."""

import sys
from collections import Counter
from pathlib import Path

from front_end import STATIC, install_tools, run, run_node

ROOT = STATIC.parent


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
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for inline in ("style=", "<style", "<script>", " hx-on"):
            assert inline not in text, path


def test_no_two_test_files_share_a_name() -> None:
    # Without packages pytest imports them as modules of their bare names, and one would hide the
    # other.
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py"))
    shared = {name for name, count in names.items() if count > 1}
    assert shared <= {"conftest.py", "__init__.py"}
