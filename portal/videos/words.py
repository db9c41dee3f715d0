"""Search beyond titles, tags and descriptions: spoken words, and corrections of misspelt words.

The search document of a caption track has the seconds of each word as positions, so finding a time
needs no text. The database collects the words of titles, descriptions, tags and captions as they
are saved, and keeps them (`database/functions/library_words.sql`). When a search finds nothing, a
process reads the words that are new to it. A correction is shown only if it finds something.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, product
from uuid import UUID

from psycopg import sql
from pydantic import Field
from rapidfuzz import process
from rapidfuzz.distance import OSA

from portal.database.connection import Row, fetch_rows, run_query, sql_with
from portal.database.search import spoken_query
from portal.events.records import Shape
from portal.transcoding.packaging.webvtt import Cue, clock

# Cap on spoken matches.
MOST_VIDEOS = 500
VIDEOS = """
SELECT id FROM videos WHERE {among} AND EXISTS (
  SELECT FROM captions WHERE video_id = videos.id AND search @@ {search}::tsquery
) LIMIT {limit}
"""
# Seconds of each word in each track, counted from 1.
SECONDS = """
SELECT id, video_id, language, pattern, array_agg(second ORDER BY second) AS seconds
FROM captions, unnest(search) AS word, unnest(word.positions) AS second,
     unnest({patterns}::text[]) AS pattern
WHERE video_id = ANY ({ids}) AND search @@ {search}::tsquery AND word.lexeme LIKE pattern
GROUP BY id, video_id, language, pattern ORDER BY is_default DESC, label
"""
# Text of tracks from the first cue of a second on.
CUES = """
SELECT id, substr(text, strpos(text, moment), 600) AS text
FROM captions
JOIN unnest({ids}::bigint[], {moments}::text[]) AS wanted (track, moment) ON track = id
"""
NEW_WORDS = "SELECT id, word FROM library_words WHERE id > %s ORDER BY id"
# Shorter words are similar to too many others.
MIN_LENGTH = 4
# Words from this length on may have more typos.
LONG_LENGTH = 7
# Letters that may be wrong, missing, or exchanged with their neighbour.
MAX_TYPOS = 1
MAX_TYPOS_OF_LONG = 2
# Cap on additional searches.
MOST_GUESSES = 3


class SpokenMatch(Shape):
    """Moment at which the query's words are spoken closest together."""

    language: str = Field(description="Language of the captions (BCP 47).")
    seconds: int = Field(description="Start of the caption in the video.")
    text: str = Field(description="Text of the caption.")


async def videos_that_say(words: list[str], *, among: sql.Composable) -> list[UUID]:
    """Return the videos in which all words of a query are spoken, at most `MOST_VIDEOS`.

    `among` is a condition for the videos.
    """
    search = spoken_query(words)
    rows = await run_query(sql_with(VIDEOS, search=search, among=among, limit=MOST_VIDEOS))
    return sorted(row["id"] for row in rows)


async def find_said(words: list[str], video_ids: Collection[UUID]) -> dict[UUID, SpokenMatch]:
    """For each video, return the cue in which the words of a query are spoken closest together."""
    if not words or not video_ids:
        return {}
    query = sql_with(
        SECONDS, ids=list(video_ids), search=spoken_query(words), patterns=_patterns(words)
    )
    rows_of: dict[int, list[Row]] = {}
    for row in await run_query(query):
        rows_of.setdefault(row["id"], []).append(row)
    matches: dict[UUID, tuple[int, str, int]] = {}
    for track_id, rows in rows_of.items():
        at_s = _closest_second([row["seconds"] for row in rows]) - 1
        matches.setdefault(rows[0]["video_id"], (track_id, rows[0]["language"], at_s))
    track_ids = [track_id for track_id, _, _ in matches.values()]
    moments = [f"\n{clock(at_s)[:-4]}" for _, _, at_s in matches.values()]
    cues = await run_query(sql_with(CUES, ids=track_ids, moments=moments))
    texts = {row["id"]: _first_text(row["text"]) for row in cues}
    return {
        video_id: SpokenMatch(language=language, seconds=at_s, text=texts.get(track_id, ""))
        for video_id, (track_id, language, at_s) in matches.items()
    }


def _patterns(words: Iterable[str]) -> list[str]:
    escaped = (word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for word in words)
    return [f"{word[:-1]}%" if word.endswith("*") else word for word in escaped]


def _closest_second(seconds_of_words: Sequence[Sequence[int]]) -> int:
    """Return the first second of the rarest word that is closest to all other words."""
    rarest, *frequent = sorted(seconds_of_words, key=len)

    def distance(second: int) -> int:
        return sum(abs(_neighbour(seconds, second) - second) for seconds in frequent)

    return min(rarest, key=distance)


def _neighbour(seconds: Sequence[int], second: int) -> int:
    """Return the one of ascending seconds that is nearest to a second."""
    place = bisect_left(seconds, second)
    candidates = seconds[max(place - 1, 0) : place + 1]
    return min(candidates, key=lambda candidate: abs(candidate - second))


def _first_text(text: str) -> str:
    lines = text.strip("\n").partition("\n\n")[0].split("\n")[1:]
    return Cue(start_s=0.0, end_s=0.0, text="\n".join(lines)).plain_text


class Vocabulary:
    """The words of the library, as far as a process has read them."""

    def __init__(self) -> None:
        self._last_id = 0
        self._words: list[str] = []
        self._learning = asyncio.Lock()

    async def guesses(self, words: list[str]) -> list[str]:
        """Return texts to search for instead of the words of a query, the most similar first."""
        async with self._learning:
            if rows := await fetch_rows(NEW_WORDS, self._last_id):
                self._last_id = rows[-1]["id"]
                self._words = sorted([*self._words, *(row["word"] for row in rows)])
        stems = [word.removesuffix("*") for word in words]
        similar = await asyncio.to_thread(lambda: [self._similar(stem) for stem in stems])
        texts = (" ".join(choice) for choice in product(*similar))
        return list(islice((text for text in texts if text != " ".join(stems)), MOST_GUESSES))

    def _similar(self, stem: str) -> list[str]:
        """Return the words most similar to a stem; the stem alone if it is known or too short."""
        place = bisect_left(self._words, stem)
        is_known = place < len(self._words) and self._words[place].startswith(stem)
        if is_known or len(stem) < MIN_LENGTH:
            return [stem]
        max_typos = MAX_TYPOS if len(stem) < LONG_LENGTH else MAX_TYPOS_OF_LONG
        matches = process.extract(
            stem, self._words, scorer=OSA.distance, score_cutoff=max_typos, limit=MOST_GUESSES
        )
        return [word for word, *_ in matches] or [stem]
