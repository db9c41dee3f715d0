"""Words beyond those of titles, tags and descriptions: what is said in videos, and words misspelt.

A caption track's search document has the seconds of each word as positions, so that the time needs
no text. The words of the library are learned by the database as titles, descriptions, tags and
captions are saved (`database/functions/library_words.sql`), which forgets none; a process reads
those that it does not know yet when a search has found nothing. Whoever searches is shown words
only by which they find something.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from uuid import UUID

from psycopg import sql
from rapidfuzz import process
from rapidfuzz.distance import OSA

from portal.database.connection import Row, fetch_rows, run_query, sql_with
from portal.database.search import spoken_query
from portal.transcoding.packaging.webvtt import Cue, clock

# What many say a lot is not worth a longer list.
MOST_VIDEOS = 500
VIDEOS = """
SELECT id FROM videos WHERE {among} AND EXISTS (
  SELECT FROM captions WHERE video_id = videos.id AND search @@ {search}::tsquery
) LIMIT {limit}
"""
# Of each track the seconds in which each of the words is said, from 1.
SECONDS = """
SELECT id, video_id, language, pattern, array_agg(second ORDER BY second) AS seconds
FROM captions, unnest(search) AS word, unnest(word.positions) AS second,
     unnest({patterns}::text[]) AS pattern
WHERE video_id = ANY ({ids}) AND search @@ {search}::tsquery AND word.lexeme LIKE pattern
GROUP BY id, video_id, language, pattern ORDER BY is_default DESC, label
"""
# From the times of the first cue of a second on.
CUES = """
SELECT id, substr(text, strpos(text, moment), 600) AS text
FROM captions
JOIN unnest({ids}::bigint[], {moments}::text[]) AS wanted (track, moment) ON track = id
"""
NEW_WORDS = "SELECT id, word FROM library_words WHERE id > %s ORDER BY id"
# Shorter ones are near too many others.
MIN_LENGTH = 4
# In letters that are other, missing, or exchanged with their neighbour.
FAR_LENGTH = 7
NEAR, FAR = 1, 2
# So many searches more, at most.
MOST_GUESSES = 3


@dataclass(frozen=True, slots=True)
class Said:
    """Where some words are said nearest to each other: the language, the second, and the cue."""

    language: str
    at_s: int
    text: str


async def videos_that_say(words: list[str], *, among: sql.Composable) -> list[UUID]:
    """The videos in which all these words of a query are said, `MOST_VIDEOS` at most.

    Of those that meet the condition `among`.
    """
    search = spoken_query(words)
    rows = await run_query(sql_with(VIDEOS, search=search, among=among, limit=MOST_VIDEOS))
    return sorted(row["id"] for row in rows)


async def find_said(words: list[str], video_ids: Collection[UUID]) -> dict[UUID, Said]:
    """Where all these words of a query are said, in those of these videos in which they are."""
    if not words or not video_ids:
        return {}
    given = {"ids": list(video_ids), "search": spoken_query(words), "patterns": _patterns(words)}
    tracks: dict[int, list[Row]] = {}
    for row in await run_query(sql_with(SECONDS, **given)):
        tracks.setdefault(row["id"], []).append(row)
    found: dict[UUID, tuple[int, str, int]] = {}
    for track, rows in tracks.items():
        at_s = _nearest([row["seconds"] for row in rows]) - 1
        found.setdefault(rows[0]["video_id"], (track, rows[0]["language"], at_s))
    moments = [f"\n{clock(at_s)[:-4]}" for _, _, at_s in found.values()]
    cues = await run_query(sql_with(CUES, ids=[it for it, _, _ in found.values()], moments=moments))
    texts = {row["id"]: _first_text(row["text"]) for row in cues}
    return {
        video_id: Said(language, at_s, texts.get(track, ""))
        for video_id, (track, language, at_s) in found.items()
    }


def _patterns(words: Iterable[str]) -> list[str]:
    escaped = (word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for word in words)
    return [f"{word[:-1]}%" if word.endswith("*") else word for word in escaped]


def _nearest(lists: Sequence[Sequence[int]]) -> int:
    """The second of the rarest word that is nearest to the other words; the first of them."""
    rarest, *others = sorted(lists, key=len)

    def distance(second: int) -> int:
        return sum(min(abs(it - second) for it in _around(other, second)) for other in others)

    return min(rarest, key=distance)


def _around(seconds: Sequence[int], second: int) -> Sequence[int]:
    at = bisect_left(seconds, second)
    return seconds[max(at - 1, 0) : at + 1]


def _first_text(text: str) -> str:
    lines = text.strip("\n").partition("\n\n")[0].split("\n")[1:]
    return Cue(start_s=0.0, end_s=0.0, text="\n".join(lines)).plain_text


class Vocabulary:
    """The words that a process knows; one for a process."""

    def __init__(self) -> None:
        self._last_id = 0
        self._words: list[str] = []
        self._learning = asyncio.Lock()

    async def guesses(self, words: list[str]) -> list[str]:
        """Texts to search for instead of these words of a query; the nearest first."""
        async with self._learning:
            if news := await fetch_rows(NEW_WORDS, self._last_id):
                self._last_id = news[-1]["id"]
                self._words = sorted([*self._words, *(row["word"] for row in news)])
        stems = [word.removesuffix("*") for word in words]
        near = await asyncio.to_thread(lambda: [self._nearest(stem) for stem in stems])
        texts = (" ".join(choice) for choice in product(*near))
        return list(islice((text for text in texts if text != " ".join(stems)), MOST_GUESSES))

    def _nearest(self, stem: str) -> list[str]:
        at = bisect_left(self._words, stem)
        is_known = at < len(self._words) and self._words[at].startswith(stem)
        if is_known or len(stem) < MIN_LENGTH:
            return [stem]
        most = NEAR if len(stem) < FAR_LENGTH else FAR
        found = process.extract(
            stem, self._words, scorer=OSA.distance, score_cutoff=most, limit=MOST_GUESSES
        )
        return [word for word, *_ in found] or [stem]
