"""Sums of viewers' days over a video or the library, and the figures that people read in them."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from enum import StrEnum
from itertools import accumulate
from typing import Any, NamedTuple, Self
from uuid import UUID

from portal.features.statistics.films import HUNDREDTHS
from portal.features.statistics.viewers import ViewerDay

# Upper bounds of start-up times in their histogram.
BOUND_FACTOR = 1.1
STARTUP_BOUNDS_S = tuple(0.05 * BOUND_FACTOR**number for number in range(75))
STARTUP_RANGES = len(STARTUP_BOUNDS_S) + 1
HOUR_S = 3_600
# Value of an attribute that stands for all values beyond a limit.
OTHER = "other"


class Kind(StrEnum):
    """Attribute by which viewers are divided; `ALL` stands for all of them together."""

    ALL = "all"
    DEVICE = "device"
    PLACE = "place"
    SITE = "site"
    HEIGHT = "height"


class StartupTimes(NamedTuple):
    """Quantiles of start-up times in seconds; None without start-up times.

    They are within 5 % from 0.05 s to 58 s. Shorter times count as 0.05 s, longer ones as 55 s.
    """

    median: float | None
    p95: float | None


@dataclass(slots=True, kw_only=True)
class Counts:
    """Sums over viewers' days, and the figures that follow from them.

    `viewers` counts a page view once on each day. `share` sums the hundredths that each viewer has
    seen. `ignored` counts records that repeat earlier ones, end an impossible stretch of playback,
    or exceed the limits of a network. `startups` is a histogram of start-up times: a count for each
    range that ends at a bound in `STARTUP_BOUNDS_S`, and one for longer times. It is empty without
    start-up times.
    """

    views: int = 0
    viewers: int = 0
    watch_ms: int = 0
    share: int = 0
    stalls: int = 0
    failures: int = 0
    ignored: int = 0
    startups: list[int] = field(default_factory=list)

    def add(self, viewer: ViewerDay, sign: int) -> None:
        """Add a viewer's day, or take it away again with the sign -1."""
        self.views += sign * viewer.is_view
        self.viewers += sign
        self.watch_ms += sign * viewer.watch_ms
        self.share += sign * viewer.seen
        self.stalls += sign * viewer.stalls
        self.failures += sign * viewer.failures
        if viewer.startup_ms >= 0:
            self.startups = self.startups or [0] * STARTUP_RANGES
            self.startups[bisect_left(STARTUP_BOUNDS_S, viewer.startup_ms / 1000)] += sign

    @property
    def watch_s(self) -> int:
        """Return the watch time in seconds."""
        return round(self.watch_ms / 1000)

    @property
    def average_share(self) -> float:
        """Return the mean share of a video that viewers have seen, from 0 to 1."""
        return _ratio(self.share, HUNDREDTHS * self.viewers)

    @property
    def stalls_per_hour(self) -> float:
        """Return the number of stalls per hour of watching."""
        return _ratio(self.stalls * HOUR_S, self.watch_ms / 1000)

    @property
    def startup_s(self) -> StartupTimes:
        """Return the start-up times."""
        return StartupTimes(_quantile_s(self.startups, 0.5), _quantile_s(self.startups, 0.95))


@dataclass(slots=True, kw_only=True)
class Sums(Counts):
    """Sums over all viewers' days, with the parts of the video that they saw.

    `seen` and `plays` have a sum for each hundredth of the video: how many viewers saw it, and how
    often it was played.
    """

    seen: list[int] = field(default_factory=lambda: [0] * HUNDREDTHS)
    plays: list[int] = field(default_factory=lambda: [0] * HUNDREDTHS)

    @classmethod
    def over(cls, days: Sequence["Sums"], /, **values: Any) -> Self:
        """Return the sums over some days. `values` are those of a subclass's own fields.

        Lists of days may be empty; they count as zeros.
        """
        watched = [day for day in days if day.viewers]
        for name in COUNTS:
            values[name] = sum(getattr(day, name) for day in watched)
        for name in LISTS:
            if lists := [counts for day in watched if (counts := getattr(day, name))]:
                values[name] = [sum(counts) for counts in zip(*lists, strict=True)]
        return cls(**values)

    def add(self, viewer: ViewerDay, sign: int) -> None:
        """Add a viewer's day, or take it away again with the sign -1."""
        Counts.add(self, viewer, sign)
        for hundredth, plays in enumerate(viewer.plays):
            if plays:
                self.seen[hundredth] += sign
                self.plays[hundredth] += sign * plays

    @property
    def retention(self) -> list[float]:
        """Return the share of the viewers who saw each hundredth of the video."""
        return [_ratio(count, self.viewers) for count in self.seen]

    @property
    def replays(self) -> list[float]:
        """Return how often each hundredth was played, for each viewer who saw it."""
        return list(map(_ratio, self.plays, self.seen))


# Columns of `video_days`.
LISTS = ("seen", "plays", "startups")
COUNTS = tuple(column.name for column in fields(Counts) if column.name not in LISTS)


class SumsKey(NamedTuple):
    """Key of sums. The sums of the library have no video."""

    video_id: UUID | None
    day: date
    kind: Kind
    value: str = ""


class Changes:
    """Changes of sums of videos and of the library, by their key."""

    def __init__(self) -> None:
        self.sums: dict[SumsKey, Counts] = {}

    def add(self, video_id: UUID, day: date, viewer: ViewerDay, *, sign: int) -> None:
        """Add a viewer's day to all sums that it belongs to, or take it away with the sign -1."""
        attributes = {
            Kind.ALL: "",
            Kind.DEVICE: viewer.device.value,
            Kind.PLACE: viewer.place.value,
        }
        for owner_id in (video_id, None):
            for kind, value in attributes.items():
                self._of(SumsKey(owner_id, day, kind, value)).add(viewer, sign)
            for height, watched_ms in viewer.heights.items():
                key = SumsKey(owner_id, day, Kind.HEIGHT, str(height))
                self._of(key).watch_ms += sign * watched_ms
        # A library has more sites than anyone reads.
        if viewer.site:
            self._of(SumsKey(video_id, day, Kind.SITE, viewer.site)).add(viewer, sign)

    def ignore(self, video_id: UUID, day: date, count: int) -> None:
        """Add a number of ignored records to the day's sums of the video and of the library."""
        for owner_id in (video_id, None):
            self._of(SumsKey(owner_id, day, Kind.ALL)).ignored += count

    def _of(self, key: SumsKey) -> Counts:
        if key not in self.sums:
            self.sums[key] = Sums() if key.kind is Kind.ALL else Counts()
        return self.sums[key]


def _quantile_s(startups: Sequence[int], quantile: float) -> float | None:
    """Return a quantile (0 to 1) of start-up times, which is the geometric middle of a range."""
    passed = list(accumulate(startups))
    if not passed or not passed[-1]:
        return None
    number = bisect_left(passed, max(quantile * passed[-1], 1))
    bound_s = STARTUP_BOUNDS_S[min(number, len(STARTUP_BOUNDS_S) - 1)]
    return bound_s / math.sqrt(BOUND_FACTOR)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
