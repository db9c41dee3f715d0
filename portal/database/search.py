"""What can be searched of a video, and how what people type is matched against it. Pure.

The search document is a tsvector of lexemes made here, and so is every tsquery: PostgreSQL's own
parser and dictionaries know one language at a time, depend on the server's locale, and cannot
fold accents without an extension. The same folding on both sides serves all languages:

- Case, accents and width are folded (Unicode casefold, NFKC without diacritics): "cafe" finds
  "Café", "strasse" finds "Straße", "елка" finds "Ёлка".
- Every word typed is the beginning of a word: "holi" finds "Holiday". That also stands in for
  stemming, which would need to know the language. Of more than three, those with one letter or
  two are whole words, but for the last, which may still be being typed: of what begins with a
  letter, the index has a good part of the library to go through for each.
- Scripts without spaces (Chinese, Japanese, Thai, …) are cut into pairs of neighbouring
  characters; what is typed has to have all its pairs in the document. A dictionary would find
  words instead, but each language needs another. A pair more or less in common is rare enough
  that positions, which would double the index's size, are not kept.

A lexeme begins with the letter of the field it stands in, so that title, tags and description can
be told apart by the index alone: weights are not in a GIN index, which would have every candidate
row read. Documents are written with the fields they follow from: see `models.Video.save`.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from unicodedata import category, combining, normalize

from portal.text import split_tags

# More of what is typed, or of a word, is not looked at.
MAX_QUERY_LENGTH = 200
MAX_QUERY_WORDS = 12
MAX_WORD_LENGTH = 40
# Of more beginnings of words than this, the short ones are taken for whole words.
MAX_SHORT_BEGINNINGS = 3
# In letters, with those of a Korean syllable counted one by one.
SHORT_LENGTH = 2
MAX_TAG_LENGTH = 100
MAX_SORT_LENGTH = 200
# PostgreSQL's limits of a tsvector: the highest position, the positions of a lexeme, and the bytes
# of all lexemes with their positions (1 MiB, less some for alignment).
MAX_POSITION = 16_383
MAX_POSITIONS = 255
MAX_DOCUMENT_BYTES = 1_000_000


class Field(StrEnum):
    """Where a lexeme stands; its first letter. A hit further up ranks before one further down."""

    TITLE = "a"
    TAGS = "b"
    DESCRIPTION = "c"
    WHOLE_TAG = "#"


WORD_FIELDS = (Field.TITLE, Field.TAGS, Field.DESCRIPTION)
# Letters that Unicode does not decompose, as they are typed where keyboards lack them.
PLAIN_LETTERS = str.maketrans(
    {
        **{"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i"},
        **{"ł": "l", "ŋ": "n", "þ": "th", "ŧ": "t"},
        # Invisible marks inside words: soft hyphen, zero-width spaces and joiners.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
    }
)
# Thai, Lao, Myanmar, Khmer, Japanese kana, and Han with its iteration mark and zero.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3005\u3007"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
RUN = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
IS_UNSPACED = re.compile(f"[{UNSPACED}]")
ASCII_WORD = re.compile(r"[a-z0-9]+")
DIGITS = re.compile(r"[0-9]+")
DIGITS_WIDTH = 10


def search_columns(*, title: str, description: str, tags: str) -> dict[str, str]:
    """The columns of a video that follow from these fields.

    `search` is the search document, `sort_title` what titles are sorted by: folded, and with
    numbers padded, so that "Part 2" comes before "Part 10".
    """
    lexemes = {f"{Field.WHOLE_TAG}{fold_tag(tag)}" for tag in split_tags(tags)}
    seen: set[str] = set()
    for field, text in zip(WORD_FIELDS, (title, tags, description), strict=True):
        words = set(_document_words(text)) - seen
        lexemes |= {f"{field}{word}" for word in words}
        seen |= words
    document = " ".join(_quoted(lexeme) for lexeme in sorted(lexemes))
    return {"search": document, "sort_title": _sort_title(title)}


def spoken_document(cues: Iterable[tuple[float, str]]) -> str:
    """Return the search document of captions: each word with the seconds at which its cues begin.

    A second is a position, counted from 1. Words and positions beyond PostgreSQL's limits are left
    out, so captions of any size can be saved and only the end of very large ones is not searched.
    """
    positions: dict[str, list[int]] = {}
    size_bytes = 0
    for start_s, text in cues:
        position = min(int(start_s) + 1, MAX_POSITION)
        for word in dict.fromkeys(_document_words(text)):
            of_word = positions.get(word, ())
            if len(of_word) >= MAX_POSITIONS or (of_word and of_word[-1] == position):
                continue
            # The lexeme, padding and a count, then two bytes for each position.
            added_bytes = 2 if of_word else len(word.encode()) + 5
            if size_bytes + added_bytes > MAX_DOCUMENT_BYTES:
                continue
            size_bytes += added_bytes
            positions.setdefault(word, []).append(position)
    return " ".join(f"{_quoted(word)}:{','.join(map(str, at))}" for word, at in positions.items())


def spoken_query(words: list[str]) -> str:
    """The tsquery for captions in which all these words are said."""
    return " & ".join(_operand("", word) for word in words)


def fold(text: str) -> str:
    """The text without case, accents and widths, for comparison."""
    if text.isascii():
        return text.lower()
    decomposed = normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in decomposed if not _is_diacritic(letter))
    return normalize("NFKC", plain.translate(PLAIN_LETTERS).casefold())


def fold_tag(tag: str) -> str:
    """A tag as it is compared with others, as a whole."""
    return " ".join(fold(tag).replace("\0", " ").split())[:MAX_TAG_LENGTH]


def query_words(text: str) -> list[str]:
    """What of the typed text can be searched, each part as a tsquery operand without its field."""
    words: list[str] = []
    for run in _runs(text[:MAX_QUERY_LENGTH]):
        if IS_UNSPACED.match(run) and len(run) > 1:
            words += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            words.append(f"{run[:MAX_WORD_LENGTH]}*")
    typed = list(dict.fromkeys(words))[:MAX_QUERY_WORDS]
    if sum(word.endswith("*") for word in typed) <= MAX_SHORT_BEGINNINGS:
        return typed
    return [*map(_whole_if_short, typed[:-1]), typed[-1]]


def words_query(words: list[str], *, fields: tuple[Field, ...] = WORD_FIELDS) -> str:
    """The tsquery for documents with all these words in these fields."""
    anywhere = (" | ".join(_operand(field, word) for field in fields) for word in words)
    return " & ".join(f"({operands})" for operands in anywhere)


def tag_query(tag: str) -> str:
    """The tsquery for documents with exactly this tag."""
    return _quoted(f"{Field.WHOLE_TAG}{fold_tag(tag)}")


def _whole_if_short(word: str) -> str:
    stem = word.removesuffix("*")
    is_short = len(normalize("NFD", stem)) <= SHORT_LENGTH
    # A character of an unspaced script by itself begins few pairs, and is seldom one.
    return stem if is_short and not IS_UNSPACED.match(stem) else word


def _operand(field: str, word: str) -> str:
    stem = word.removesuffix("*")
    return _quoted(f"{field}{stem}") + (":*" if stem != word else "")


def _document_words(text: str) -> Iterator[str]:
    for run in _runs(text):
        if IS_UNSPACED.match(run):
            # The last character by itself, too, so that one character alone is found anywhere.
            yield from (run[at : at + 2] for at in range(len(run)))
        else:
            yield run[:MAX_WORD_LENGTH]


def _runs(text: str) -> Iterator[str]:
    folded = fold(text)
    if folded.isascii():
        yield from ASCII_WORD.findall(folded)
        return
    spaced = "".join(letter if _is_in_word(letter) else " " for letter in folded)
    for word in spaced.split():
        yield from RUN.findall(word)


def _is_in_word(letter: str) -> bool:
    # Marks are part of words where they are not accents: vowels of Thai or Hindi.
    return letter.isalnum() or category(letter).startswith("M")


def _is_diacritic(letter: str) -> bool:
    """Accents, and the vowel points of Hebrew and Arabic, by their canonical combining class."""
    place = combining(letter)
    return place >= 200 or 10 <= place <= 35


def _sort_title(title: str) -> str:
    words = " ".join(_runs(title)) or " ".join(fold(title).split())
    return DIGITS.sub(lambda found: found[0].zfill(DIGITS_WIDTH), words)[:MAX_SORT_LENGTH]


def _quoted(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
