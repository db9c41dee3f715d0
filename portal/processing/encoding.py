"""Make the renditions of a pass: resume after recorded segments, and give way to other videos.

A pass is preempted by a video that waits to be playable and is due before it.
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
from portal.processing.sources import Source
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
from portal.transcoding.probing.probe import SourceLimits

logger = logging.getLogger(__name__)

# A pass takes seconds to start, so it isn't preempted before it has made some segments.
MIN_RUN_S = 3.0
LOOK_S = 1.0
# Looks at the queue before a pass is preempted: by the second one, a free slot has taken the job.
LOOKS = 2
# Remaining time of a first pass that is finished rather than preempted.
SOON_S = 10.0
JUDGED_AFTER_S = 60.0
# Factor of the limit that an estimate has to exceed, because other work may slow the machine down.
TOLERANCE = 2.0
# ffmpeg reports progress twice a second, unless it is paused.
MAX_STEP_S = 5.0


class Preempted(Exception):
    """A pass ended early for another video; it resumes when its job runs again."""


@dataclass(slots=True)
class Preemption:
    """Check whether a job's pass has to end for another video; `is_first` for a first pass.

    A pass that completes a ladder always gives way; a first pass only if it isn't done soon, by its
    latest progress.
    """

    job_id: int
    is_first: bool
    stage: Stage = Stage.TRANSCODING
    seconds_left: float | None = None

    async def watch(self) -> None:
        """Run beside the pass. Raises `Preempted` when another video has to go first."""
        await asyncio.sleep(MIN_RUN_S)
        looks_in_a_row = 0
        while looks_in_a_row < LOOKS:
            await asyncio.sleep(LOOK_S)
            has_to_end = not self._is_done_soon() and await self._is_overtaken()
            looks_in_a_row = looks_in_a_row + 1 if has_to_end else 0
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
class WorkMeter:
    """Meter of a pass, which rejects a source that takes too much work.

    `worked_s` is the time that ffmpeg has worked, without pauses. `begun_share` is the share of the
    pass that was made before.
    """

    report: OnProgress
    limits: SourceLimits
    begun_share: float = 0.0
    worked_s: float = 0.0
    seen_at: float = field(default_factory=monotonic)

    async def follow(self, stage: Stage, percent: float, eta_s: float | None) -> None:
        """Measure the progress, and report it. Raises `SourceRejected`."""
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
            detail = f"{share:.4%} of the pass took {self.worked_s:.0f} s"
            raise self.limits.rejection(RejectCode.TOO_MUCH_WORK, detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Clients that a worker's passes use, and limits of sources."""

    worker: str
    storage: Storage
    queue: Queue
    limits: SourceLimits
    work_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOutcome:
    """Output of a pass; `folders` has other attempts' numbers for renditions in their folders."""

    output: PassOutput
    folders: Mapping[str, int]

    @property
    def master(self) -> str:
        """Return the text of a master playlist in the folder of the attempt."""
        entries = []
        for rendition in self.output.renditions:
            number = self.folders.get(rendition.name)
            entries.append(("" if number is None else f"../{number}/", rendition))
        return master_playlist(entries)


@dataclass(slots=True)
class PassRuns:
    """Runs of a pass over the renditions `names`, as the worker of the pass makes them.

    A pass that `may_share` has runs that idle workers can split and make. `begun_share` is the
    share of the film that was made before.
    """

    attempt: OpenAttempt
    tools: Tools
    heartbeat: Heartbeat
    names: list[str]
    duration_s: float
    may_share: bool
    begun_share: float = 0.0
    _plain: Run | None = None
    _made: Mapping[str, MadeRendition] = field(default_factory=dict)

    async def begin(self, starts_s: Starts) -> None:
        """Keep the usable segments of an earlier attempt."""
        attempt = self.attempt
        self.may_share = self.may_share and starts_s is not None
        shared_s = list(starts_s) if starts_s and self.may_share else None
        folder = await runs.prepare(attempt, self.names, shared_s)
        self.heartbeat.folders.clear()
        if folder != attempt.number:
            self.heartbeat.folders.update(dict.fromkeys(self.names, folder))
        if self.may_share:
            unmade = await runs.left(attempt.video_id)
            self.begun_share = unmade.share if unmade else 1.0
            return
        recorded = await runs.find_made(attempt.video_id, self.names, self.tools.storage)
        for rendition in recorded.values():
            made_s = float(rendition.time_s(rendition.segments[-1].facts.until_ticks))
            self.begun_share = made_s / self.duration_s
        await runs.keep(attempt.video_id, self.names, recorded)
        prefix = f"{attempt.number}-" if recorded else ""
        self._plain = Run(starts_s=starts_s, made=recorded, prefix=prefix)

    async def next(self) -> Run | None:
        """Return the first free run, or a part of another one; None when all runs are made.

        Waits for the runs of other workers. Segments of theirs that don't join are made again.
        """
        if self.may_share:
            return await retry_outage(self._next)
        run = self._plain
        self._plain = None
        return run

    async def _next(self) -> Run | None:
        video_id = self.attempt.video_id
        storage = self.tools.storage
        while True:
            held = await runs.claim_first(video_id, worker=self.tools.worker, storage=storage)
            if held is not None:
                self.heartbeat.held = held
                return held.run
            if await runs.split(video_id=video_id):
                continue
            progress = await runs.left(video_id)
            if progress is not None:
                percent = percent_of(progress.share)
                await self.heartbeat.report(Stage.TRANSCODING, percent, progress.eta_s)
                await asyncio.sleep(LOOK_S)
                continue
            self._made = await runs.find_made(video_id, self.names, storage)
            number = min(broken_joins(self._made), default=None)
            if number is None:
                return None
            logger.warning("Runs do not fit", extra={"action": "runs_do_not_fit", "at": number})
            await runs.make_again_from(self.attempt, number)

    async def done(self, run: Run, *, faults: int, network_faults: int) -> None:
        """Record that a run is made, after its segments are recorded."""
        held = self.heartbeat.held
        self.heartbeat.held = None
        if held is not None:
            await retry_outage(self.heartbeat.beat)
            await retry_outage(partial(held.finish, faults=faults, network_faults=network_faults))

    async def whole(self) -> Whole | None:
        """Return all renditions of a shared pass; None for other passes."""
        if not self.may_share:
            return None
        faults, network_faults = await runs.faults(self.attempt.video_id)
        return Whole(renditions=self._made, faults=faults, network_faults=network_faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingRun:
    """Pass that makes the `targets` of a plan from a source, under the lease of an attempt."""

    attempt: OpenAttempt
    tools: Tools
    heartbeat: Heartbeat
    source: Source
    plan: Plan
    targets: tuple[str, ...]
    reference: MediaPlaylist | None = None

    async def make(self) -> PassOutcome:
        """Make the renditions, resuming after usable segments of an earlier attempt.

        Raises as `make_renditions` does, `Preempted`, or `LeaseLost`.
        """
        try:
            return await self._make_once()
        except NotContinuable as exc:
            fields = {"action": "begins_anew", "attempt": self.attempt.number}
            logger.warning("Pass restarts: %s", exc, extra=fields)
            await self.heartbeat.restart()
            return await self._make_once()

    async def _make_once(self) -> PassOutcome:
        attempt = self.attempt
        tools = self.tools
        folders = self.heartbeat.folders
        copied = {rung.name for rung in self.plan.video if rung.copied}
        encoded = [name for name in self.targets if name not in copied]
        shared = PassRuns(
            attempt=attempt,
            tools=tools,
            heartbeat=self.heartbeat,
            names=encoded,
            duration_s=self.source.probe.duration_s,
            may_share=self.plan.encode_s(self.targets) >= runs.SHARED_FROM_S,
        )
        meter = WorkMeter(self.heartbeat.report, tools.limits)
        job_id = attempt.video.complete_job_id if attempt.targets else attempt.video.first_job_id
        preemption = Preemption(job_id=job_id or 0, is_first=not attempt.targets)

        async def report(stage: Stage, percent: float, eta_s: float | None) -> None:
            preemption.stage = stage
            preemption.seconds_left = eta_s
            meter.begun_share = shared.begun_share
            await meter.follow(stage, percent, eta_s)

        async with task_group() as tasks:
            watching = tasks.create_task(preemption.watch()) if encoded else None
            output = await make_renditions(
                self.source.url,
                self.source.probe,
                self.plan,
                wanted=self.targets,
                is_first=not attempt.targets,
                reference=self.reference,
                sink=StorageSink(tools.storage, attempt.video_id, attempt, attempt.number, folders),
                work_dir=tools.work_dir,
                on_progress=report,
                runs=shared,
                on_made=self.heartbeat.note_stored,
            )
            if watching:
                watching.cancel()
        return PassOutcome(output=output, folders=folders)
