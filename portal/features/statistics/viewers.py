"""A viewer's day: the parts of a video that one page view played on one day. Pure.

A part of a video was played between two consecutive records of a session if the first one is in the
state "playing". Records that a session has sent before are ignored, so a report may be repeated,
and split in any way.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from portal.features.statistics.cmcd import MAX_STARTUP_MS, Device, Place, Record, State
from portal.features.statistics.films import HUNDREDTHS, Film

# A view counts after ten seconds, or this share of the video in hundredths. Players report every
# ten seconds, so the time that they tell may be a little less.
VIEW_MS = 9_500
VIEW_HUNDREDTHS = 30
# Players send a record every ten seconds while they play.
MAX_GAP_MS = 90_000
# Tolerance of positions compared to the client's clock.
PACE = 1.1
JITTER_MS = 1_000
# Caps of one viewer, so that a forged report counts as one at most.
MAX_PLAYS = 10
MAX_STALLS = 100
MAX_FAILURES = 10


class SessionState(NamedTuple):
    """Last record of a session, and the client's time at which the state in it began."""

    record: Record
    entered_ms: int


@dataclass(frozen=True, slots=True)
class ViewerDay:
    """Playback of one video in one session of a player on one day.

    `plays` has a byte for each hundredth of the whole film: how often its middle was played. `seen`
    is the share of the film that was played, in hundredths. `watch_ms` is the time spent watching;
    `heights` divides it by the height of the picture, which is 0 unless a rendition has it.
    `startup_ms` is the first start-up time, and -1 if none is known. Device, place and site are
    those of the first report.
    """

    first_at: datetime
    last_at: datetime
    device: Device
    place: Place
    site: str
    watch_ms: int = 0
    plays: bytes = bytes(HUNDREDTHS)
    seen: int = 0
    startup_ms: int = -1
    stalls: int = 0
    failures: int = 0
    heights: dict[int, int] = field(default_factory=dict)
    session: SessionState | None = None

    @property
    def is_view(self) -> bool:
        """Return whether enough was played for a view."""
        return self.watch_ms >= VIEW_MS or self.seen >= VIEW_HUNDREDTHS


def add_records(
    viewer: ViewerDay, records: Sequence[Record], *, received_at: datetime, film: Film
) -> tuple[ViewerDay, int]:
    """Add records of a session to its viewer's day.

    Return the new day, and the number of records that repeat earlier ones or end an impossible
    stretch of playback: longer than `MAX_GAP_MS`, backwards, faster than the player's rate, or
    beyond the end of the film. A repeated record is skipped. After an impossible stretch only its
    playback is dropped; the record's state counts. `received_at` limits the time that the viewer
    can have watched.
    """
    session = viewer.session
    tally = _Tally(viewer.plays, film)
    ignored_count = 0
    for record in records:
        if session is not None:
            last = session.record
            if (record.ts_ms, record.number) <= (last.ts_ms, last.number):
                ignored_count += 1
                continue
            if last.state is State.PLAYING and not tally.add_playback(last, record):
                ignored_count += 1
        tally.add_change(session, record)
        stays = session is not None and session.record.state is record.state
        session = SessionState(record, session.entered_ms if session and stays else record.ts_ms)
    first_at = min(viewer.first_at, received_at)
    last_at = max(viewer.last_at, received_at)
    # The first report may be sent after the whole video. From then on nobody watches for longer
    # than the time that passes.
    elapsed_ms = math.ceil((last_at - first_at).total_seconds() * 1000)
    longest_ms = elapsed_ms + max(film.duration_ms, MAX_GAP_MS)
    watch_ms = viewer.watch_ms + tally.heights.total()
    is_possible = watch_ms <= longest_ms
    heights = Counter(viewer.heights) + tally.heights if is_possible else viewer.heights
    return replace(
        viewer,
        first_at=first_at,
        last_at=last_at,
        watch_ms=min(watch_ms, longest_ms),
        plays=bytes(tally.plays),
        seen=film.share_seen(bytes(tally.plays)),
        startup_ms=tally.startup_ms if viewer.startup_ms < 0 else viewer.startup_ms,
        stalls=min(viewer.stalls + tally.stalls, MAX_STALLS),
        failures=min(viewer.failures + tally.failures, MAX_FAILURES),
        heights=dict(heights),
        session=session,
    ), ignored_count


class _Tally:
    """Sums of consecutive records. `plays` goes on from those of the viewer."""

    def __init__(self, plays: bytes, film: Film) -> None:
        self.plays = bytearray(plays)
        self.stalls = 0
        self.failures = 0
        self.startup_ms = -1
        # Watch time by height.
        self.heights: Counter[int] = Counter()
        self._film = film

    def add_playback(self, first: Record, second: Record) -> bool:
        """Add the part between two records as played, if that is possible; return whether it is."""
        elapsed_ms = second.ts_ms - first.ts_ms
        if elapsed_ms > MAX_GAP_MS:
            return False
        if first.position_ms is None or second.position_ms is None:
            # Players of others may not report positions.
            self._add_watch_time(first, elapsed_ms)
            return True
        played_ms = second.position_ms - first.position_ms
        if not 0 <= played_ms <= elapsed_ms * first.rate * PACE + JITTER_MS:
            return False
        if self._film.duration_ms:
            if second.position_ms > self._film.duration_ms + JITTER_MS:
                return False
            self._add_plays(first.position_ms, second.position_ms)
        self._add_watch_time(first, round(played_ms / first.rate))
        return True

    def add_change(self, session: SessionState | None, record: Record) -> None:
        """Add the start of playback, a stall or a failure, if the record reports one."""
        state = session.record.state if session else None
        startup_ms = record.startup_ms
        has_started = state is State.STARTING and record.state is State.PLAYING
        if session and has_started and startup_ms is None:
            startup_ms = record.ts_ms - session.entered_ms
        if self.startup_ms < 0 and startup_ms is not None and startup_ms <= MAX_STARTUP_MS:
            self.startup_ms = startup_ms
        self.stalls += state is State.PLAYING and record.state is State.STALLED
        self.failures += state is not State.FAILED and record.state is State.FAILED

    def _add_watch_time(self, record: Record, watched_ms: int) -> None:
        is_known = record.height in self._film.heights
        self.heights[record.height if is_known else 0] += watched_ms

    def _add_plays(self, start_ms: int, end_ms: int) -> None:
        """Count a play of each hundredth of the film whose middle is in the half-open interval."""
        first = bisect_left(self._film.middles_ms, start_ms)
        last = bisect_left(self._film.middles_ms, end_ms)
        for hundredth in self._film.kept_hundredths[first:last]:
            self.plays[hundredth] = min(self.plays[hundredth] + 1, MAX_PLAYS)
