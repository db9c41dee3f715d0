"""How far a pass is, for people watching: a percentage that never falls and an honest estimate."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from portal.transcoding.encoding.continuation import Run

_PROBED_PERCENT = 1.0
TRANSCODED_PERCENT = 97.0
_ESTIMATE_AFTER_S = 3.0


class Stage(StrEnum):
    """What a transcode is doing."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"


# Stage, percent (0 to 100, never falling), seconds left or None while that is unknown.
OnProgress = Callable[[Stage, float, float | None], Awaitable[None]]


def share_done(percent: float) -> float:
    """The share of a pass's encoding that is done at this percentage of the whole, 0 to 1."""
    share = (percent - _PROBED_PERCENT) / (TRANSCODED_PERCENT - _PROBED_PERCENT)
    return min(1.0, max(0.0, share))


def percent_of(share: float) -> float:
    """The percentage of the whole at which this share of a pass's encoding is done."""
    return _PROBED_PERCENT + share * (TRANSCODED_PERCENT - _PROBED_PERCENT)


@dataclass(slots=True)
class PassProgress:
    """Turns ffmpeg's position into percent of a pass, which may take several runs of ffmpeg.

    The present run carries the pass from the share `begins_at` to the share `ends_at`. It may be of
    a part of the film (`run`), and go on `from_s` seconds after the film's start.
    """

    on_progress: OnProgress
    duration_s: float
    percent: float = _PROBED_PERCENT
    begins_at: float = 0.0
    ends_at: float = 0.0
    run: Run = field(default_factory=Run)
    from_s: float = 0.0
    started_at: float = field(default_factory=time.monotonic)

    async def stage(self, stage: Stage, percent: float = 0.0) -> None:
        """Announce a stage, and at its end the percentage that is certain."""
        self.percent = max(self.percent, percent)
        await self.on_progress(stage, self.percent, None)

    def next_run(self, *, ends_at: float, run: Run | None = None, from_s: float = 0.0) -> None:
        """A run of ffmpeg begins, and others that carry the pass to this share of the whole."""
        if ends_at > self.ends_at:
            self.begins_at, self.ends_at = self.ends_at, ends_at
        self.run, self.from_s, self.started_at = run or Run(), from_s, time.monotonic()

    async def encoded(self, written_s: float) -> None:
        """The present run has written this much of the film."""
        first_s, until_s = self.run.span_s(self.duration_s)
        at_s = min(until_s, max(self.from_s, written_s))
        done = self.run.elsewhere + (at_s - first_s) / self.duration_s
        whole = self.begins_at + min(1.0, done) * (self.ends_at - self.begins_at)
        self.percent = max(self.percent, percent_of(whole))
        elapsed_s, left_s = time.monotonic() - self.started_at, None
        if elapsed_s >= _ESTIMATE_AFTER_S and at_s > self.from_s:
            left_s = elapsed_s / (at_s - self.from_s) * (until_s - at_s)
        await self.on_progress(Stage.TRANSCODING, self.percent, left_s)
