"""What a comparison found, counted by kind; memory does not depend on how much that is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import click

MAX_EXAMPLES = 10

# Repairs what was found; answers why it can't be, or an empty text.
Repair = Callable[[], Awaitable[str]]


class Kind(StrEnum):
    """What can differ, in the order in which it is printed."""

    SOURCE_MISSING = "source_missing"
    SOURCE_CHANGED = "source_changed"
    RENDITION_INCOMPLETE = "rendition_incomplete"
    MASTER_MISSING = "master_missing"
    MASTER_OUTDATED = "master_outdated"
    POSTER_MISSING = "poster_missing"
    STORYBOARD_MISSING = "storyboard_missing"
    WORK_ABANDONED = "work_abandoned"
    JOB_STUCK = "job_stuck"
    JOB_WITHOUT_VIDEO = "job_without_video"
    UPLOAD_ABANDONED = "upload_abandoned"
    MULTIPART_STALE = "multipart_stale"
    OBJECT_UNUSED = "object_unused"


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


@dataclass(slots=True)
class Tally:
    """How many differences of a kind there are; `left` of them are not repaired."""

    count: int = 0
    left: int = 0
    examples: list[str] = field(default_factory=list)


class Report:
    """Takes what is found, and has it repaired on the spot if that is wanted."""

    def __init__(self, *, fix: bool) -> None:
        self._fix = fix
        self._tallies: dict[Kind, Tally] = {}
        self.left = 0

    async def add(self, kind: Kind, subject: str, repair: Repair | None = None) -> None:
        """Count a difference; one without a repair can't be repaired."""
        tally = self._tallies.setdefault(kind, Tally())
        tally.count += 1
        what = subject
        is_left = True
        if self._fix:
            why_not = await repair() if repair else "can't be repaired"
            is_left = bool(why_not)
            what += f": {why_not or 'repaired'}"
        tally.left += is_left
        self.left += is_left
        if len(tally.examples) < MAX_EXAMPLES:
            tally.examples.append(what)

    def print(self) -> None:
        """Print a paragraph for each kind."""
        for kind in Kind:
            if kind in self._tallies:
                self._print_kind(kind, self._tallies[kind])
        if not self._tallies:
            click.echo(f"{click.style('ok', fg='green')}    Database and storage agree")
        elif self._fix:
            total = sum(tally.count for tally in self._tallies.values())
            click.echo(f"{total - self.left} of {total} differences repaired.")
        else:
            click.echo("`portal doctor --deep --fix` repairs what can be repaired.")

    def _print_kind(self, kind: Kind, tally: Tally) -> None:
        is_repaired = self._fix and not tally.left
        mark = click.style("fixed", fg="green") if is_repaired else click.style("DIFF", fg="red")
        click.echo(f"{mark}  {tally.count} {TITLES[kind]}")
        for example in tally.examples:
            click.echo(f"      {example}")
        if tally.count > len(tally.examples):
            click.echo(f"      and {tally.count - len(tally.examples):,} more")

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        differences = {
            kind.value: {"count": it.count, "left": it.left, "examples": it.examples}
            for kind, it in self._tallies.items()
        }
        return {"differences": differences, "left": self.left}
