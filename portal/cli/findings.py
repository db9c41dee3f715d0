"""How `portal doctor --deep` prints what a comparison found."""

from typing import Any

import click

from portal.maintenance.consistency.findings import Difference, DifferenceCount, Report

TITLES = {
    Difference.SOURCE_MISSING: "videos whose uploaded file is gone",
    Difference.SOURCE_CHANGED: "videos whose uploaded file is another one",
    Difference.RENDITION_INCOMPLETE: "renditions with missing files",
    Difference.MASTER_MISSING: "ready videos without a master playlist",
    Difference.MASTER_OUTDATED: "master playlists that don't name what is there",
    Difference.POSTER_MISSING: "missing posters",
    Difference.STORYBOARD_MISSING: "incomplete storyboards",
    Difference.WORK_ABANDONED: "unfinished videos, posters and removals that nobody works on",
    Difference.JOB_STUCK: "running jobs whose worker is dead",
    Difference.JOB_WITHOUT_VIDEO: "jobs of videos that don't exist",
    Difference.UPLOAD_ABANDONED: "uploads that nobody goes on with",
    Difference.MULTIPART_STALE: "unfinished uploads in parts that nobody knows",
    Difference.OBJECT_UNUSED: "objects that nothing refers to",
}


def document(report: Report) -> dict[str, Any]:
    """What was found, for programs."""
    differences = {
        kind.value: {"count": it.count, "left": it.left, "examples": it.examples}
        for kind, it in report.counts.items()
    }
    return {"differences": differences, "left": report.left}


def print_findings(report: Report) -> None:
    """Print a paragraph for each kind of difference."""
    for kind in Difference:
        if kind in report.counts:
            _print_kind(kind, report.counts[kind], fix=report.fix)
    if not report.counts:
        click.echo(f"{click.style('ok', fg='green')}    Database and storage agree")
    elif report.fix:
        total = sum(each.count for each in report.counts.values())
        click.echo(f"{total - report.left} of {total} differences repaired.")
    else:
        click.echo("`portal doctor --deep --fix` repairs what can be repaired.")


def _print_kind(kind: Difference, found: DifferenceCount, *, fix: bool) -> None:
    is_repaired = fix and not found.left
    mark = click.style("fixed", fg="green") if is_repaired else click.style("DIFF", fg="red")
    click.echo(f"{mark}  {found.count} {TITLES[kind]}")
    for example in found.examples:
        click.echo(f"      {example}")
    if found.count > len(found.examples):
        click.echo(f"      and {found.count - len(found.examples):,} more")
