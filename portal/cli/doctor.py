"""`portal doctor`: test every part of the portal, or compare database and storage."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import click
from psycopg.errors import DiskFull

from portal.cli import checks
from portal.cli.common import data_dir_option, print_json, quiet, read_config, run
from portal.config import Config
from portal.database.connection import open_database
from portal.maintenance.consistency import Report, compare
from portal.maintenance.video_files import Difference
from portal.storage.bucket import open_storage

CHECK_TIMEOUT_S = 20


@click.command()
@click.option("--deep", is_flag=True, help="Compare the database with storage instead.")
@click.option(
    "--fix", is_flag=True, help="With --deep: enqueue the jobs that make missing files again."
)
@click.option("--json", "as_json", is_flag=True, help="With --deep: print JSON.")
@data_dir_option
def doctor(deep: bool, fix: bool, as_json: bool, data_dir: Path | None) -> None:
    """Test every part of the portal and print how to fix what fails.

    With --deep, report missing, changed and unused files in storage. Exits with 1 if a test fails
    or a difference is left.
    """
    if not deep and (fix or as_json):
        raise click.UsageError("--fix and --json require --deep.")
    quiet()
    config = read_config(data_dir)
    if data_dir is not None:
        # The disk of the database and the files.
        config = replace(config, work_dir=data_dir)
    if not deep:
        sys.exit(0 if asyncio.run(_examine(config)) else 1)
    report = run(_examine_deeply(config, fix=fix, quietly=as_json))
    if report is None:
        sys.exit(1)
    if as_json:
        differences = {kind.value: asdict(tally) for kind, tally in report.counts.items()}
        print_json({"differences": differences, "left": report.left})
    else:
        _print_report(report)
    sys.exit(1 if report.left else 0)


def _print_report(report: Report) -> None:
    """Print a paragraph for each kind of difference, with its remedy if any are left."""
    if not report.counts:
        click.echo(f"{click.style('ok', fg='green')}    Database and storage agree")
    for kind in Difference:
        if (tally := report.counts.get(kind)) is None:
            continue
        mark = click.style("DIFF", fg="red") if tally.left else click.style("job ", fg="green")
        click.echo(f"{mark}  {tally.count} {kind.label}")
        for example in tally.examples:
            click.echo(f"      {example}")
        if tally.count > len(tally.examples):
            click.echo(f"      and {tally.count - len(tally.examples):,} more")
        if tally.left:
            click.echo(f"      {kind.remedy}")


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[checks.Parts]:
    async with open_database(config), open_storage(config) as storage:
        yield checks.Parts(config, storage)


async def _examine(config: Config) -> bool:
    """Run all checks, print a line for each, and return whether all passed."""
    selected = list(checks.CHECKS)
    if config.oidc_issuer:
        selected.append(checks.SINGLE_SIGN_ON)
    failed: set[str] = set()
    async with _opened(config) as parts:
        for check in selected:
            if check.needs in failed:
                click.echo(f"{click.style('skip', fg='yellow')}  {check.name}")
                failed.add(check.name)
            elif not await _passes(check, parts):
                failed.add(check.name)
    return not failed


async def _examine_deeply(config: Config, *, fix: bool, quietly: bool) -> Report | None:
    """Compare database and storage; print the fault and return None if one is unavailable."""
    async with _opened(config) as parts:
        for check in checks.CHECKS:
            is_needed = check.run in (checks.check_database, checks.check_bucket)
            if is_needed and not await _passes(check, parts, quietly):
                return None
        return await compare(config, storage=parts.storage, fix=fix)


async def _passes(check: checks.Check, parts: checks.Parts, quietly: bool = False) -> bool:
    """Run a check and print its outcome; `quietly` prints failures only."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check.run(parts)
    except checks.Concern as concern:
        # The operator may intend this.
        _print_fault("WARN", "yellow", check.name, str(concern), concern.fix)
        return True
    except checks.Trouble as trouble:
        problem = str(trouble)
        fix = trouble.fix or check.fix
    except TimeoutError:
        problem = f"no response within {CHECK_TIMEOUT_S} s"
        fix = check.fix
    except Exception as exc:  # noqa: BLE001  # any error means that the part does not work
        cause = exc.__cause__ or exc
        problem = checks.first_line(cause)
        fix = checks.DISK if isinstance(cause, DiskFull) else check.fix
    else:
        if not quietly:
            click.echo(f"{click.style('ok', fg='green')}    {check.name}")
        return True
    _print_fault("FAIL", "red", check.name, problem, fix)
    return False


def _print_fault(mark: str, colour: str, name: str, problem: str, fix: str) -> None:
    click.echo(f"{click.style(mark, fg=colour)}  {name}: {problem}")
    click.echo("\n".join(f"      {line}" for line in fix.splitlines()))
