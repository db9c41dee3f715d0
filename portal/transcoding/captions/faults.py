"""Warnings about a caption file, the errors that refuse one, and the limits of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from portal.locale.messages import Message, numeral

MAX_FILE_BYTES = 4 * 1024**2
# A film of ten hours with a cue each second has as many.
MAX_CUES = 36_000
TOO_LARGE = Message(
    "Send at most %(cues)s cues, in a file of at most %(size)s MiB.",
    cues=numeral(MAX_CUES),
    size=MAX_FILE_BYTES // 1024**2,
)
TOO_LARGE_TEXT = Message(
    "As WebVTT in UTF-8, the text of these cues has more than %(size)s MiB. "
    "Send fewer or shorter cues.",
    size=MAX_FILE_BYTES // 1024**2,
)
MAX_WARNINGS = 100


class WarningCode(StrEnum):
    """Kinds of warnings, by names that are stable for programs."""

    ENCODING_DETECTED = "encoding_detected"
    CHARACTERS_REPLACED = "characters_replaced"
    CUE_CHANGED = "cue_changed"
    CUE_SKIPPED = "cue_skipped"
    ROLLING_COLLAPSED = "rolling_collapsed"
    SHIFTED = "shifted"
    AFTER_END = "after_end"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class CaptionWarning:
    """Something in a caption file that was guessed, changed or left out.

    `line` is the line of the file, counted from 1, or None for the whole file.
    """

    code: WarningCode
    message: str
    line: int | None = None


class CaptionsUnreadable(ValueError):
    """A caption file is refused; the message says where, why, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class EncodingUncertain(CaptionsUnreadable):
    """The character encoding of a file can't be told; `candidates` are possible, best first."""

    def __init__(self, candidates: Sequence[str]) -> None:
        self.candidates = tuple(candidates)
        super().__init__(
            Message(
                "The file isn't UTF-8, and its encoding is uncertain. Candidates: %(names)s.",
                names=", ".join(candidates),
            )
        )
