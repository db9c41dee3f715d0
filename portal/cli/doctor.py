"""`portal doctor`: tries every part, or compares database and storage."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from portal.cli import checks
from portal.cli.common import data_dir_option, print_json, quiet, read_config, run
from portal.config import Config
from portal.database.connection import open_database
from portal.maintenance.consistency import Report, compare
from portal.maintenance.video_files import Difference
from portal.queue.app import open_queue
from portal.storage.bucket import open_storage

CHECK_TIMEOUT_S = 20


@click.command()
@click.option("--deep", is_flag=True, help="Compare database and storage instead, both ways.")
@click.option(
    "--fix", is_flag=True, help="With --deep: make again what is missing, remove what is unused."
)
@click.option(
    "--accept-sources",
    is_flag=True,
    help="With --fix, after a restore: take files of the right size for the uploaded ones.",
)
@click.option("--json", "as_json", is_flag=True, help="With --deep: print JSON.")
@data_dir_option
def doctor(
    deep: bool, fix: bool, accept_sources: bool, as_json: bool, data_dir: Path | None
) -> None:
    """Try every part for real and print the fix for what does not work."""
    if not deep and (fix or as_json or accept_sources):
        raise click.UsageError("--fix, --accept-sources and --json go with --deep.")
    # The libraries' own warnings would say everything twice.
    quiet()
    config = read_config(data_dir)
    if not deep:
        sys.exit(0 if asyncio.run(_examine(config)) else 1)
    report = run(_examine_deeply(config, fix=fix, accepts_sources=accept_sources, quietly=as_json))
    if report is None:
        sys.exit(1)
    if as_json:
        differences = {
            kind.value: {"count": it.count, "left": it.left, "examples": it.examples}
            for kind, it in report.counts.items()
        }
        print_json({"differences": differences, "left": report.left})
    else:
        _print_report(report)
    sys.exit(1 if report.left else 0)


def _print_report(report: Report) -> None:
    """Print a paragraph for each kind of difference."""
    for kind in Difference:
        if (found := report.counts.get(kind)) is None:
            continue
        is_repaired = report.fix and not found.left
        mark = click.style("fixed", fg="green") if is_repaired else click.style("DIFF", fg="red")
        click.echo(f"{mark}  {found.count} {kind.label}")
        for example in found.examples:
            click.echo(f"      {example}")
        if found.count > len(found.examples):
            click.echo(f"      and {found.count - len(found.examples):,} more")
    if not report.counts:
        click.echo(f"{click.style('ok', fg='green')}    Database and storage agree")
    elif report.fix:
        total = sum(each.count for each in report.counts.values())
        click.echo(f"{total - report.left} of {total} differences repaired.")
    else:
        click.echo("`portal doctor --deep --fix` repairs what can be repaired.")


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[checks.Parts]:
    async with open_database(config), open_storage(config) as storage:
        yield checks.Parts(config, storage, open_queue(config.database_url))


async def _examine(config: Config) -> bool:
    """Run all checks, print a line for each, and return whether all passed."""
    failed: set[str] = set()
    async with _opened(config) as parts:
        for check in (*checks.CHECKS, *([checks.SINGLE_SIGN_ON] if config.oidc_issuer else [])):
            if check.needs in failed:
                click.echo(f"{click.style('skip', fg='yellow')}  {check.name}")
                failed.add(check.name)
            elif not await _passes(check, parts):
                failed.add(check.name)
    return not failed


async def _examine_deeply(
    config: Config, *, fix: bool, accepts_sources: bool, quietly: bool
) -> Report | None:
    """Compare database and storage; None when one of them can't be used, which is printed."""
    async with _opened(config) as parts:
        for check in checks.CHECKS:
            is_needed = check.run in (checks.check_database, checks.check_bucket)
            if is_needed and not await _passes(check, parts, quietly):
                return None
        async with parts.queue.open_async():
            return await compare(
                config,
                storage=parts.storage,
                queue=parts.queue,
                fix=fix,
                accepts_sources=accepts_sources,
            )


async def _passes(check: checks.Check, parts: checks.Parts, quietly: bool = False) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check.run(parts)
    except checks.Concern as concern:
        # The portal works; its operator decides whether this is meant to be so.
        _print_fault("WARN", "yellow", check.name, str(concern), concern.fix)
        return True
    except checks.Trouble as trouble:
        what, fix = str(trouble), trouble.fix or check.fix
    except TimeoutError:
        what, fix = f"no answer within {CHECK_TIMEOUT_S} s", "Check the address."
    except Exception as exc:  # noqa: BLE001  # whatever it is, the part does not work
        what, fix = checks.first_line(exc.__cause__ or exc), check.fix
    else:
        if not quietly:
            click.echo(f"{click.style('ok', fg='green')}    {check.name}")
        return True
    _print_fault("FAIL", "red", check.name, what, fix)
    return False


def _print_fault(mark: str, colour: str, name: str, what: str, fix: str) -> None:
    click.echo(f"{click.style(mark, fg=colour)}  {name}: {what}")
    click.echo("\n".join(f"      {line}" for line in fix.splitlines()))
