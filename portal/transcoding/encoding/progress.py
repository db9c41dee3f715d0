"""Progress of a pass: a percentage that never falls, and an estimate of the time left."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from portal.transcoding.encoding.continuation import Run

_PROBED_PERCENT = 1.0
TRANSCODED_PERCENT = 97.0
_ESTIMATE_AFTER_S = 3.0


class Stage(StrEnum):
    """Stage of a transcode."""

    PROBING = "probing"
    TRANSCODING = "transcoding"
    FINISHING = "finishing"


# Stage, percent (0 to 100, never falling), seconds left or None while that is unknown.
OnProgress = Callable[[Stage, float, float | None], Awaitable[None]]


def share_done(percent: float) -> float:
    """Return the share of a pass's encoding, 0 to 1, that is done at a percentage of the whole."""
    share = (percent - _PROBED_PERCENT) / (TRANSCODED_PERCENT - _PROBED_PERCENT)
    return min(1.0, max(0.0, share))


def percent_of(share: float) -> float:
    """Return the percentage of the whole at which a share of a pass's encoding is done."""
    return _PROBED_PERCENT + share * (TRANSCODED_PERCENT - _PROBED_PERCENT)


@dataclass(slots=True)
class PassProgress:
    """Converter of ffmpeg's position to percent of a pass, which may have several runs of ffmpeg.

    The current run takes the pass from the share `begins_at` to the share `ends_at`. It may cover a
    part of the film (`run`), and begin `from_s` seconds after the film's start.
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
        """Report a stage, and the percentage that has been reached."""
        self.percent = max(self.percent, percent)
        await self.on_progress(stage, self.percent, None)

    def next_run(self, *, ends_at: float, run: Run | None = None, from_s: float = 0.0) -> None:
        """Begin a run of ffmpeg that, with others, takes the pass to this share of the whole."""
        if ends_at > self.ends_at:
            self.begins_at = self.ends_at
            self.ends_at = ends_at
        self.run = run or Run()
        self.from_s = from_s
        self.started_at = time.monotonic()

    async def encoded(self, written_s: float) -> None:
        """Report that the current run has encoded the film up to this time."""
        first_s, until_s = self.run.span_s(self.duration_s)
        at_s = min(until_s, max(self.from_s, written_s))
        run_share = self.run.elsewhere + (at_s - first_s) / self.duration_s
        share = self.begins_at + min(1.0, run_share) * (self.ends_at - self.begins_at)
        self.percent = max(self.percent, percent_of(share))
        elapsed_s = time.monotonic() - self.started_at
        left_s = None
        if elapsed_s >= _ESTIMATE_AFTER_S and at_s > self.from_s:
            left_s = elapsed_s / (at_s - self.from_s) * (until_s - at_s)
        await self.on_progress(Stage.TRANSCODING, self.percent, left_s)
