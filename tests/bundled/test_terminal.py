"""What `portal up` shows in its terminal."""

import logging
import os
import time
from pathlib import Path

import pytest

from portal.bundled.terminal import Terminal, open_terminal


def test_a_terminal_that_is_held_never_makes_the_portal_wait() -> None:
    reader, writer = os.pipe()
    terminal = Terminal(writer)
    try:
        began = time.monotonic()
        for _ in range(3_000):
            terminal.write("x" * 100)
        assert time.monotonic() - began < 30  # whoever waited would do so for ever
    finally:
        os.close(reader)  # lets the thread go
        terminal.close()
        os.close(writer)


def test_what_is_logged_is_shown_and_kept_in_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "portal.log"
    with open_terminal(log):
        logging.getLogger("portal.processes.supervisor").warning("worker died")

    assert capfd.readouterr().out == "portal  | worker died\n"
    assert log.read_text().endswith("worker died\n")
