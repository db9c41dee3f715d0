"""Character encodings of caption files: UTF-8 and UTF-16 by their bytes, others by the language.

Half of the caption files in circulation are not Unicode, and most bytes are valid in several
encodings. The language that captions are saved for is the best hint: an encoding that is used for
it, and that gives text in its script, is accepted. Otherwise the encoding is uncertain, unless
only one is possible.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from charset_normalizer import from_bytes

from portal.locale.messages import Message
from portal.transcoding.captions.faults import EncodingUncertain

# Python's codecs by the names that people may choose; each codec is the superset in use.
CHARSETS = {
    "utf-8": "utf-8",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "windows-1252": "cp1252",
    "windows-1250": "cp1250",
    "iso-8859-2": "iso8859-2",
    "windows-1251": "cp1251",
    "koi8-u": "koi8-u",
    "iso-8859-5": "iso8859-5",
    "ibm866": "cp866",
    "windows-1253": "cp1253",
    "windows-1254": "cp1254",
    "windows-1255": "cp1255",
    "windows-1256": "cp1256",
    "windows-1257": "cp1257",
    "windows-1258": "cp1258",
    "windows-874": "cp874",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "euc-kr": "cp949",
    "macintosh": "mac_roman",
}
# Scripts and systems by which people know encodings; others are of Western Europe.
# Translators: kinds of character encodings, as in Cyrillic (koi8-u).
_WESTERN_WORDS = Message("Western")
_KNOWN_AS = {
    **dict.fromkeys(("utf-8", "utf-16le", "utf-16be"), Message("Unicode")),
    **dict.fromkeys(("windows-1250", "iso-8859-2"), Message("Central European")),
    **dict.fromkeys(("windows-1251", "koi8-u", "iso-8859-5", "ibm866"), Message("Cyrillic")),
    "windows-1253": Message("Greek"),
    "windows-1254": Message("Turkish"),
    "windows-1255": Message("Hebrew"),
    "windows-1256": Message("Arabic"),
    "windows-1257": Message("Baltic"),
    "windows-1258": Message("Vietnamese"),
    "windows-874": Message("Thai"),
    "gb18030": Message("Simplified Chinese"),
    "big5": Message("Traditional Chinese"),
    **dict.fromkeys(("shift_jis", "euc-jp", "iso-2022-jp"), Message("Japanese")),
    "euc-kr": Message("Korean"),
    "macintosh": Message("Western, old Macs"),
}
CHARSET_LABELS = {
    # Translators: a character encoding with its script, such as Cyrillic (koi8-u).
    name: Message(
        "%(script)s (%(encoding)s)", script=_KNOWN_AS.get(name, _WESTERN_WORDS), encoding=name
    )
    for name in CHARSETS
}
# Encodings that are never guessed.
_NOT_GUESSED = ("utf-8", "utf-16le", "utf-16be", "iso-2022-jp", "macintosh")
# Names of subsets, as `codecs.lookup` spells them.
_SUBSETS = {
    "ascii": "utf-8",
    "utf-8-sig": "utf-8",
    "utf-16": "utf-16le",
    "iso8859-1": "windows-1252",
    "iso8859-15": "windows-1252",
    "koi8-r": "koi8-u",
    "iso8859-7": "windows-1253",
    "iso8859-9": "windows-1254",
    "iso8859-8": "windows-1255",
    "iso8859-6": "windows-1256",
    "iso8859-13": "windows-1257",
    "tis-620": "windows-874",
    "iso8859-11": "windows-874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5",
    "cp950": "big5",
    "shift_jis": "shift_jis",
    "euc_kr": "euc-kr",
}
_CENTRAL_EUROPEAN = ("windows-1250", "iso-8859-2")
_CYRILLIC = ("windows-1251", "koi8-u", "iso-8859-5", "ibm866")
# Encodings that are used for a language.
_BY_LANGUAGE: dict[str, tuple[str, ...]] = {
    "zh": ("gb18030", "big5"),
    "yue": ("big5", "gb18030"),
    "ja": ("shift_jis", "euc-jp"),
    "ko": ("euc-kr",),
    "th": ("windows-874",),
    "el": ("windows-1253",),
    "vi": ("windows-1258",),
    "sr": ("windows-1251", "windows-1250"),
    **dict.fromkeys(("cs", "pl", "sk", "hu", "sl", "hr", "bs", "ro", "sq"), _CENTRAL_EUROPEAN),
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "kk", "ky", "tg", "mn"), _CYRILLIC),
    **dict.fromkeys(("tr", "az"), ("windows-1254",)),
    **dict.fromkeys(("he", "yi"), ("windows-1255",)),
    **dict.fromkeys(("ar", "fa", "ur", "ps"), ("windows-1256",)),
    **dict.fromkeys(("et", "lv", "lt"), ("windows-1257",)),
}
_WESTERN = ("windows-1252",)
# Letters that are a part of Japanese and Korean text, but never most of it.
_RARE = ("HALFWIDTH KATAKANA", "CJK")
_RARE_PLAUSIBILITY = 0.5
# The scripts of text in an encoding, as Unicode names of letters begin; others are Latin. Chinese
# captions may quote Japanese.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gb18030", "big5", "shift_jis", "euc-jp"), ("CJK", "HIRAGANA", "KATAKANA")),
    **dict.fromkeys(_CYRILLIC, ("CYRILLIC",)),
    "euc-kr": ("HANGUL",),
    "windows-1253": ("GREEK",),
    "windows-1255": ("HEBREW",),
    "windows-1256": ("ARABIC",),
    "windows-874": ("THAI",),
}
_LATIN = ("LATIN",)
# Letters that a language doesn't write, which stand for others in a wrong encoding.
_FOREIGN_LETTERS = {
    **dict.fromkeys(("cs", "hr", "sl", "bs", "hu", "ro", "sq"), "ąľĄĽ"),
    **dict.fromkeys(("is", "fo", "it", "ga", "gd", "vi"), ""),
    "sk": "ąĄ",
}
_FOREIGN_TO_MOST = "ðþýìÐÞÝÌ"
_UNUSUAL_MARKS = "¶"
_SYMBOLS = frozenset("♪♫♩♬°€£©®™×½¼¾→←↑↓★☆●○■□◆◇△▽※～＋＝＜＞")  # noqa: RUF001
# The text of a file is in one encoding, so its first part is enough to find that.
_SAMPLE_BYTES = 16 * 1024
_LEAST_PLAUSIBLE = 0.9
# Above this share of accented letters, Latin text is other text in a wrong encoding.
_MOST_ACCENTED = 0.5
_LEAST_LETTERS = 8
_MAX_CANDIDATES = 5
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file, and the encoding it was read in.

    `is_guessed` tells that neither the file's bytes nor the caller name the encoding.
    """

    text: str
    charset: str
    is_guessed: bool = False


def known_charset(name: str) -> str | None:
    """Return the name in `CHARSETS` of an encoding, however it is spelt; None if it has none."""
    try:
        codec = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):
        return None
    names = {codecs.lookup(python_name).name: charset for charset, python_name in CHARSETS.items()}
    return names.get(codec) or _SUBSETS.get(codec)


def decode(data: bytes, *, language: str | None = None, charset: str | None = None) -> Decoded:
    """Decode a file, by the `charset` that the caller names, or by its bytes and language.

    Bytes that the encoding doesn't have become U+FFFD. Raises `EncodingUncertain`.
    """
    charset = charset or _evident_charset(data)
    if charset is not None:
        return Decoded(_text(data, charset).removeprefix("\ufeff"), charset)
    detected = _detect(_sample(data), (language or "").partition("-")[0])
    return Decoded(_text(data, detected), detected, is_guessed=True)


def _text(data: bytes, charset: str) -> str:
    return data.decode(CHARSETS[charset], "replace")


def _evident_charset(data: bytes) -> str | None:
    """Return the encoding that the bytes themselves show; None if they show none."""
    if data.isascii() and b"\x1b$" in data:
        return "iso-2022-jp"
    for mark, charset in ((codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be")):
        if data.startswith(mark):
            return charset
    # Times and line breaks have a zero byte beside each ASCII one.
    low_zeros = data[1::2].count(0)
    high_zeros = data[0::2].count(0)
    if max(low_zeros, high_zeros) > len(data) // 10 and low_zeros != high_zeros:
        return "utf-16le" if low_zeros > high_zeros else "utf-16be"
    return "utf-8" if _is_mostly_utf8(data) else None


def _is_mostly_utf8(data: bytes) -> bool:
    """Return whether sequences of UTF-8, which others rarely have, outweigh damaged bytes."""
    text = data.decode("utf-8", "replace")
    bad_bytes = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if bad_bytes <= 0:
        return True
    # Longer sequences are less likely to be accidents.
    proofs = len(text.encode()) - len(text) - 2 * text.count("\ufffd")
    is_only_cut = bad_bytes == 1 and text.endswith("\ufffd")
    return proofs >= (1 if is_only_cut else 2 * bad_bytes)


def _sample(data: bytes) -> bytes:
    """Return the first lines that are not ASCII. All encodings have the same line breaks."""
    lines: list[bytes] = []
    size_bytes = 0
    for line in re.split(rb"[\r\n]+", data):
        if not line.isascii():
            lines.append(line[:_SAMPLE_BYTES])
            size_bytes += len(line)
        if size_bytes >= _SAMPLE_BYTES:
            break
    return b"\n".join(lines)


def _detect(sample: bytes, language: str) -> str:
    """Return the name in `CHARSETS` of the encoding of a sample that isn't Unicode.

    `language` has no region. An unknown or empty one counts as Western European. Raises
    `EncodingUncertain` with the candidates.
    """
    usual = _BY_LANGUAGE.get(language, _WESTERN)
    if hinted := _plausible_charsets(sample, usual, language):
        return hinted[0]
    possible = _plausible_charsets(
        sample, [name for name in CHARSETS if name not in _NOT_GUESSED], language
    )
    if len(possible) == 1:
        return possible[0]
    raise EncodingUncertain((possible or list(usual))[:_MAX_CANDIDATES])


def _plausible_charsets(sample: bytes, charsets: Sequence[str], language: str) -> list[str]:
    """Return the encodings in which the sample is text, the most likely first."""
    matches = from_bytes(
        sample, cp_isolation=[CHARSETS[name] for name in charsets], enable_fallback=False
    )
    ranks: dict[str, int] = {}
    for rank, match in enumerate(matches):
        ranks[match.encoding] = rank
        ranks.update((similar.encoding, rank) for similar in match.submatch)
    scores = {name: _score(_text(sample, name), name, language) for name in charsets}

    def order(charset: str) -> tuple[float, int]:
        codec = codecs.lookup(CHARSETS[charset]).name.replace("-", "_")
        return -round(scores[charset], 2), ranks.get(codec, len(ranks))

    plausible = [name for name in charsets if scores[name] >= _LEAST_PLAUSIBLE]
    return sorted(plausible, key=order)


def _score(text: str, charset: str, language: str) -> float:
    """Return how much of a text is what people write in this encoding, from 0 to 1."""
    special = [letter for letter in text if not letter.isascii()]
    scripts = _SCRIPTS.get(charset, _LATIN)
    implausible = _UNUSUAL_MARKS
    if scripts is _LATIN:
        implausible += _FOREIGN_LETTERS.get(language, _FOREIGN_TO_MOST)
        letters = sum(letter.isalpha() for letter in text)
        accented = sum(letter.isalpha() for letter in special)
        if letters >= _LEAST_LETTERS and accented > letters * _MOST_ACCENTED:
            return 0.0
    words = _WORD.findall(text)
    usual_words = sum(word in (word.lower(), word.upper(), word.capitalize()) for word in words)
    plausible = sum(
        _plausibility(letter, scripts) for letter in special if letter not in implausible
    )
    return (plausible / (len(special) or 1)) * (usual_words / (len(words) or 1))


def _plausibility(letter: str, scripts: Iterable[str]) -> float:
    kind = unicodedata.category(letter)
    if kind[0] in "PZM" or letter in _SYMBOLS:
        return 1.0
    name = unicodedata.name(letter, "")
    if name.startswith((*scripts, "FULLWIDTH")) and kind[0] in "LN":
        return 1.0
    return _RARE_PLAUSIBILITY if name.startswith(_RARE) else 0.0
