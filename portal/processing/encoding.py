"""Make the renditions of a pass: after what is made already, and giving way to other videos.

A pass is preempted by a video that waits to be playable and is due before it. How long passes take
on this worker is compared with what was expected of them.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import psycopg

from portal.concurrency import task_group
from portal.processing.attempts import OpenAttempt
from portal.processing.outputs import StorageSink
from portal.processing.progress import Heartbeat, StoredPart, find_stored
from portal.queue.app import Queue
from portal.queue.rows import is_overtaken
from portal.storage.bucket import Storage
from portal.transcoding.encoding.continuation import NotContinuable
from portal.transcoding.encoding.progress import OnProgress, Stage, share_done
from portal.transcoding.encoding.transcode import PassOutput, Resume, make_renditions
from portal.transcoding.errors import RejectCode
from portal.transcoding.packaging.hls import MediaPlaylist
from portal.transcoding.packaging.master import master_playlist
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import SourceLimits

logger = logging.getLogger(__name__)

# A pass takes seconds to get going: it is not ended before it has made something, mostly.
MIN_RUN_S = 3.0
LOOK_S = 1.0
# A job that a free slot is about to take is no longer there at the second look.
LOOKS = 2
# What is done so soon is worth ending.
SOON_S = 10.0
# A pass counts so much in the mean of those of this process.
WEIGHT = 0.2
# Shorter ones tell more of starting processes and of storage than of the machine.
MIN_EXPECTED_S = 5.0
JUDGED_AFTER_S = 60.0
# An estimate is this far above the limit before it counts: other work may hold the machine up.
TOLERANCE = 2.0
# ffmpeg tells of itself twice a second; one that is paused does not.
MAX_STEP_S = 5.0


class Preempted(Exception):
    """A pass ended early for another video; it goes on when its job is taken again."""


@dataclass(slots=True)
class Preemption:
    """Whether a pass that a job runs has to end for another; `is_first` makes a video playable.

    A pass that completes a ladder always gives way, one that makes a video playable only if it is
    not done soon, by its latest progress.
    """

    job_id: int
    is_first: bool
    stage: Stage = Stage.TRANSCODING
    seconds_left: float | None = None

    async def watch(self) -> None:
        """Run beside the pass. Raises `Preempted` when another has to go first."""
        await asyncio.sleep(MIN_RUN_S)
        seen = 0
        while seen < LOOKS:
            await asyncio.sleep(LOOK_S)
            seen = seen + 1 if not self._is_done_soon() and await self._is_overtaken() else 0
        raise Preempted

    def _is_done_soon(self) -> bool:
        left_s = self.seconds_left
        is_close = self.is_first and left_s is not None and left_s <= SOON_S
        return is_close or self.stage is Stage.FINISHING

    async def _is_overtaken(self) -> bool:
        try:
            return await is_overtaken(self.job_id)
        except psycopg.OperationalError:
            return False


@dataclass(slots=True)
class Pace:
    """What passes take on this worker, as a multiple of what was expected: a moving average."""

    ratio: float = 1.0

    def note(self, *, expected_s: float, taken_s: float) -> None:
        """Learn from a pass that is done."""
        if expected_s >= MIN_EXPECTED_S:
            self.ratio += WEIGHT * (taken_s / expected_s - self.ratio)


@dataclass(slots=True)
class WorkMeter:
    """Follows a pass by its progress, and refuses a source that proves too expensive.

    `worked_s` is how long ffmpeg has worked; the time in which it was paused does not count. The
    share `begun_share` of the pass was made before.
    """

    report: OnProgress
    limits: SourceLimits
    begun_share: float = 0.0
    worked_s: float = 0.0
    seen_at: float = field(default_factory=monotonic)

    async def follow(self, stage: Stage, percent: float, eta_s: float | None) -> None:
        """Take note of the progress and pass it on. Raises `SourceRejected`."""
        now = monotonic()
        self.worked_s += min(now - self.seen_at, MAX_STEP_S)
        self.seen_at = now
        self._judge(share_done(percent) - self.begun_share)
        await self.report(stage, percent, eta_s)

    def _judge(self, share: float) -> None:
        limit_s = self.limits.max_transcode_s
        if not limit_s or share <= 0 or self.worked_s < JUDGED_AFTER_S:
            return
        expected_s = self.worked_s / share
        if expected_s > TOLERANCE * limit_s:
            detail = f"{self.worked_s:.0f} s made {share:.4%} of a pass"
            raise self.limits.rejection(RejectCode.TOO_MUCH_WORK, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a worker carries out passes with; `limits` are those of sources.

    `pace` is what the worker's passes have taken so far.
    """

    worker: str
    storage: Storage
    queue: Queue
    limits: SourceLimits
    work_dir: Path
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOutcome:
    """What a pass made; renditions of `folders` lie with the attempts of these numbers."""

    output: PassOutput
    folders: Mapping[str, int]

    @property
    def master(self) -> str:
        """A master playlist in the folder of the attempt."""
        return master_playlist(
            [
                (f"../{self.folders[it.name]}/" if it.name in self.folders else "", it)
                for it in self.output.renditions
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingRun:
    """The `wanted` renditions of a plan, to be made of a source under the lease of an attempt."""

    attempt: OpenAttempt
    tools: Tools
    heartbeat: Heartbeat
    source_url: str
    source: Probe
    plan: Plan
    wanted: tuple[str, ...]
    reference: MediaPlaylist | None = None

    async def make(self) -> PassOutcome:
        """Make them, after what an earlier attempt made of them if that is of use.

        Raises as `make_renditions` does, `Preempted`, or `LeaseLost`.
        """
        part = await find_stored(self.attempt.video_id, self._encoded, self.tools.storage)
        try:
            return await self._make_after(part)
        except NotContinuable as exc:
            told = {"action": "begins_anew", "attempt": self.attempt.number}
            logger.warning("Pass begins anew: %s", exc, extra=told)
            return await self._make_after(None)

    @property
    def _encoded(self) -> list[str]:
        copied = {rung.name for rung in self.plan.video if rung.copied}
        return [name for name in self.wanted if name not in copied]

    async def _make_after(self, part: StoredPart | None) -> PassOutcome:
        sounds = [track.name for track in self.plan.audio]
        await self.heartbeat.begin_pass(part, sounds=sounds)
        share = part.made_s / self.source.duration_s if part else 0.0
        meter = WorkMeter(self.heartbeat.report, self.tools.limits, begun_share=share)
        folders = dict.fromkeys(part.renditions, part.folder) if part else {}
        prefix = f"{self.attempt.number}-"
        resume = Resume(renditions=part.renditions, prefix=prefix) if part else None
        video = self.attempt.video
        job_id = video.complete_job_id if self.attempt.wanted else video.first_job_id
        preemption = Preemption(job_id=job_id or 0, is_first=not self.attempt.wanted)

        async def report(stage: Stage, percent: float, eta_s: float | None) -> None:
            preemption.stage, preemption.seconds_left = stage, eta_s
            await meter.follow(stage, percent, eta_s)

        async with task_group() as tasks:
            watching = tasks.create_task(preemption.watch()) if self._encoded else None
            output = await make_renditions(
                self.source_url,
                self.source,
                self.plan,
                wanted=self.wanted,
                is_first=not self.attempt.wanted,
                reference=self.reference,
                sink=StorageSink(self.tools.storage, self.attempt, self.attempt.number, folders),
                work_dir=self.tools.work_dir,
                on_progress=report,
                resume=resume,
                on_made=self.heartbeat.note_stored,
            )
            if watching:
                watching.cancel()
        if self._encoded:
            expected_s = self.plan.encode_s(self.wanted) * (1 - share)
            self.tools.pace.note(expected_s=expected_s, taken_s=meter.worked_s)
        return PassOutcome(output=output, folders=folders)
