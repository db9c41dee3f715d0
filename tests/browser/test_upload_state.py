"""The upload page's state, figures and retries, without a browser."""

from pathlib import Path

from front_end import install_tools, run_node

TESTS = Path(__file__).with_name("upload_state.test.mjs")


def test_upload_page_keeps_its_promises_without_a_browser() -> None:
    install_tools()
    run_node("--test", str(TESTS))
