"""Search documents of videos and captions, and the queries that match them. Pure.

The lexemes of every tsvector and tsquery are made here. PostgreSQL's own parser and dictionaries
know one language at a time, depend on the server's locale, and cannot fold accents without an
extension. The same folding of documents and queries serves all languages:

- Case, accents and width are folded (Unicode casefold, NFKC without diacritics): "cafe" finds
  "Café", "strasse" finds "Straße", "елка" finds "Ёлка".
- A typed word matches all words that begin with it: "holi" finds "Holiday". This replaces
  stemming, which would have to know the language. In a query of more than three words, those of
  one or two letters match whole words only, because a large part of the library has words that
  begin with a given letter. The last word is an exception, because it may still be incomplete.
- Text in scripts without spaces (Chinese, Japanese, Thai, …) is split into pairs of neighbouring
  characters. A document matches if it has all pairs of the query. A dictionary would find words
  instead, but each language needs its own. False matches are so rare that positions, which would
  double the size of the index, are not stored.

A lexeme begins with the letter of its field, so the index alone tells title, tags and description
apart. A GIN index has no weights, so weights would require a read of every candidate row.
`models.Video.save` writes a document together with the fields from which it is derived.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from unicodedata import category, combining, normalize

from portal.text import split_tags

# Further characters of a query or a word, and further words of a query, are ignored.
MAX_QUERY_LENGTH = 200
MAX_QUERY_WORDS = 12
MAX_WORD_LENGTH = 40
# Short words match whole words only, in queries of more beginnings than this.
MAX_SHORT_BEGINNINGS = 3
# Length in letters. Each letter of a Korean syllable counts.
SHORT_LENGTH = 2
MAX_TAG_LENGTH = 100
MAX_SORT_LENGTH = 200
# PostgreSQL's limits of a tsvector: the highest position, the positions of a lexeme, and the bytes
# of all lexemes with their positions (1 MiB, less some for alignment).
MAX_POSITION = 16_383
MAX_POSITIONS = 255
MAX_DOCUMENT_BYTES = 1_000_000


class Field(StrEnum):
    """Field of a lexeme, by the lexeme's first letter. Matches in earlier fields rank higher."""

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
    """Return the columns of a video that are derived from these fields.

    `search` is the search document. `sort_title` is the sort key of the title: folded, and with
    padded numbers, so that "Part 2" precedes "Part 10".
    """
    lexemes = {f"{Field.WHOLE_TAG}{fold_tag(tag)}" for tag in split_tags(tags)}
    indexed_words: set[str] = set()
    for field, text in zip(WORD_FIELDS, (title, tags, description), strict=True):
        new_words = set(_document_words(text)) - indexed_words
        lexemes |= {f"{field}{word}" for word in new_words}
        indexed_words |= new_words
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
            word_positions = positions.get(word, ())
            if len(word_positions) >= MAX_POSITIONS:
                continue
            if word_positions and word_positions[-1] == position:
                continue
            # Two bytes for each position, and for each lexeme its text, padding and a count.
            added_bytes = 2 if word_positions else len(word.encode()) + 5
            if size_bytes + added_bytes > MAX_DOCUMENT_BYTES:
                continue
            size_bytes += added_bytes
            positions.setdefault(word, []).append(position)
    return " ".join(f"{_quoted(word)}:{','.join(map(str, at))}" for word, at in positions.items())


def spoken_query(words: list[str]) -> str:
    """Return the tsquery for captions that have all these words."""
    return " & ".join(_operand("", word) for word in words)


def fold(text: str) -> str:
    """Return a text without case, accents and widths, for comparisons."""
    if text.isascii():
        return text.lower()
    decomposed = normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in decomposed if not _is_diacritic(letter))
    return normalize("NFKC", plain.translate(PLAIN_LETTERS).casefold())


def fold_tag(tag: str) -> str:
    """Return a tag as it is compared with other tags."""
    return " ".join(fold(tag).replace("\0", " ").split())[:MAX_TAG_LENGTH]


def query_words(text: str) -> list[str]:
    """Return the words of a query, as operands of a tsquery without their field.

    A word that ends with `*` matches all words that begin with it.
    """
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
    """Return the tsquery for documents that have all these words in these fields."""
    anywhere = (" | ".join(_operand(field, word) for field in fields) for word in words)
    return " & ".join(f"({operands})" for operands in anywhere)


def tag_query(tag: str) -> str:
    """Return the tsquery for documents that have this tag."""
    return _quoted(f"{Field.WHOLE_TAG}{fold_tag(tag)}")


def _whole_if_short(word: str) -> str:
    stem = word.removesuffix("*")
    is_short = len(normalize("NFD", stem)) <= SHORT_LENGTH
    # A single character of an unspaced script begins few pairs, and rarely is a whole lexeme.
    return stem if is_short and not IS_UNSPACED.match(stem) else word


def _operand(field: str, word: str) -> str:
    stem = word.removesuffix("*")
    return _quoted(f"{field}{stem}") + (":*" if stem != word else "")


def _document_words(text: str) -> Iterator[str]:
    for run in _runs(text):
        if IS_UNSPACED.match(run):
            # The last character alone is a lexeme, too, so that it matches as a beginning.
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
    # Marks that are no accents are part of words, such as vowels of Thai or Hindi.
    return letter.isalnum() or category(letter).startswith("M")


def _is_diacritic(letter: str) -> bool:
    """Check for an accent, or a vowel point of Hebrew or Arabic, by the combining class."""
    combining_class = combining(letter)
    return combining_class >= 200 or 10 <= combining_class <= 35


def _sort_title(title: str) -> str:
    words = " ".join(_runs(title)) or " ".join(fold(title).split())
    return DIGITS.sub(lambda digits: digits[0].zfill(DIGITS_WIDTH), words)[:MAX_SORT_LENGTH]


def _quoted(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
