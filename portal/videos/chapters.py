"""Chapters of a video: saved ones, or else those of the description, or else those of the file.

The first chapter begins at 0, and each lasts until the next one. Text is stored as submitted.

Chapters are stored in times of the whole film, and mapped to the film that viewers get
(`described_times` has those of a description). Chapters that begin after its end are not listed.
What is saved leaves them as they are, and those of removed parts.
"""

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from math import inf
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.errors import ChaptersChanged
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message
from portal.text import is_blank, with_line_feeds
from portal.transcoding.packaging.webvtt import Cue, escaped, webvtt
from portal.transcoding.planning.chapters import (
    Chapter,
    chapters_from,
    cut_chapters,
    whole_chapters,
)
from portal.transcoding.planning.described_times import DescribedTimes
from portal.transcoding.planning.kept import ROUNDING_S, Kept
from portal.videos.reading import check_version, locked_video

MAX_CHAPTERS = 500
MAX_TITLE_LENGTH = 200
# Fewer times in a description are no list of chapters.
LEAST_TIMES = 3
COLUMNS = """
SELECT videos.id, saved, of_file, description, described_times, duration_s, keep
FROM videos LEFT JOIN chapters ON video_id = videos.id WHERE videos.id = ANY(%s)
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
    """Chapters of the film that viewers get; `late_count` more begin after its end."""

    chapters: tuple[Chapter, ...] = ()
    source: ChapterSource = ChapterSource.SAVED
    late_count: int = field(default=0, compare=False)

    @property
    def version(self) -> str:
        """Digest of the chapters."""
        text = json.dumps([asdict(chapter) for chapter in self.chapters])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def webvtt(self, duration_s: float | None) -> str:
        """Return the chapters as WebVTT. The last one ends with the video, at `duration_s`.

        It lasts one second if the duration is unknown, or less than a second after its start.
        """
        starts_s = [chapter.start_s for chapter in self.chapters]
        last_s = max(duration_s or 0.0, starts_s[-1] + 1) if starts_s else 0.0
        return webvtt(
            Cue(start_s=chapter.start_s, end_s=end_s, text=escaped(chapter.title))
            for chapter, end_s in zip(self.chapters, [*starts_s[1:], last_s], strict=False)
        )


def chapters_of(row: Row | None, video: Row) -> Chapters:
    """Return the chapters of a video from its row of the table, if it has one.

    `video` has the columns description, described_times, duration_s and keep.
    """
    saved, of_file = (row["saved"], row["of_file"]) if row else (None, None)
    source = ChapterSource.SAVED if saved else ChapterSource.FILE
    chapters = chapters_from(saved or of_file or ())
    if not saved and (described := _described_chapters(video)):
        chapters = described
        source = ChapterSource.DESCRIPTION
    if video["keep"] is not None:
        chapters = cut_chapters(chapters, Kept.of(video["keep"]))
    end_s = video["duration_s"] or inf
    in_film = tuple(chapter for chapter in chapters if chapter.start_s < end_s)
    return Chapters(in_film, source, len(chapters) - len(in_film))


async def read_chapters(video_id: UUID) -> Chapters:
    """Return the present chapters of a video."""
    return (await read_all_chapters([video_id]))[video_id]


async def read_all_chapters(video_ids: Sequence[UUID]) -> dict[UUID, Chapters]:
    """Return the present chapters of some videos, by video."""
    rows = await fetch_rows(COLUMNS, list(video_ids))
    return {row["id"]: chapters_of(row, row) for row in rows}


def chapters_fault(chapters: Sequence[Chapter]) -> str | None:
    """Return what is wrong with chapters, and the remedy; None if nothing is."""
    if len(chapters) > MAX_CHAPTERS:
        return Message("Give at most %(limit)s chapters.", limit=MAX_CHAPTERS)
    if chapters and chapters[0].start_s != 0:
        return Message("Let the first chapter begin at 0.")
    if any(chapter.start_s >= following.start_s for chapter, following in pairwise(chapters)):
        return Message("Let each chapter begin after the one before.")
    titles = [chapter.title for chapter in chapters]
    if any(is_blank(title) or len(title) > MAX_TITLE_LENGTH for title in titles):
        return Message(
            "Give each chapter a title of at most %(limit)s characters.", limit=MAX_TITLE_LENGTH
        )
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
        [row] = await fetch_rows(COLUMNS, [video_id])
        present = chapters_of(row, row)
        saved = Chapters(tuple(chapters))
        if saved == present:
            return present
        if saved.chapters != present.chapters:
            check_version(present.version, versions, ChaptersChanged)
        whole = tuple(chapters)
        former = chapters_from(row["saved"] or row["of_file"] or ())
        if whole and row["keep"] is not None:
            whole = whole_chapters(whole, former, Kept.of(row["keep"]))
        elif whole:
            end_s = max(row["duration_s"] or inf, whole[-1].start_s + ROUNDING_S)
            whole += tuple(chapter for chapter in former if chapter.start_s >= end_s)
        rows = [asdict(chapter) for chapter in whole]
        await execute(SAVE, video_id, json.dumps(rows) if rows else None)
        await record_action(AuditAction.CHAPTERS_CHANGED, video_id)
        return await read_chapters(video_id)


def _described_chapters(video: Row) -> tuple[Chapter, ...]:
    """Return the chapters that a description lists, in the whole film; none without a list."""
    times = DescribedTimes.of(video["described_times"], None, None)
    lines = [
        ((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds), title)
        for hours, minutes, seconds, title in TIME.findall(with_line_feeds(video["description"]))
    ]
    if len(lines) < LEAST_TIMES or lines[0][0] != 0:
        return ()
    chapters = [
        Chapter(float(start_s), title.strip()[:MAX_TITLE_LENGTH])
        for written_s, title in lines
        if (start_s := times.whole_s(written_s)) is not None
    ]
    # 0:00 may be the beginning of a film that was cut.
    chapters[:1] = [replace(chapter, start_s=0.0) for chapter in chapters[:1]]
    return () if chapters_fault(chapters) else tuple(chapters)
