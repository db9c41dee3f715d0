"""Sentences and words of captions, with the times at which they are spoken. Pure.

Captions are cut where they fit the picture, and often in the middle of a sentence. The text of a
cue is spoken evenly: each word takes time in proportion to its length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from portal.text import unescaped
from portal.transcoding.packaging.caption_lines import WIDE
from portal.transcoding.packaging.webvtt import SPAN, Cue

# Text up to the end of a sentence, or of a cue.
_SENTENCE = re.compile(
    r"""\S.*?(?:[。！？]+|[.!?…؟।]+["'”’»)\]]*(?=\s|$)|$)""",  # noqa: RUF001 - of several scripts
    re.DOTALL,
)
_SENTENCE_END = re.compile(r"""[。！？.!?…؟।]["'”’»)\]]*$""")  # noqa: RUF001 - as above

# Words with their escapes, letters of scripts without spaces, spans, and the space between.
_PIECE = re.compile(rf"(?P<span>{SPAN.pattern})|(?P<space>\s+)|[{WIDE}]|[^\s<{WIDE}]+|<")


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


def text_within(cue: Cue, parts: Sequence[tuple[float, float]]) -> str:
    """Return the text of a cue without the words that are spoken outside of these parts.

    Parts have a start and an end in seconds, like the cue. The middle of a word decides. Spans
    without words are left out, and so are times in the text.
    """
    letter_s = (cue.end_s - cue.start_s) / max(len(" ".join(cue.plain_text.split())), 1)
    pieces: list[str] = []
    opened_spans: list[str] = []
    letters = 0
    space = ""
    for piece in _PIECE.finditer(cue.text):
        text = piece[0]
        if piece["space"]:
            space += text
            letters += bool(letters)
        elif text.startswith("</"):
            if opened_spans:
                opened_spans.pop()
            else:
                pieces.append(text)
        elif piece["span"]:
            if text.startswith("<v"):
                # A voice ends where the next one begins.
                opened_spans = [span for span in opened_spans if not span.startswith("<v")]
            opened_spans += [] if text[1].isdigit() else [text]
        else:
            length = len(unescaped(text))
            middle_s = cue.start_s + (letters + length / 2) * letter_s
            letters += length
            if any(start_s <= middle_s < end_s for start_s, end_s in parts):
                separator = "\n" if "\n" in space else space[:1]
                pieces += [separator if pieces else "", *opened_spans, text]
                opened_spans = []
                space = ""
    return "".join(pieces)
