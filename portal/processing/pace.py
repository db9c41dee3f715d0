"""How long passes take on this worker, against what was expected of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from portal.transcoding.encoding.progress import Stage, share_done
from portal.transcoding.errors import RejectCode
from portal.transcoding.probing.probe import SourceLimits

# A pass counts so much in the mean of those of this process.
WEIGHT = 0.2
# Shorter ones tell more of starting processes and of storage than of the machine.
MIN_EXPECTED_S = 5.0
JUDGED_AFTER_S = 60.0
# An estimate is this far above the limit before it counts: other work may hold the machine up.
TOLERANCE = 2.0
# ffmpeg tells of itself twice a second; one that is paused does not.
MAX_STEP_S = 5.0

Report = Callable[[Stage, float, float | None], Awaitable[None]]


@dataclass(slots=True)
class Pace:
    """What passes took on this worker, as a multiple of what was expected; the mean of late."""

    ratio: float = 1.0

    def note(self, *, expected_s: float, taken_s: float) -> None:
        """Learn from a pass that is done."""
        if expected_s >= MIN_EXPECTED_S:
            self.ratio += WEIGHT * (taken_s / expected_s - self.ratio)


@dataclass(slots=True)
class WorkMeter:
    """Follows a pass by its progress, and refuses a source that shows to be too much work.

    `worked_s` is how long ffmpeg has worked; the time in which it was paused does not count. The
    share `begun` of the pass was made before.
    """

    report: Report
    limits: SourceLimits
    begun: float = 0.0
    worked_s: float = 0.0
    seen_at: float = field(default_factory=monotonic)

    async def follow(self, stage: Stage, percent: float, eta_s: float | None) -> None:
        """Take note of the progress and pass it on. Raises `SourceRejected`."""
        now = monotonic()
        self.worked_s += min(now - self.seen_at, MAX_STEP_S)
        self.seen_at = now
        self._judge(share_done(percent) - self.begun)
        await self.report(stage, percent, eta_s)

    def _judge(self, share: float) -> None:
        limit_s = self.limits.max_transcode_s
        if not limit_s or share <= 0 or self.worked_s < JUDGED_AFTER_S:
            return
        expected_s = self.worked_s / share
        if expected_s > TOLERANCE * limit_s:
            detail = f"{self.worked_s:.0f} s made {share:.4%} of a pass"
            raise self.limits.rejection(RejectCode.TOO_MUCH_WORK, detail)
