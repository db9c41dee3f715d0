"""The words of the library, and the nearest ones to a word that nobody wrote.

The database learns them as titles, descriptions, tags and captions are saved (migration
`0018_captions`), and forgets none. A process reads what it does not know yet, when a search has
found nothing. Whoever searches is shown words only by which they find something.
"""

import asyncio
from bisect import bisect_left, insort
from itertools import product

from rapidfuzz import process
from rapidfuzz.distance import OSA

from portal.database.connection import fetch_rows

NEW_WORDS = "SELECT id, word FROM library_words WHERE id > %s ORDER BY id"
# Shorter ones are near too many others.
MIN_LENGTH = 4
# In letters that are other, missing, or exchanged with their neighbour.
FAR_LENGTH = 7
NEAR, FAR = 1, 2
# So many searches more, at most.
MOST_GUESSES = 3


class Vocabulary:
    """The words that a process knows; one for a process."""

    def __init__(self) -> None:
        self._last_id = 0
        self._words: list[str] = []
        self._learning = asyncio.Lock()

    async def guesses(self, words: list[str]) -> list[str]:
        """Texts to search for instead of these words of a query; the nearest first."""
        async with self._learning:
            for row in await fetch_rows(NEW_WORDS, self._last_id):
                self._last_id = max(self._last_id, row["id"])
                insort(self._words, row["word"])
        stems = [word.removesuffix("*") for word in words]
        near = await asyncio.to_thread(lambda: [self._nearest(stem) for stem in stems])
        texts = (" ".join(choice) for choice in product(*near))
        return [text for text in texts if text != " ".join(stems)][:MOST_GUESSES]

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
