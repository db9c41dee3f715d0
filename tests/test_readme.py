"""README's promises that a machine can check."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from portal.config import Config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_ci_runs_exactly_the_documented_test_command() -> None:
    [command] = re.findall(r"^python3 -m venv .*pytest$", README, flags=re.MULTILINE)
    assert command == (ROOT / ".ci/run").read_text().splitlines()[-1]


def test_every_setting_is_in_the_configuration_table() -> None:
    documented = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", README, flags=re.MULTILINE))
    settings = {field.name.upper() for field in fields(Config)}
    assert settings <= documented


def test_failure_codes_are_documented() -> None:
    from portal.processing.sources import SourceChanged
    from portal.transcoding.errors import RejectCode
    from portal.videos.publishing import TRANSCODE_FAILED

    for code in (*RejectCode, SourceChanged.code, TRANSCODE_FAILED):
        assert f"`{code}`" in README


def test_whatever_is_survived_is_shown_by_tests_that_exist() -> None:
    section = README.partition("\n## What it survives\n")[2].partition("\n## ")[0]
    shown_by = re.findall(r"^\| (?!---|what ).+ \| ([^|]+) \|$", section, flags=re.MULTILINE)
    assert len(shown_by) > 80
    for cell in shown_by:
        files = re.findall(r"\]\((tests/[^)]+\.py)\)", cell)
        assert files, cell
        assert all((ROOT / file).is_file() for file in files), cell
