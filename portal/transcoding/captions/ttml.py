"""Cues of TTML files (W3C Timed Text), which broadcasters exchange; also called DFXP and iTT.

The file is parsed as a stream: memory doesn't grow with its elements, and a document type, which
could declare entities, is refused before any is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape

from portal.locale.messages import Message
from portal.text import whole_number
from portal.transcoding.captions.blocks import FileCue
from portal.transcoding.captions.faults import MAX_CUES, TOO_LARGE, CaptionsUnreadable
from portal.transcoding.packaging.webvtt import Cue

_IS_XML = re.compile(r"\s*<(?:\?xml\b|!--|!DOCTYPE\b|(?:\w+:)?tt\b)")
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>\s*")
_DECLARED_ENCODING = re.compile(rb"""<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]{1,40})["']""")
_CLOCK = re.compile(r"(\d{1,4}):(\d{1,2}):(\d{1,2})(?:(\.\d{1,15})|[:;](\d{1,4})(?:\.\d+)?)?")
_OFFSET = re.compile(r"(\d{1,12}(?:\.\d{1,15})?)(h|ms|m|s|f|t)")
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class _Rates:
    """Frames and ticks in a second, as the root element gives them."""

    frames: int = 30
    ticks: int = 30

    def seconds(self, text: str) -> float | None:
        """Return a time expression of TTML in seconds; None if it is none."""
        if clock := _CLOCK.fullmatch(text.strip()):
            hours, minutes, seconds, fraction, frames = clock.groups()
            whole_s = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            return whole_s + float(fraction or 0) + int(frames or 0) / self.frames
        if offset := _OFFSET.fullmatch(text.strip()):
            units_s = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
            units_s |= {"f": 1 / self.frames, "t": 1 / self.ticks}
            return float(offset[1]) * units_s[offset[2]]
        return None


@dataclass(frozen=True, slots=True)
class _Element:
    """An open element with its times in the film; text in it is a cue if `is_cue`."""

    start_s: float = 0.0
    end_s: float | None = None
    line: int = 1
    is_cue: bool = False
    is_text: bool = False


def is_xml(text: str) -> bool:
    """Return whether a file is meant as XML."""
    return _IS_XML.match(text) is not None


def declared_encoding(data: bytes) -> str | None:
    """Return the encoding that an XML declaration in ASCII names, as it is spelt; None without one.

    It is also None for UTF-16, which a file with such a declaration can't be in. Some programs
    convert files and keep the declaration.
    """
    match = _DECLARED_ENCODING.match(data.lstrip()[:200])
    name = match[1].decode() if match else ""
    return None if name.lower().startswith("utf-16") else name or None


def read_ttml(text: str) -> list[FileCue]:
    """Return the cues of a file in its order. Raises `CaptionsUnreadable`."""
    reader = _Reader()
    try:
        # The text is decoded already, whatever its declaration says.
        declaration = _DECLARATION.match(text)
        reader.parser.Parse(text[declaration.end() :] if declaration else text.lstrip(), True)
    except expat.ExpatError as exc:
        message = Message(
            "Line %(line)s: this file is not well-formed XML (%(reason)s). "
            "Export it again, or save it as SubRip or WebVTT.",
            line=exc.lineno,
            reason=expat.errors.messages[exc.code],
        )
        raise CaptionsUnreadable(message) from None
    return reader.cues


class _Reader:
    """Handlers of the XML parser, which collect cues. Times of elements count from their parent."""

    def __init__(self) -> None:
        self.cues: list[FileCue] = []
        self._open: list[_Element] = []
        self._rates = _Rates()
        self._texts: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator="}")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._add_text

    def _refuse_doctype(self, *_: object) -> None:
        message = Message(
            "Line %(line)s: this XML file has a DOCTYPE, which captions don't need. "
            "Export it again, or save it as SubRip or WebVTT.",
            line=self.parser.CurrentLineNumber,
        )
        raise CaptionsUnreadable(message)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if not self._open:
            if name != "tt":
                message = Message(
                    "Line %(line)s: this XML file isn't TTML. "
                    "Export it again, or save it as SubRip or WebVTT.",
                    line=self.parser.CurrentLineNumber,
                )
                raise CaptionsUnreadable(message)
            self._rates = _read_rates(attributes)
        if len(self._open) >= _MAX_DEPTH:
            message = Message(
                "Line %(line)s: this XML file is nested too deeply. "
                "Export it again, or save it as SubRip or WebVTT.",
                line=self.parser.CurrentLineNumber,
            )
            raise CaptionsUnreadable(message)
        if name == "br":
            self._texts.append("\n")
        parent = self._open[-1] if self._open else _Element()
        begin_s = self._rates.seconds(attributes.get("begin", ""))
        end_s = self._rates.seconds(attributes.get("end", ""))
        duration_s = self._rates.seconds(attributes.get("dur", ""))
        start_s = parent.start_s + (begin_s or 0.0)
        if end_s is not None:
            end_s += parent.start_s
        elif duration_s is not None:
            end_s = start_s + duration_s
        has_times = begin_s is not None or end_s is not None
        is_cue = name == "p" or (name == "span" and has_times)
        if is_cue:
            self._flush()
        line = self.parser.CurrentLineNumber
        is_text = name == "p" or (parent.is_text and name in ("span", "br"))
        end_s = parent.end_s if end_s is None else end_s
        self._open.append(_Element(start_s, end_s, line, is_cue, is_text))

    def _add_text(self, text: str) -> None:
        if self._open[-1].is_text:
            self._texts.append(re.sub(r"\s+", " ", text))

    def _end(self, _: str) -> None:
        if self._open[-1].is_cue:
            self._flush()
        self._open.pop()

    def _flush(self) -> None:
        """Make a cue of the text since the last one, with the times of the element it is in."""
        text = "".join(self._texts).strip()
        self._texts.clear()
        element = next((open_ for open_ in reversed(self._open) if open_.is_cue), None)
        if text and element is not None:
            # Without an end, the cue lasts until the next, as one of no length does.
            end_s = element.start_s if element.end_s is None else element.end_s
            if len(self.cues) >= MAX_CUES:
                raise CaptionsUnreadable(TOO_LARGE)
            cue = Cue(start_s=element.start_s, end_s=end_s, text=escape(text))
            self.cues.append(FileCue(element.line, cue))


def _read_rates(attributes: Mapping[str, str]) -> _Rates:
    parameters = {name.rpartition("}")[2]: value for name, value in attributes.items()}
    # A multiplier, which makes 29.97 of 30, changes less than a millisecond.
    frames = whole_number(parameters.get("frameRate", ""), max_digits=4) or 30
    ticks = whole_number(parameters.get("tickRate", ""), max_digits=9) or frames
    return _Rates(frames, ticks)
