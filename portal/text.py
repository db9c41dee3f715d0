"""What anyone may have written, made fit to stand among other words. Pure.

Texts are kept as submitted; this is how they are shown. Markup is not this module's matter: every
template escapes.
"""

from __future__ import annotations

import re
from unicodedata import category

# Embeddings, overrides and isolates (Unicode annex 9) turn what follows them around, "exe.mp4"
# into "4pm.exe"; a stray end of an isolate lets them out of any <bdi>. Marks only hint, and stay.
_DIRECTIONS = "\u202a-\u202e\u2066-\u2069"
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSHOWN = re.compile(f"[{_CONTROLS}{_DIRECTIONS}]")
# No script stacks more on one letter; hundreds would cover the lines around.
MAX_MARKS = 8
# Letters and signs that look like nothing: Hangul fillers, and Braille without a dot.
_EMPTY_SIGNS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_UNSEEN = ("C", "Z")


def shown(text: str) -> str:
    """The text without what would change how the words around it are read."""
    if text.isascii() and text.isprintable():
        return text
    plain = _UNSHOWN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return plain if plain.isascii() else _with_few_marks(plain)


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return all(
        letter in _EMPTY_SIGNS or category(letter).startswith(_UNSEEN) or _is_mark(letter)
        for letter in text
    )


def _with_few_marks(text: str) -> str:
    kept, marks = [], 0
    for letter in text:
        marks = marks + 1 if _is_mark(letter) else 0
        if marks <= MAX_MARKS:
            kept.append(letter)
    return "".join(kept)


def _is_mark(letter: str) -> bool:
    """Whether it is put on the letter before it, and takes no room of its own."""
    return category(letter) in ("Mn", "Me")
