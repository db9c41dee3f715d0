"""Make the renditions of a pass: after what is made already, and giving way to other videos.

A pass is preempted by a video that waits to be playable and is due before it. How long passes take
on this worker is compared with what was expected of them.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from portal.concurrency import task_group
from portal.database.connection import retry_outage
from portal.database.outages import skipped_in_outage
from portal.processing import runs
from portal.processing.attempts import OpenAttempt
from portal.processing.outputs import StorageSink
from portal.processing.progress import Heartbeat
from portal.queue.app import Queue
from portal.queue.rows import is_overtaken
from portal.storage.bucket import Storage
from portal.transcoding.encoding.continuation import (
    MadeRendition,
    NotContinuable,
    Run,
    Starts,
    Whole,
    broken_joins,
)
from portal.transcoding.encoding.progress import OnProgress, Stage, percent_of, share_done
from portal.transcoding.encoding.transcode import PassOutput, make_renditions
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
        with skipped_in_outage():
            return await is_overtaken(self.job_id)
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


@dataclass(slots=True)
class PassRuns:
    """The runs of a pass that encodes renditions of these `names`, for its own worker.

    A pass that `may_share` leaves parts of itself to others that have nothing to do, and makes
    what they leave. The share `begun_share` of a film of this duration was made before.
    """

    attempt: OpenAttempt
    tools: Tools
    heartbeat: Heartbeat
    names: list[str]
    duration_s: float
    may_share: bool
    is_shared: bool = False
    begun_share: float = 0.0
    _plain: Run | None = None
    _made: Mapping[str, MadeRendition] = field(default_factory=dict)

    async def begin(self, starts_s: Starts) -> None:
        """Keep what an earlier attempt made, if that is of use."""
        attempt, storage = self.attempt, self.tools.storage
        self.may_share = self.may_share and starts_s is not None
        shared_s = list(starts_s) if starts_s and self.may_share else None
        folder = await runs.prepare(attempt, self.names, shared_s)
        self.heartbeat.folders.clear()
        if folder != attempt.number:
            self.heartbeat.folders.update(dict.fromkeys(self.names, folder))
        if self.may_share:
            left = await runs.left(attempt.video_id)
            self.begun_share = left.share if left else 1.0
            return
        made = await runs.find_made(attempt.video_id, self.names, storage)
        for one in made.values():
            made_s = float(one.time_s(one.segments[-1].facts.until_ticks))
            self.begun_share = made_s / self.duration_s
        await runs.keep(attempt.video_id, self.names, made)
        prefix = f"{attempt.number}-" if made else ""
        self._plain = Run(starts_s=starts_s, made=made, prefix=prefix)

    async def next(self) -> Run | None:
        """The first run that nobody makes, or a part of one; None when all are made.

        Waits for others to end theirs. What they made that does not fit is made again.
        """
        if self.may_share:
            return await retry_outage(self._next)
        plain, self._plain = self._plain, None
        return plain

    async def _next(self) -> Run | None:
        video_id, storage = self.attempt.video_id, self.tools.storage
        while True:
            held = await runs.claim_first(video_id, worker=self.tools.worker, storage=storage)
            if held is not None:
                self.heartbeat.held = held
                return held.run
            if await runs.split(video_id=video_id):
                continue
            left = await runs.left(video_id)
            if left is not None:
                await self.heartbeat.report(Stage.TRANSCODING, percent_of(left.share), left.eta_s)
                await asyncio.sleep(LOOK_S)
                continue
            self._made = await runs.find_made(video_id, self.names, storage)
            number = min(broken_joins(self._made), default=None)
            if number is None:
                return None
            logger.warning("Runs do not fit", extra={"action": "runs_do_not_fit", "at": number})
            await runs.make_again_from(self.attempt, number)

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        """A run is made; what it stored is recorded before that is said."""
        self.is_shared = self.is_shared or run.first > 0 or run.last is not None
        held, self.heartbeat.held = self.heartbeat.held, None
        if held is not None:
            await retry_outage(self.heartbeat.beat)
            await retry_outage(partial(held.finish, faults=faults, network_faults=network_faults))

    async def whole(self) -> Whole | None:
        """All that was made, if it was shared."""
        if not self.may_share:
            return None
        faults, network_faults = await runs.faults(self.attempt.video_id)
        return Whole(renditions=self._made, faults=faults, network_faults=network_faults)


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
        try:
            return await self._make()
        except NotContinuable as exc:
            told = {"action": "begins_anew", "attempt": self.attempt.number}
            logger.warning("Pass begins anew: %s", exc, extra=told)
            await self.heartbeat.begin_anew()
            return await self._make()

    async def _make(self) -> PassOutcome:
        attempt, tools = self.attempt, self.tools
        copied = {rung.name for rung in self.plan.video if rung.copied}
        encoded = [name for name in self.wanted if name not in copied]
        expected_s = self.plan.encode_s(self.wanted)
        shared = PassRuns(
            attempt=attempt,
            tools=tools,
            heartbeat=self.heartbeat,
            names=encoded,
            duration_s=self.source.duration_s,
            may_share=expected_s * tools.pace.ratio >= runs.SHARED_FROM_S,
        )
        meter, folders = WorkMeter(self.heartbeat.report, tools.limits), self.heartbeat.folders
        job_id = attempt.video.complete_job_id if attempt.wanted else attempt.video.first_job_id
        preemption = Preemption(job_id=job_id or 0, is_first=not attempt.wanted)

        async def report(stage: Stage, percent: float, eta_s: float | None) -> None:
            preemption.stage, preemption.seconds_left = stage, eta_s
            meter.begun_share = shared.begun_share
            await meter.follow(stage, percent, eta_s)

        async with task_group() as tasks:
            watching = tasks.create_task(preemption.watch()) if encoded else None
            output = await make_renditions(
                self.source_url,
                self.source,
                self.plan,
                wanted=self.wanted,
                is_first=not attempt.wanted,
                reference=self.reference,
                sink=StorageSink(tools.storage, attempt.video_id, attempt, attempt.number, folders),
                work_dir=tools.work_dir,
                on_progress=report,
                runs=shared,
                on_made=self.heartbeat.note_stored,
            )
            if watching:
                watching.cancel()
        if encoded and not shared.is_shared:
            expected_s *= 1 - shared.begun_share
            tools.pace.note(expected_s=expected_s, taken_s=meter.worked_s)
        return PassOutcome(output=output, folders=folders)
