"""What a comparison found, counted by kind; memory does not depend on how much that is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

MAX_EXAMPLES = 10

# Repairs what was found; answers why it can't be, if so.
Repair = Callable[[], Awaitable[str | None]]


class Difference(StrEnum):
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


@dataclass(slots=True)
class DifferenceCount:
    """How many differences of a kind there are; `left` of them are not repaired."""

    count: int = 0
    left: int = 0
    examples: list[str] = field(default_factory=list)


class Report:
    """Takes what is found, and has it repaired on the spot if that is wanted."""

    def __init__(self, *, fix: bool) -> None:
        self.fix = fix
        self.counts: dict[Difference, DifferenceCount] = {}
        self.left = 0

    async def add(self, kind: Difference, subject: str, repair: Repair | None = None) -> None:
        """Count a difference; one without a repair can't be repaired."""
        found = self.counts.setdefault(kind, DifferenceCount())
        found.count += 1
        what, is_left = subject, True
        if self.fix:
            why_not = await repair() if repair else "can't be repaired"
            is_left = bool(why_not)
            what += f": {why_not or 'repaired'}"
        found.left += is_left
        self.left += is_left
        if len(found.examples) < MAX_EXAMPLES:
            found.examples.append(what)
