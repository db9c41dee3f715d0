"""Interpret the edit lists of tracks (ISO/IEC 14496-12, 8.6.6) where FFmpeg doesn't follow them.

FFmpeg follows edits that play a part of a track at its speed. In place of a gap or of a still
picture it plays another part of the track, which may have been removed by the list. It shows
nothing of an edit without a duration, which lasts to the end of the track. In a file of fragments
it only moves each track to the beginning of its first edit. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Any

# Option for files whose edit lists have one edit each, to the end of the track: the demuxer moves
# the tracks, and otherwise ignores the lists. It always does so with fragments.
OPEN_EDITS = {"advanced_editlist": "0"}
# Limit on the gaps of a track, each of which is part of a filter.
_MAX_HIDDEN_SPANS = 200
# Longer than any part of a track that follows its edit.
_LONGEST_REST_S = 1e6


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

    `is_open` means that each list has one edit, which lasts to the end, or that the file has
    fragments. FFmpeg then only moves the tracks, and also reads the samples around the edit.
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
        a rate of 0) plays one frame, so the span begins after that frame. In a file of fragments,
        the rest of the track after its edit is hidden. Raises ValueError if there are more than
        `_MAX_HIDDEN_SPANS`.
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
        if (until_s := self.ends_s(stream)) is not None:
            spans.append((until_s, _LONGEST_REST_S))
        if len(spans) > _MAX_HIDDEN_SPANS:
            raise ValueError("a track has too many gaps")
        return spans

    def ends_s(self, stream: Any) -> float | None:
        """Return when a track stops being shown, in seconds of the film.

        The result is None if FFmpeg itself stops there, or the track is shown to its end. FFmpeg
        doesn't stop at the end of an edit in a fragmented file.
        """
        edits = self.edits.get(stream.id, ())
        if not (self.is_open and edits and edits[-1].duration_s):
            return None
        return sum(edit.duration_s for edit in edits) - self.start_s


def _starts_s(edits: Sequence[Edit]) -> float:
    """Return when a track begins: after the empty edits at the beginning of its list."""
    return sum(edit.duration_s for edit in takewhile(lambda edit: edit.is_empty, edits))


def are_single(lists: Iterable[Sequence[Edit]]) -> bool:
    """Return whether there are lists, and each plays one part of its track."""
    counts = [sum(not edit.is_empty for edit in edits) for edits in lists if edits]
    return bool(counts) and set(counts) == {1}


def are_open(lists: Iterable[Sequence[Edit]]) -> bool:
    """Return whether each track that has a list plays to its end, by one edit.

    Then FFmpeg must only move the tracks.
    """
    lists = list(lists)
    has_end = any(edit.duration_s for edits in lists for edit in edits if not edit.is_empty)
    return are_single(lists) and not has_end


def are_followed(edits: Sequence[Edit]) -> bool:
    """Return whether a list is followed.

    Changes of speed aren't, nor one of several edits that lasts to the end of the track.
    """
    played = [edit for edit in edits if not edit.is_empty]
    are_plain = all(edit.rate in (0, 1) for edit in played)
    return are_plain and (len(played) < 2 or all(edit.duration_s for edit in played))
