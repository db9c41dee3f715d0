"""The upload page's state and words, its parts and retries, without a browser."""

from pathlib import Path

import pytest
from front_end import install_tools, run_node


@pytest.mark.parametrize("name", ["upload_state", "upload_transfer"])
def test_upload_page_keeps_its_promises_without_a_browser(name: str) -> None:
    install_tools()
    run_node("--test", str(Path(__file__).with_name(f"{name}.test.mjs")))
