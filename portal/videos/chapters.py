"""Chapters of a video: saved ones, or else those of the description, or else those of the file.

The first chapter begins at 0, and each lasts until the next one. Text is stored as submitted.

Saved chapters and those of the file are stored in times of the whole film, and mapped to the film
that viewers get. What is saved for a cut film leaves the chapters of removed parts as they are. The
times of a description are text: they are those of the film that viewers get, cut or not.
"""

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.errors import ChaptersChanged
from portal.events.log import AuditAction, note
from portal.text import is_blank, with_line_feeds
from portal.transcoding.packaging.webvtt import Cue, escaped, webvtt
from portal.transcoding.planning.chapters import (
    Chapter,
    chapters_from,
    cut_chapters,
    whole_chapters,
)
from portal.transcoding.planning.kept import Kept
from portal.videos.reading import check_version, locked_video

MAX_CHAPTERS = 500
MAX_TITLE_LENGTH = 200
# Fewer times in a description are no list of chapters.
LEAST_TIMES = 3
COLUMNS = """
SELECT saved, of_file, description, duration_s, keep
FROM videos LEFT JOIN chapters ON video_id = videos.id WHERE videos.id = %s
"""
SAVE = """
INSERT INTO chapters (video_id, saved) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET saved = excluded.saved
"""
# A line that begins with a time, such as "1:02:03 The harbour" or "[2:03] The harbour". It takes no
# step back, so that thousands of spaces after a time are read once.
TIME = re.compile(
    r"^[^\w\n]*?(?:(\d{1,2}):)?(\d{1,2}):([0-5]\d)(?![\d:])[\])]?\s*+[-–—:|.]*+\s*+(\S.*)$",  # noqa: RUF001
    re.MULTILINE,
)


class ChapterSource(StrEnum):
    """Source of chapters."""

    SAVED = "saved"
    DESCRIPTION = "description"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Chapters:
    """All chapters of a video."""

    chapters: tuple[Chapter, ...] = ()
    source: ChapterSource = ChapterSource.SAVED

    @property
    def version(self) -> str:
        """Digest of the chapters."""
        text = json.dumps([asdict(chapter) for chapter in self.chapters])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def webvtt(self, duration_s: float | None) -> str:
        """Return the chapters as WebVTT. The last one ends with the video."""
        starts_s = [chapter.start_s for chapter in self.chapters]
        last_s = max(duration_s or 0.0, starts_s[-1] + 1) if starts_s else 0.0
        return webvtt(
            Cue(start_s=chapter.start_s, end_s=end_s, text=escaped(chapter.title))
            for chapter, end_s in zip(self.chapters, [*starts_s[1:], last_s], strict=False)
        )


def chapters_of(row: Row | None, video: Row) -> Chapters:
    """Return the chapters of a video from its row of the table, if it has one.

    `video` has the columns description, duration_s and keep.
    """
    saved, of_file = (row["saved"], row["of_file"]) if row else (None, None)
    if not saved and (times := _times_of(video["description"], video["duration_s"])):
        return Chapters(times, ChapterSource.DESCRIPTION)
    chapters = chapters_from(saved or of_file or ())
    if video["keep"] is not None:
        chapters = cut_chapters(chapters, Kept.of(video["keep"]))
    return Chapters(chapters, ChapterSource.SAVED if saved else ChapterSource.FILE)


async def read_chapters(video_id: UUID) -> Chapters:
    """Return the present chapters of a video."""
    [row] = await fetch_rows(COLUMNS, video_id)
    return chapters_of(row, row)


def chapters_fault(chapters: Sequence[Chapter]) -> str | None:
    """Return what is wrong with chapters, and the remedy; None if nothing is."""
    if len(chapters) > MAX_CHAPTERS:
        return f"Give at most {MAX_CHAPTERS} chapters."
    if chapters and chapters[0].start_s != 0:
        return "Let the first chapter begin at 0."
    if any(chapter.start_s >= following.start_s for chapter, following in pairwise(chapters)):
        return "Let each chapter begin after the one before."
    titles = [chapter.title for chapter in chapters]
    if any(is_blank(title) or len(title) > MAX_TITLE_LENGTH for title in titles):
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
        [row] = await fetch_rows(COLUMNS, video_id)
        present = chapters_of(row, row)
        saved = Chapters(tuple(chapters))
        if saved == present:
            return present
        if saved.chapters != present.chapters:
            check_version(present.version, versions, ChaptersChanged)
        whole = tuple(chapters)
        if row["keep"] is not None and whole:
            former = chapters_from(row["saved"] or row["of_file"] or ())
            whole = whole_chapters(whole, former, Kept.of(row["keep"]))
        rows = [asdict(chapter) for chapter in whole]
        await execute(SAVE, video_id, json.dumps(rows) if rows else None)
        await note(AuditAction.CHAPTERS_CHANGED, video_id)
        return await read_chapters(video_id)


def _times_of(description: str, duration_s: float | None) -> tuple[Chapter, ...]:
    """Return the chapters that a description lists; none if it has no such list."""
    chapters = []
    for hours, minutes, seconds, title in TIME.findall(with_line_feeds(description)):
        start_s = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
        chapters.append(Chapter(float(start_s), title.strip()[:MAX_TITLE_LENGTH]))
    is_list = len(chapters) >= LEAST_TIMES and chapters_fault(chapters) is None
    is_within = not duration_s or not chapters or chapters[-1].start_s < duration_s
    return tuple(chapters) if is_list and is_within else ()
