"""Interpret the edit lists of tracks (ISO/IEC 14496-12, 8.6.6) where FFmpeg doesn't follow them.

FFmpeg follows edits that play a part of a track at its speed. In place of a gap or of a still
picture it plays another part of the track, which may have been removed by the list. It shows
nothing of an edit without a duration, which lasts to the end of the track. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Any

# Option for files whose edit lists have one edit each, to the end of the track: the demuxer moves
# the tracks, and otherwise ignores the lists.
OPEN_EDITS = {"advanced_editlist": "0"}
# Limit on the gaps of a track, each of which is part of a filter.
_MAX_HIDDEN_SPANS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Edit of a track: its duration, and the rate at which it plays the track.

    The rate has two decimals, and 0 shows one picture. An empty edit shows nothing. An edit without
    a duration lasts to the end of the track.
    """

    duration_s: float
    rate: float
    is_empty: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeLine:
    """Time line of a file: `edits` by the track's number, and when FFmpeg's first sample begins.

    `is_open` means that each list has one edit, which lasts to the end. FFmpeg must then only move
    the tracks, and also reads the samples before the edit.
    """

    edits: Mapping[int, Sequence[Edit]]
    first_s: float
    is_open: bool

    @property
    def start_s(self) -> float:
        """Return when the film begins, in seconds on the file's time line."""
        if not self.is_open:
            return self.first_s
        return max(self.first_s, min(_starts_s(edits) for edits in self.edits.values()))

    def hidden_spans(self, stream: Any) -> list[tuple[float, float]]:
        """Return the spans in which FFmpeg plays media that the track's edit list doesn't.

        Spans have a start and an end in seconds of the film, and have to be hidden. They are empty
        edits, and the ends of edits that are longer than the media they play. A dwell (an edit with
        a rate of 0) plays one frame, so the span begins after that frame. Raises ValueError if
        there are more than `_MAX_HIDDEN_SPANS`.
        """
        edits = self.edits.get(stream.id, ())
        rate = getattr(stream, "average_rate", None)
        frame_s = float(1 / rate) if rate else 0.0
        spans = []
        # Some writers give all edits a rate of 0, and mean 1.
        has_rates = any(edit.rate for edit in edits if not edit.is_empty)
        at_s = _starts_s(edits) - self.start_s
        for edit in dropwhile(lambda edit: edit.is_empty, edits):
            end_s = at_s + edit.duration_s
            played_s = edit.duration_s * min(1.0, edit.rate) if has_rates else edit.duration_s
            shown_until_s = at_s if edit.is_empty else at_s + max(played_s, frame_s)
            if shown_until_s < end_s:
                spans.append((shown_until_s, end_s))
            at_s = end_s
        if len(spans) > _MAX_HIDDEN_SPANS:
            raise ValueError("a track has too many gaps")
        return spans


def _starts_s(edits: Sequence[Edit]) -> float:
    """Return when a track begins: after the empty edits at the beginning of its list."""
    return sum(edit.duration_s for edit in takewhile(lambda edit: edit.is_empty, edits))


def are_open(lists: Iterable[Sequence[Edit]]) -> bool:
    """Return whether each track that has a list plays to its end, by one edit.

    Then FFmpeg must only move the tracks.
    """
    played = [[edit for edit in edits if not edit.is_empty] for edits in lists if edits]
    return bool(played) and all([edit.duration_s for edit in edits] == [0.0] for edits in played)


def are_followed(edits: Sequence[Edit]) -> bool:
    """Return whether a list is followed.

    Changes of speed aren't, nor one of several edits that lasts to the end of the track.
    """
    played = [edit for edit in edits if not edit.is_empty]
    are_plain = all(edit.rate in (0, 1) for edit in played)
    return are_plain and (len(played) < 2 or all(edit.duration_s for edit in played))
