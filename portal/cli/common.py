"""What the commands for operators share: settings, errors in one line, tables, JSON."""

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

# Of rows that are printed.
MAX_LIMIT = 10_000
UNITS_S = ((86_400, "d"), (3600, "h"), (60, "min"))

data_dir_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Use the running `portal up` of this folder instead of the environment's settings.",
)
json_option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)


def read_config(data_dir: Path | None = None) -> Config:
    """The settings, from a data folder or the environment; all faults are told at once."""
    if data_dir is not None:
        os.environ.update(load_environment(data_dir))
    try:
        return Config.from_env()
    except ConfigError as exc:
        raise click.ClickException(str(exc)) from exc


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end; the errors that any command may meet are told in one line."""
    try:
        return asyncio.run(work)
    except (psycopg.OperationalError, QueueUnavailable) as exc:
        raise click.ClickException(f"The database cannot be used: {exc}") from exc
    except OperationalError as exc:  # Tortoise's name for a query the schema does not bear
        raise click.ClickException(
            f"The database does not fit: {exc}\nRun `portal migrate` with the same settings."
        ) from exc
    except InvalidRequest as exc:
        faults = " ".join(fault.message for fault in exc.errors)
        raise click.ClickException(faults) from exc
    except PortalError as exc:
        raise click.ClickException(exc.detail) from exc


def ask(
    data_dir: Path | None, work: Callable[..., Coroutine[Any, Any, Result]], **given: Any
) -> Result:
    """Run a command's work on the open database, without the libraries' own warnings.

    Work that needs the settings has them from `click.pass_obj`.
    """
    quiet()
    config = read_config(data_dir)
    click.get_current_context().obj = config

    async def run_work() -> Result:
        async with open_database(config):
            return await work(**given)

    return run(run_work())


def with_database(work: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a command of a coroutine function that works on the database (see `ask`).

    What asks its user has to do so outside of it: there Ctrl-C ends a question at once.
    """

    @functools.wraps(work)
    def command(data_dir: Path | None, **given: Any) -> None:
        ask(data_dir, work, **given)

    return data_dir_option(command)


def quiet() -> None:
    """Keep the libraries' own warnings back: the command says what there is to say."""
    logging.disable(logging.CRITICAL)


def print_json(document: Any) -> None:
    """Print a document; times and ids as text."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_list(
    name: str, records: Sequence[Row], rows: Iterable[Row], *, as_json: bool, empty: str = "None."
) -> None:
    """Print records: as JSON under their name, or as a table with a row for each."""
    if as_json:
        print_json({name: records})
    else:
        print_table(list(rows), empty=empty)


def print_table(rows: Sequence[Row], *, empty: str = "None.") -> None:
    """Print columns as wide as what is in them, under their names; or what to say of no rows."""
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
    """A value as one line of text without control characters, whoever wrote it."""
    if value is None or isinstance(value, datetime):
        return age(value)
    return " ".join(shown(str(value)).split())


def age(moment: datetime | None) -> str:
    """How long ago, or how far ahead, in the largest unit that fits: "3 min", "in 12 s"."""
    if moment is None:
        return "-"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    unit_s, name = next((it for it in UNITS_S if abs(seconds) >= 2 * it[0]), (1, "s"))
    text = f"{abs(seconds) / unit_s:.0f} {name}"
    return text if seconds >= 0 else f"in {text}"
