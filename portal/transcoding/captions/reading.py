"""Reading of one caption file: its cues, and a warning for everything that was not plain.

The format is recognised by the content, not by a name or type. Regions, styles, comments and cue
identifiers are left out, as players do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from portal.locale.messages import Message, Number, PluralMessage, numeral
from portal.text import unescaped, with_line_feeds
from portal.transcoding.captions import repairs
from portal.transcoding.captions.blocks import FileCue, read_blocks
from portal.transcoding.captions.decoding import CHARSET_LABELS, Decoded, decode, known_charset
from portal.transcoding.captions.faults import (
    MAX_FILE_BYTES,
    MAX_WARNINGS,
    TOO_LARGE,
    CaptionsUnreadable,
    CaptionWarning,
    WarningCode,
)
from portal.transcoding.captions.ttml import declared_encoding, is_xml, read_ttml
from portal.transcoding.packaging.webvtt import MARKUP, SPAN, Cue, clock

# A hundred hours, either way.
MAX_SHIFT_S = 360_000.0
# SubRip files borrow overrides from SubStation Alpha; the place is one of nine, as on a keypad.
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_PLACE = re.compile(r"\{[^{}]*\\an([1-9])")
_LINES = {1: "", 2: "line:50%", 3: "line:0"}
_ALIGNMENTS = {1: "align:start", 2: "", 0: "align:end"}
# SBV writes "[br]".
_LINE_BREAK = re.compile(r"\n|\[br\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of reading a file; None for what isn't known.

    The language is a BCP 47 tag, the charset a name in `decoding.CHARSETS`. Cues are shifted by
    `shift_s`; the film lasts `duration_s`.
    """

    language: str | None = None
    charset: str | None = None
    shift_s: float = 0.0
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionContents:
    """Cues of a file in the order of their times, its encoding, and warnings by line.

    `suggested_shift_s` moves captions that begin after the film's end into it.
    """

    cues: tuple[Cue, ...]
    charset: str
    warnings: tuple[CaptionWarning, ...]
    suggested_shift_s: float | None = None


def read_captions(data: bytes, options: ReadOptions | None = None) -> CaptionContents:
    """Read a WebVTT, SubRip, SBV or TTML file.

    Text of cues may hold the spans of WebVTT; everything else is escaped. Raises
    `CaptionsUnreadable`, or `EncodingUncertain`.
    """
    if len(data) > MAX_FILE_BYTES:
        raise CaptionsUnreadable(TOO_LARGE)
    options = options or ReadOptions()
    charset = options.charset or known_charset(declared_encoding(data) or "")
    decoded = decode(data, language=options.language, charset=charset)
    # WebVTT, section 5.1.
    text = decoded.text.replace("\0", "\ufffd")
    warnings = _decoding_warnings(decoded)
    if is_xml(text):
        cues = read_ttml(text)
    else:
        cues, skipped = read_blocks(text)
        warnings += skipped
    cues = _cues_with_text(cues, text, skipped=warnings)
    if options.shift_s:
        cues = repairs.shifted(cues, options.shift_s)
        shift = Number(f"{options.shift_s:+g}")
        message = Message("All cues were shifted by %(shift)s s.", shift=shift)
        warnings.append(CaptionWarning(WarningCode.SHIFTED, message))
    cues, repaired = repairs.repair_times(cues)
    if not cues:
        raise CaptionsUnreadable(
            Message("Line 1: all cues end before the video begins. Shift them less.")
        )
    cues, collapsed = repairs.collapse_rolling(cues)
    repairs.check_size(cues, options.duration_s)
    suggested_shift_s = repairs.suggested_shift_s(cues, options.duration_s)
    late = _late_warnings(cues, options.duration_s, suggested_shift_s)
    return CaptionContents(
        cues=tuple(file_cue.cue for file_cue in cues),
        charset=decoded.charset,
        warnings=_limited([*late, *collapsed, *warnings, *repaired]),
        suggested_shift_s=suggested_shift_s,
    )


def _limited(warnings: Sequence[CaptionWarning]) -> tuple[CaptionWarning, ...]:
    if len(warnings) <= MAX_WARNINGS:
        return tuple(warnings)
    listed = warnings[: MAX_WARNINGS - 1]
    count = len(warnings) - len(listed)
    message = PluralMessage(
        "%(number)s more cue was changed or left out.",
        "%(number)s more cues were changed or left out.",
        count=count,
        number=numeral(count),
    )
    return (*listed, CaptionWarning(WarningCode.MORE, message))


def _decoding_warnings(decoded: Decoded) -> list[CaptionWarning]:
    warnings = []
    label = CHARSET_LABELS[decoded.charset]
    if decoded.is_guessed:
        message = Message(
            "The file isn't UTF-8. It was read as %(encoding)s; if the text looks wrong, "
            "choose another encoding.",
            encoding=label,
        )
        warnings.append(CaptionWarning(WarningCode.ENCODING_DETECTED, message))
    before, bad, _ = decoded.text.partition("\ufffd")
    if bad:
        count = decoded.text.count("\ufffd")
        message = PluralMessage(
            "%(number)s character can't be read as %(encoding)s, and became %(sign)s.",
            "%(number)s characters can't be read as %(encoding)s, and became %(sign)s.",
            count=count,
            number=numeral(count),
            encoding=label,
            sign="\ufffd",
        )
        line = with_line_feeds(before).count("\n") + 1
        warnings.append(CaptionWarning(WarningCode.CHARACTERS_REPLACED, message, line))
    return warnings


def _cues_with_text(
    cues: Sequence[FileCue], text: str, *, skipped: Sequence[CaptionWarning]
) -> list[FileCue]:
    """Return the cues that have text, cleaned. Raises `CaptionsUnreadable` if none does."""
    if not cues:
        for warning in skipped:
            if warning.code is WarningCode.CUE_SKIPPED:
                raise CaptionsUnreadable(
                    Message(
                        "Line %(line)s: the times of this cue can't be read. Write them as "
                        "00:01:02.500 --> 00:01:04.000.",
                        line=warning.line,
                    )
                )
        if text.startswith("WEBVTT") or is_xml(text):
            raise CaptionsUnreadable(
                Message("Line 1: this file has no cues. Send one with times and text.")
            )
        raise CaptionsUnreadable(
            Message(
                "Line 1: this file is none of WebVTT, SubRip, SBV and TTML. "
                "Send one with times and text."
            )
        )
    cleaned = [FileCue(file_cue.line, _cleaned(file_cue.cue)) for file_cue in cues]
    with_text = [file_cue for file_cue in cleaned if file_cue.cue.text]
    if not with_text:
        raise CaptionsUnreadable(
            Message("Line %(line)s: no cue has any text. Write some.", line=cues[0].line)
        )
    return with_text


def _cleaned(cue: Cue) -> Cue:
    """Return a cue with no markup but the spans of WebVTT, and no empty lines."""
    lines = [_clean_line(line) for line in _LINE_BREAK.split(cue.text)]
    text = "\n".join(line for line in lines if line)
    return replace(cue, text=text, settings=cue.settings or _place(cue.text))


def _place(text: str) -> str:
    """Return the settings for the first place that text names as SubStation Alpha does."""
    match = _PLACE.search(text)
    if match is None:
        return ""
    key = int(match[1])
    return f"{_LINES[(key + 2) // 3]} {_ALIGNMENTS[key % 3]}".strip()


def _clean_line(line: str) -> str:
    line = _OVERRIDE.sub("", line)
    texts = [unescaped(MARKUP.sub("", text)).replace("\n", " ") for text in SPAN.split(line)]
    spans = [*SPAN.findall(line), ""]
    return "".join(escape(text) + span for text, span in zip(texts, spans, strict=True)).strip()


def _late_warnings(
    cues: Sequence[FileCue], duration_s: float | None, suggested_shift_s: float | None
) -> list[CaptionWarning]:
    if duration_s is None:
        return []
    late = [file_cue for file_cue in cues if file_cue.cue.start_s >= duration_s]
    if not late:
        return []
    message = _late_words(len(late), len(cues), clock(duration_s), suggested_shift_s)
    return [CaptionWarning(WarningCode.AFTER_END, message, late[0].line)]


def _late_words(late: int, cues: int, end: str, suggested_shift_s: float | None) -> Message:
    """Return the warning about this many of all cues, which begin after the end of the video."""
    facts = {"end": end, "number": numeral(late), "shift": f"{suggested_shift_s or 0:g}"}
    if suggested_shift_s is None:
        if late == cues:
            return Message(
                "All cues begin after the end of the video, at %(end)s. "
                "Viewers don't get what begins there.",
                **facts,
            )
        return PluralMessage(
            "%(number)s cue begins after the end of the video, at %(end)s. "
            "Viewers don't get what begins there.",
            "%(number)s cues begin after the end of the video, at %(end)s. "
            "Viewers don't get what begins there.",
            count=late,
            **facts,
        )
    if late == cues:
        return Message(
            "All cues begin after the end of the video, at %(end)s. "
            "Shift the cues by %(shift)s s to show all.",
            **facts,
        )
    return PluralMessage(
        "%(number)s cue begins after the end of the video, at %(end)s. "
        "Shift the cues by %(shift)s s to show all.",
        "%(number)s cues begin after the end of the video, at %(end)s. "
        "Shift the cues by %(shift)s s to show all.",
        count=late,
        **facts,
    )
