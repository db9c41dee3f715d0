"""Logic of the scripts, run by Node."""

from pathlib import Path

from front_end import install_tools, run_node


def test_scripts_without_a_browser() -> None:
    install_tools()
    run_node("--test", *map(str, sorted(Path(__file__).parent.glob("*.test.mjs"))))
