"""Sentences of captions, with the times at which they are spoken. Pure.

Captions are cut where they fit the picture, and often in the middle of a sentence.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from portal.transcoding.packaging.webvtt import Cue

# Text up to the end of a sentence, or of a cue.
_SENTENCE = re.compile(
    r"""\S.*?(?:[。！？]+|[.!?…؟।]+["'”’»)\]]*(?=\s|$)|$)""",  # noqa: RUF001 - of several scripts
    re.DOTALL,
)
_SENTENCE_END = re.compile(r"""[。！？.!?…؟।]["'”’»)\]]*$""")  # noqa: RUF001 - as above


def join_sentences(cues: Iterable[Cue], *, least_s: float, longest_s: float) -> list[Cue]:
    """Return the plain text of cues as sentences.

    Sentences are joined until they take `least_s`. A sentence that takes `longest_s` is split where
    a cue ends.
    """
    sentences: list[Cue] = []
    is_open = False
    for piece in chain.from_iterable(map(_split, cues)):
        if is_open:
            last = sentences[-1]
            text = f"{last.text} {piece.text}"
            sentences[-1] = Cue(start_s=last.start_s, end_s=piece.end_s, text=text)
        else:
            sentences.append(piece)
        length_s = piece.end_s - sentences[-1].start_s
        is_ended = _SENTENCE_END.search(piece.text) is not None
        is_open = length_s < least_s or (length_s < longest_s and not is_ended)
    return sentences


def _split(cue: Cue) -> Iterator[Cue]:
    """Yield the sentences of a cue, and parts of them, at times in proportion to their lengths."""
    text = " ".join(cue.plain_text.split())
    for match in _SENTENCE.finditer(text):
        start_s, end_s = (
            cue.start_s + (cue.end_s - cue.start_s) * place / len(text) for place in match.span()
        )
        yield Cue(start_s=start_s, end_s=end_s, text=match[0])
