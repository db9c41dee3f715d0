"""What two editors made of the same field, for a form that asks whose value is to stay."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from portal.web.pages.word_changes import Piece, word_changes


@dataclass(frozen=True, slots=True)
class Conflict:
    """What each of two editors changed in one field."""

    mine: list[Piece]
    theirs: list[Piece]

    @classmethod
    def between(cls, base: str, mine: str, theirs: str) -> Self:
        """The changes of a text that both began from."""
        return cls(word_changes(base, mine), word_changes(base, theirs))


def in_words(fields: Iterable[str], names: Mapping[str, str]) -> str:
    """The fields as sentences call them, in the order of `names`; others are left out."""
    *former, last = [names[it] for it in names if it in set(fields)] or [""]
    return f"{', '.join(former)} and {last}" if former else last
