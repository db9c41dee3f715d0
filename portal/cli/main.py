"""The `portal` command. The module of a command is loaded only to run it."""

from importlib import import_module

import click

from portal import __version__

# The module of each command, and what is said of it: the list is printed without loading one.
COMMANDS = {
    "accounts": ("accounts", "Add, change and remove the accounts of a portal."),
    "audit": ("administration", "List who did what, from where and when."),
    "doctor": ("doctor", "Test every part of the portal and print how to fix what fails."),
    "keys": ("administration", "List and replace the keys that sign playback addresses."),
    "migrate": ("serving", "Bring the database to the newest version."),
    "publish": (
        "publish",
        "Upload FILE to a portal, wait for it, and print its playback address.",
    ),
    "queue": (
        "videos",
        "Show the jobs that wait, run and failed, the workers, and what is stalled.",
    ),
    "tokens": ("accounts", "List, make and revoke API tokens."),
    "up": ("serving", "Run everything on this machine: database, storage, web and one worker."),
    "videos": ("videos", "List, show, retry and delete videos."),
    "web": ("serving", "Serve the pages, the JSON API and the playlists."),
    "worker": ("serving", "Transcode videos from the queue until stopped."),
}


class LazyGroup(click.Group):
    """A group whose command `name` is the object of that name in its module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands' names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"portal.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, as click writes it."""
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
    """A self-hosted video publishing portal."""
