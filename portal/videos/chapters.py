"""Chapters of a video: those that someone has saved, else the times of its description, else those
of its file.

They begin with the film and follow each other. Text is stored as submitted.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.errors import ChaptersChanged
from portal.events.log import AuditAction, note
from portal.text import is_blank, with_line_feeds
from portal.transcoding.packaging.webvtt import Cue, escaped, webvtt
from portal.videos.reading import check_version, locked_video

MAX_CHAPTERS = 500
MAX_TITLE_LENGTH = 200
# Fewer times in a description mean something else.
LEAST_TIMES = 3
COLUMNS = """
SELECT saved, of_file, description, duration_s
FROM videos LEFT JOIN chapters ON video_id = videos.id WHERE videos.id = %s
"""
SAVE = """
INSERT INTO chapters (video_id, saved) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET saved = excluded.saved
"""
# A line that begins with a time, such as "1:02:03 The harbour" or "[2:03] The harbour".
TIME = re.compile(
    r"^[^\w\n]*?(?:(\d{1,2}):)?(\d{1,2}):([0-5]\d)(?![\d:])[\])]?\s*[-–—:|.]*\s*(\S.*)$",  # noqa: RUF001
    re.MULTILINE,
)


class ChapterSource(StrEnum):
    """Where chapters come from."""

    SAVED = "saved"
    DESCRIPTION = "description"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of a video, up to the next one."""

    start_s: float
    title: str


@dataclass(frozen=True, slots=True)
class Chapters:
    """All of a video; there may be none."""

    chapters: tuple[Chapter, ...] = ()
    source: ChapterSource = ChapterSource.SAVED

    @property
    def version(self) -> str:
        """What tells them from any other."""
        text = json.dumps([asdict(it) for it in self.chapters])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def webvtt(self, duration_s: float | None) -> str:
        """As players want them, in a film of this length."""
        last_s = max([duration_s or 0.0, *(it.start_s + 1 for it in self.chapters[-1:])])
        ends_s = [*(it.start_s for it in self.chapters[1:]), last_s]
        return webvtt(
            Cue(start_s=it.start_s, end_s=end_s, text=escaped(it.title))
            for it, end_s in zip(self.chapters, ends_s, strict=False)
        )


def chapters_of(row: Row | None, *, description: str, duration_s: float | None) -> Chapters:
    """The chapters of a video, by its row of the table, if it has one."""
    saved, of_file = (row["saved"], row["of_file"]) if row else (None, None)
    if saved:
        return Chapters(_chapters(saved))
    if times := _times_of(description, duration_s):
        return Chapters(times, ChapterSource.DESCRIPTION)
    return Chapters(_chapters(of_file or ()), ChapterSource.FILE)


async def read_chapters(video_id: UUID) -> Chapters:
    """The chapters of a video as they are now."""
    [row] = await fetch_rows(COLUMNS, video_id)
    return chapters_of(row, description=row["description"], duration_s=row["duration_s"])


def chapters_fault(chapters: Sequence[Chapter]) -> str | None:
    """What is wrong with chapters, and the remedy."""
    if len(chapters) > MAX_CHAPTERS:
        return f"Give at most {MAX_CHAPTERS} chapters."
    if chapters and chapters[0].start_s != 0:
        return "Let the first chapter begin at 0."
    if any(one.start_s >= other.start_s for one, other in pairwise(chapters)):
        return "Let each chapter begin after the one before."
    if any(is_blank(it.title) or len(it.title) > MAX_TITLE_LENGTH for it in chapters):
        return f"Give each chapter a title of at most {MAX_TITLE_LENGTH} characters."
    return None


async def save_chapters(
    video_id: UUID, chapters: Sequence[Chapter], *, versions: Collection[str] | None
) -> Chapters:
    """Replace chapters of one of these versions; None replaces any version.

    An empty list removes the saved chapters. Raises `VideoNotFound`, or `ChaptersChanged` if
    another version is recorded that differs from the change.
    """
    async with transaction():
        await locked_video(video_id)
        present = await read_chapters(video_id)
        saved = Chapters(tuple(chapters))
        if saved == present:
            return present
        if saved.chapters != present.chapters:
            check_version(present.version, versions, ChaptersChanged)
        rows = json.dumps([asdict(it) for it in chapters]) if chapters else None
        await execute(SAVE, video_id, rows)
        await note(AuditAction.CHAPTERS_CHANGED, video_id)
        return await read_chapters(video_id)


def _chapters(rows: Iterable[dict[str, Any]]) -> tuple[Chapter, ...]:
    return tuple(Chapter(**row) for row in rows)


def _times_of(description: str, duration_s: float | None) -> tuple[Chapter, ...]:
    """The times of a description that has a list of them, else none."""
    found = []
    for hours, minutes, seconds, title in TIME.findall(with_line_feeds(description)):
        start_s = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
        found.append(Chapter(float(start_s), title.strip()[:MAX_TITLE_LENGTH]))
    is_list = len(found) >= LEAST_TIMES and chapters_fault(found) is None
    is_within = not duration_s or not found or found[-1].start_s < duration_s
    return tuple(found) if is_list and is_within else ()
