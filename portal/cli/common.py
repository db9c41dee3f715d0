"""Shared parts of the commands for operators: settings, one-line errors, tables, JSON."""

import asyncio
import functools
import json
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import psycopg
from tortoise.exceptions import OperationalError

from portal.bundled.data_folder import load_environment
from portal.config import Config, ConfigError
from portal.database.connection import Row, open_database
from portal.errors import InvalidRequest, PortalError
from portal.queue.app import QueueUnavailable
from portal.text import shown

Result = TypeVar("Result")

# Most rows that a command prints.
MAX_LIMIT = 10_000
UNITS_S = ((86_400, "d"), (3600, "h"), (60, "min"))

data_dir_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Connect to the `portal up` that runs on this data folder, instead of using environment "
    "variables.",
)
json_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON."
)


def read_config(data_dir: Path | None = None) -> Config:
    """Read the settings from a data folder or the environment; report all faults at once."""
    if data_dir is not None:
        os.environ.update(load_environment(data_dir))
    try:
        return Config.from_env()
    except ConfigError as exc:
        raise click.ClickException(str(exc)) from exc


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, and turn the errors of any command into one-line messages."""
    try:
        return asyncio.run(work)
    except (psycopg.OperationalError, QueueUnavailable) as exc:
        raise click.ClickException(f"Could not connect to the database: {exc}") from exc
    except OperationalError as exc:  # Tortoise raises it for missing tables and columns
        raise click.ClickException(
            f"The database schema is outdated: {exc}\nRun `portal migrate` with the same settings."
        ) from exc
    except InvalidRequest as exc:
        messages = " ".join(fault.message for fault in exc.errors)
        raise click.ClickException(messages) from exc
    except PortalError as exc:
        raise click.ClickException(exc.detail) from exc


def ask(
    data_dir: Path | None, work: Callable[..., Coroutine[Any, Any, Result]], **arguments: Any
) -> Result:
    """Run a coroutine function with an open database, without the log messages of libraries.

    It can receive the settings by `click.pass_obj`.
    """
    quiet()
    config = read_config(data_dir)
    click.get_current_context().obj = config

    async def run_work() -> Result:
        async with open_database(config):
            return await work(**arguments)

    return run(run_work())


def with_database(work: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Turn a coroutine function that uses the database into a command (see `ask`).

    A command with a prompt calls `ask` itself, because Ctrl-C doesn't end a prompt in a loop.
    """

    @functools.wraps(work)
    def command(data_dir: Path | None, **arguments: Any) -> None:
        ask(data_dir, work, **arguments)

    return data_dir_option(command)


def quiet() -> None:
    """Suppress the log messages of libraries: the command prints its errors itself."""
    logging.disable(logging.CRITICAL)


def print_json(document: Any) -> None:
    """Print a JSON document, with times and ids as strings."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_list(
    name: str, records: Sequence[Row], rows: Iterable[Row], *, as_json: bool, empty: str = "None."
) -> None:
    """Print records as JSON below their name, or their rows as a table."""
    if as_json:
        print_json({name: records})
    else:
        print_table(list(rows), empty=empty)


def print_table(rows: Sequence[Row], *, empty: str = "None.") -> None:
    """Print rows as a table with a header; print `empty` if there are none."""
    if not rows:
        click.echo(empty)
        return
    lines = [[one_line(cell) for cell in row.values()] for row in rows]
    lines.insert(0, [name.upper() for name in rows[0]])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(click.style(text.rstrip(), bold=number == 0))


def one_line(value: object) -> str:
    """Return a value as one line of text, without control characters."""
    if value is None or isinstance(value, datetime):
        return age(value)
    return " ".join(shown(str(value)).split())


def age(moment: datetime | None) -> str:
    """Return the time since a moment, or until it, in a fitting unit: "3 min", "in 12 s"."""
    if moment is None:
        return "-"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    unit_s, name = next((unit for unit in UNITS_S if abs(seconds) >= 2 * unit[0]), (1, "s"))
    text = f"{abs(seconds) / unit_s:.0f} {name}"
    return text if seconds >= 0 else f"in {text}"
