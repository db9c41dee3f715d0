"""What was changed between two texts, word by word, for people to compare. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

WORD = re.compile(r"\S+\s*|\s+")
# Unchanged words that are shown on each side of those that changed.
CONTEXT = 10


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that follow each other: `same`, `removed` or `added`; or where `skipped` ones were."""

    kind: str
    words: str


def word_changes(before: str, after: str) -> list[Piece]:
    """What `after` is made of, with what it no longer has of `before`."""
    return [piece for piece in _pieces(WORD.findall(before), WORD.findall(after)) if piece.words]


def _pieces(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    # A word is the same at the end of a text, where no space follows.
    former, newer = ([word.rstrip(" ") for word in words] for words in (before, after))
    changes = SequenceMatcher(None, former, newer).get_opcodes()
    for operation, start, end, new_start, new_end in changes:
        words = after[new_start:new_end]
        if operation == "equal":
            yield from _same(words, is_first=new_start == 0, is_last=new_end == len(after))
        else:
            yield Piece("removed", "".join(before[start:end]))
            yield Piece("added", "".join(words))


def _same(words: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Piece]:
    head, tail = (0 if is_first else CONTEXT), (0 if is_last else CONTEXT)
    if len(words) <= head + tail + CONTEXT:
        yield Piece("same", "".join(words))
        return
    yield Piece("same", "".join(words[:head]))
    yield Piece("skipped", "… ")
    yield Piece("same", "".join(words[len(words) - tail :]))
