"""`portal doctor`: tries every part, or compares database and storage."""

import asyncio
import sys
from pathlib import Path

import click

from portal.cli.checks import examine, examine_deeply
from portal.cli.common import data_dir_option, print_json, quiet, read_config, run
from portal.cli.findings import document, print_findings
from portal.maintenance.consistency.merging import OutOfOrder


@click.command()
@click.option("--deep", is_flag=True, help="Compare database and storage instead, both ways.")
@click.option("--fix", is_flag=True, help="With --deep: repair what can be repaired.")
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
        sys.exit(0 if asyncio.run(examine(config)) else 1)
    try:
        report = run(
            examine_deeply(config, fix=fix, accepts_sources=accept_sources, quietly=as_json)
        )
    except OutOfOrder as exc:
        raise click.ClickException(f"Storage lists keys out of order: {exc}") from exc
    if report is None:
        sys.exit(1)
    if as_json:
        print_json(document(report))
    else:
        print_findings(report)
    sys.exit(1 if report.left else 0)
