"""`portal doctor`: tries every part, or compares database and storage."""

import asyncio
import sys
from pathlib import Path

import click

from portal.cli.checks import examine, examine_deeply
from portal.cli.common import data_dir_option, print_json, quiet, read_config, run
from portal.maintenance.consistency import Report
from portal.maintenance.video_files import Difference

TITLES = {
    Difference.SOURCE_MISSING: "videos whose uploaded file is gone",
    Difference.SOURCE_CHANGED: "videos whose uploaded file is another one",
    Difference.RENDITION_INCOMPLETE: "renditions with missing files",
    Difference.MASTER_MISSING: "ready videos without a master playlist",
    Difference.MASTER_OUTDATED: "master playlists that don't name what is there",
    Difference.POSTER_MISSING: "missing posters",
    Difference.STORYBOARD_MISSING: "incomplete storyboards",
    Difference.MULTIPART_STALE: "unfinished uploads in parts that nobody knows",
    Difference.OBJECT_UNUSED: "objects that nothing refers to",
}


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
        sys.exit(0 if asyncio.run(examine(config)) else 1)
    report = run(examine_deeply(config, fix=fix, accepts_sources=accept_sources, quietly=as_json))
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
        click.echo(f"{mark}  {found.count} {TITLES[kind]}")
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
