"""How `portal doctor --deep` prints what a comparison found."""

from typing import Any

import click

from portal.maintenance.consistency.findings import Kind, Report, Tally

TITLES = {
    Kind.SOURCE_MISSING: "videos whose uploaded file is gone",
    Kind.SOURCE_CHANGED: "videos whose uploaded file is another one",
    Kind.RENDITION_INCOMPLETE: "renditions with missing files",
    Kind.MASTER_MISSING: "ready videos without a master playlist",
    Kind.MASTER_OUTDATED: "master playlists that don't name what is there",
    Kind.POSTER_MISSING: "missing posters",
    Kind.STORYBOARD_MISSING: "incomplete storyboards",
    Kind.WORK_ABANDONED: "unfinished videos, posters and removals that nobody works on",
    Kind.JOB_STUCK: "running jobs whose worker is dead",
    Kind.JOB_WITHOUT_VIDEO: "jobs of videos that don't exist",
    Kind.UPLOAD_ABANDONED: "uploads that nobody goes on with",
    Kind.MULTIPART_STALE: "unfinished uploads in parts that nobody knows",
    Kind.OBJECT_UNUSED: "objects that nothing refers to",
}


def document(report: Report) -> dict[str, Any]:
    """What was found, for programs."""
    differences = {
        kind.value: {"count": it.count, "left": it.left, "examples": it.examples}
        for kind, it in report.tallies.items()
    }
    return {"differences": differences, "left": report.left}


def print_findings(report: Report) -> None:
    """Print a paragraph for each kind of difference."""
    for kind in Kind:
        if kind in report.tallies:
            _print_kind(kind, report.tallies[kind], fix=report.fix)
    if not report.tallies:
        click.echo(f"{click.style('ok', fg='green')}    Database and storage agree")
    elif report.fix:
        total = sum(tally.count for tally in report.tallies.values())
        click.echo(f"{total - report.left} of {total} differences repaired.")
    else:
        click.echo("`portal doctor --deep --fix` repairs what can be repaired.")


def _print_kind(kind: Kind, tally: Tally, *, fix: bool) -> None:
    is_repaired = fix and not tally.left
    mark = click.style("fixed", fg="green") if is_repaired else click.style("DIFF", fg="red")
    click.echo(f"{mark}  {tally.count} {TITLES[kind]}")
    for example in tally.examples:
        click.echo(f"      {example}")
    if tally.count > len(tally.examples):
        click.echo(f"      and {tally.count - len(tally.examples):,} more")
