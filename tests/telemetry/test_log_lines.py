"""A logged value can't forge another line of the log, in either format."""

import json
import logging
import re

import pytest
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st
from test_config import settings

from portal.telemetry.logs import configure_logging, visible

FORGED = "2026-01-01 00:00:00,000 ERROR   portal: forged"
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +\S+: ")


@pytest.fixture(params=["text", "json"])
def log_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("text", [*ALL, f"a\n{FORGED}", f"a\r{FORGED}", f"a\u2028{FORGED}"])
def test_a_record_is_one_line(
    capsys: pytest.CaptureFixture[str], log_format: str, text: str
) -> None:
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    try:
        configure_logging(settings(LOG_FORMAT=log_format))
        logging.getLogger("portal.test").warning("said %s", text, extra={"path": text})
        try:
            raise ValueError(text)
        except ValueError:
            logging.getLogger("portal.test").exception("failed")
    finally:
        root.handlers = handlers
        root.level = level
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    if log_format == "json":
        assert [json.loads(line)["levelname"] for line in lines] == ["WARNING", "ERROR"]
    else:
        assert len([line for line in lines if RECORD.match(line)]) == 2
        assert all(line.startswith("    ") for line in lines[2:])


@given(st.text())
def test_visible_text_is_printable(text: str) -> None:
    assert visible(text).isprintable()
