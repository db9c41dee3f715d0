"""Encode the missing parts of a pass, by the worker of the pass or by a helper.

A pass is preempted by a video that waits to be playable and is due before it. A helper gives way to
every job.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NoReturn
from uuid import UUID

from portal.concurrency import running
from portal.database.connection import retry_outage
from portal.database.models import Version
from portal.database.outages import skipped_in_outage
from portal.database.work_models import PassInProgress
from portal.films import parts
from portal.films.attempts import ENDING_TIMEOUT_S, LeaseLost, OpenAttempt
from portal.films.outputs import StorageSink
from portal.films.parts import Lease
from portal.films.progress import ESTIMATE_AFTER_S, Heartbeat, Progress, Stage, beating
from portal.films.removal import remove_again
from portal.films.sources import SourceChanged, probed_source
from portal.queue.jobs import RunAgain
from portal.queue.rows import is_overtaken
from portal.queue.tools import Tools
from portal.transcoding import errors
from portal.transcoding.encoding.encode import encode_part
from portal.transcoding.encoding.ffmpeg import OnFfmpegProgress, RunReport
from portal.transcoding.encoding.parts import PartsDontJoin, Pass, Rendition
from portal.transcoding.planning.ladder import frame_step, plan_renditions
from portal.transcoding.probing.probe import SourceLimits

logger = logging.getLogger(__name__)

# A pass takes seconds to start, so it isn't preempted before it has made some segments.
MIN_RUN_S = 3.0
LOOK_S = 1.0
# Looks at the queue before a pass is preempted: by the second one, a free slot has taken the job.
LOOKS = 2
# Remaining time of a first pass that is finished rather than preempted.
SOON_S = 10.0
# Each part is decoded from the key frame before it. Parts of a film with longer groups of pictures
# would decode most of it several times.
LONGEST_GROUP_S = 60.0
JUDGED_AFTER_S = 60.0
# Factor of the limit that an estimate has to exceed, because other work may slow the machine down.
TOLERANCE = 2.0
# ffmpeg reports progress twice a second, unless it is paused.
MAX_STEP_S = 5.0
# Errors that the source, or another worker, may have caused.
FAULTS = (PartsDontJoin, SourceChanged, errors.SourceRejected, errors.TranscodeFailed)


class Preempted(RunAgain):
    """A pass ended early for another video; it resumes when its job runs again."""


async def watch_queue(job_id: int, is_done_soon: Callable[[], bool]) -> NoReturn:
    """Raise `Preempted` when another video has to go before this job, unless that is done soon."""
    await asyncio.sleep(MIN_RUN_S)
    looks_in_a_row = 0
    while looks_in_a_row < LOOKS:
        await asyncio.sleep(LOOK_S)
        has_to_end = not is_done_soon() and await _is_overtaken(job_id)
        looks_in_a_row = looks_in_a_row + 1 if has_to_end else 0
    raise Preempted


async def _is_overtaken(job_id: int) -> bool:
    with skipped_in_outage():
        return await is_overtaken(job_id)
    return False


@dataclass(slots=True)
class WorkMeter:
    """Meter of a pass, which rejects a source that takes too much work.

    `worked_s` is the time that ffmpeg has worked, without pauses.
    """

    limits: SourceLimits
    worked_s: float = 0.0
    seen_at: float = field(default_factory=monotonic)

    def follow(self, share: float) -> None:
        """Measure the time for the share of the film encoded so far. Raises `SourceRejected`."""
        now = monotonic()
        self.worked_s += min(now - self.seen_at, MAX_STEP_S)
        self.seen_at = now
        limit_s = self.limits.max_transcode_s
        if not limit_s or share <= 0 or self.worked_s < JUDGED_AFTER_S:
            return
        expected_s = self.worked_s / share
        if expected_s > TOLERANCE * limit_s:
            detail = f"{share:.4%} of the pass took {self.worked_s:.0f} s"
            raise self.limits.rejection(errors.RejectCode.TOO_MUCH_WORK, detail)


async def encode_missing(
    of_pass: Pass, attempt: OpenAttempt, *, may_divide: bool, progress: Progress, tools: Tools
) -> tuple[RunReport, Mapping[str, Rendition], int]:
    """Encode a pass in parts, or go on with one that an earlier attempt began.

    Other workers may take parts, for which it waits; parts that they leave are encoded here. A pass
    that may not be divided is one part. Returns ffmpeg's report about the whole film, by name the
    renditions with all segments, and the number of the attempt whose folder has them. Raises what
    `encode_part` raises, `LeaseLost`, and `SourceRejected` if the encoding takes much longer than
    the limits of sources allow.
    """
    if not of_pass.rungs:
        return RunReport(), {}, attempt.number
    group_s = of_pass.probe.video.max_key_distance_s or 0.0
    may_divide = may_divide and group_s <= LONGEST_GROUP_S
    expected_s = of_pass.plan.encode_s(of_pass.names) if may_divide else 0.0
    row = await parts.prepare(attempt, of_pass.names, of_pass.starts_s, expected_s=expected_s)
    claim = partial(parts.claim, row.version_id, worker=tools.worker)
    meter = WorkMeter(tools.limits)
    encoded_s = 0.0
    while True:
        lease, state = await retry_outage(claim)
        if lease is not None:
            report_progress = _reporter(of_pass, lease, state, progress, meter, encoded_s)
            await _encode_leased(
                of_pass,
                row,
                lease,
                video_id=attempt.video_id,
                own_attempt=attempt.number,
                tools=tools,
                on_progress=report_progress,
            )
            first_s, until_s = lease.part.span_s(of_pass)
            encoded_s += until_s - first_s
        elif state.live_parts:
            progress.reach(Stage.TRANSCODING, state.share_stored)
            await asyncio.sleep(LOOK_S)
        else:
            break
    renditions = await parts.stored_renditions(row, attempt.video_id, tools.storage)
    step = frame_step(of_pass.probe.video.fps)
    report = await parts.whole_report(row.version_id, renditions, step=step)
    return report, renditions, row.folder


def _reporter(
    of_pass: Pass,
    lease: Lease,
    state: parts.PassState,
    progress: Progress,
    meter: WorkMeter,
    encoded_s: float,
) -> OnFfmpegProgress:
    """Return the function that takes ffmpeg's position in a part, and sets the pass's progress.

    `encoded_s` is the length of the parts that this worker has made.
    """
    first_s, until_s = lease.part.span_s(of_pass)
    duration_s = of_pass.probe.duration_s
    began_at = monotonic()

    async def report(written_s: float) -> None:
        part_s = min(max(written_s - first_s, 0.0), until_s - first_s)
        share = min(1.0, state.share_stored + part_s / duration_s)
        elapsed_s = monotonic() - began_at
        left_s = None
        if elapsed_s >= ESTIMATE_AFTER_S and part_s > 0:
            left_s = elapsed_s / part_s * duration_s * (1.0 - share) / (state.live_parts + 1)
        progress.reach(Stage.TRANSCODING, share, left_s)
        meter.follow((encoded_s + part_s) / duration_s)

    return report


async def _encode_leased(
    of_pass: Pass,
    row: PassInProgress,
    lease: Lease,
    *,
    video_id: UUID,
    own_attempt: int | None,
    tools: Tools,
    on_progress: OnFfmpegProgress,
) -> None:
    """Encode a part while its lease is renewed, and record its segments; then end the lease.

    `own_attempt` is the number of the pass's attempt, None for a helper.
    """
    part = lease.part
    fields = {"action": "part_begun", "first": part.first, "until": part.until}
    logger.info("Part begun", extra=fields)
    heartbeat = Heartbeat(
        lease.version_id, row.folder, own_attempt, renew=partial(parts.renew, lease)
    )
    try:
        inits = await parts.stored_inits(row, video_id, tools.storage) if part.first else None
        async with beating(heartbeat):
            report, _ = await encode_part(
                of_pass,
                part,
                inits=inits,
                sink=StorageSink(tools.storage, video_id, row.folder),
                work_dir=tools.work_dir,
                on_progress=on_progress,
                on_stored=heartbeat.report_stored,
            )
        await retry_outage(heartbeat.beat)
        await retry_outage(partial(parts.finish, lease, report))
    except FAULTS:
        await retry_outage(partial(parts.fail, lease, is_helper=own_attempt is None))
        raise
    finally:
        await retry_outage(partial(parts.release, lease), timeout_s=ENDING_TIMEOUT_S)


async def help_with(version_id: UUID, tools: Tools) -> None:
    """Encode parts of a pass that another worker carries out, until no segment is unclaimed.

    Raises `Preempted` if any other job waits, or the error that ended a part. If the pass ends
    meanwhile, the helper ends, too.
    """
    version = await Version.get_or_none(id=version_id)
    row = await PassInProgress.get_or_none(version_id=version_id)
    if version is None or row is None:
        return
    try:
        async with (
            probed_source(version, tools) as source,
            running(watch_queue(tools.job_id, is_done_soon=lambda: False)),
        ):
            plan = plan_renditions(source.probe)
            of_pass = Pass(
                source_url=source.url,
                probe=source.probe,
                plan=plan,
                rungs=[rung for rung in plan.video if rung.name in row.renditions],
                starts_s=row.starts_s,
            )
            claim = partial(parts.claim, version_id, worker=tools.worker, is_helper=True)
            while (lease := (await retry_outage(claim))[0]) is not None:
                await _encode_leased(
                    of_pass,
                    row,
                    lease,
                    video_id=version.video_id,
                    own_attempt=None,
                    tools=tools,
                    on_progress=ignore_progress,
                )
    except LeaseLost:
        logger.info("Help is no longer needed", extra={"action": "help_ended"})
    except FAULTS as exc:
        logger.warning("Part failed: %s", exc, extra={"action": "part_failed"})
        raise
    finally:
        if not await Version.exists(id=version_id):
            await remove_again(version.video_id, version.storage_key)


async def ignore_progress(written_s: float) -> None:
    """Ignore progress."""
