"""The list of commands, and the imports of each command."""

import click
import pytest
from command_line import loaded_by

from portal.cli.main import COMMANDS, main

LISTED = """
from portal.cli.main import main
main(['--help'], standalone_mode=False)
"""

WEB = "import portal.cli.serving, portal.cli.common, portal.web.serve"


def test_help_imports_no_command() -> None:
    loaded = loaded_by(LISTED)
    assert "portal.cli.main" in loaded
    assert not loaded & {"asyncio", "tortoise", "quart", "portal.config"}


def test_web_imports_no_worker() -> None:
    assert not any(name.startswith("portal.worker") for name in loaded_by(WEB))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_the_summary_of_the_list(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert (command.name, (command.help or "").splitlines()[0]) == (name, COMMANDS[name][1])
