"""The `portal` command, which imports the module of a command only to run it."""

from importlib import import_module

import click

from portal import __version__

# Module and summary of each command: `portal --help` imports none of the modules.
COMMANDS = {
    "accounts": ("accounts", "Add, change and remove accounts."),
    "audit": ("administration", "Show the audit log, newest entries first."),
    "doctor": ("doctor", "Test every part of the portal and print how to fix what fails."),
    "keys": ("administration", "List and replace the keys that sign playback URLs."),
    "migrate": ("serving", "Apply database migrations."),
    "publish": ("publish", "Publish a video file and print its playback URL."),
    "queue": ("videos", "Show the job queue and its workers."),
    "tokens": ("accounts", "List, create and revoke API tokens."),
    "up": ("serving", "Run a complete portal on this machine."),
    "videos": ("videos", "List, show, retry and delete videos."),
    "web": ("serving", "Run the web server."),
    "worker": ("serving", "Run a worker that transcodes videos."),
}


class LazyGroup(click.Group):
    """Group of commands that are each imported from their module on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"portal.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from `COMMANDS`."""
        width = formatter.width - 6 - max(map(len, COMMANDS))
        rows = [
            (name, click.Command(name, help=summary).get_short_help_str(width))
            for name, (_, summary) in COMMANDS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="portal")
def main() -> None:
    """Run and manage a self-hosted video publishing portal."""
