"""Passes of a worker over a source: the first makes a video playable, later ones its other sizes.

A pass runs under a lease, and closes its attempt however it ends. Each attempt writes into its own
folder, except for the master playlist, which has one address from the first pass on and is written
again after each later pass. Rows are committed before a master playlist names their files, so a
killed worker loses at most the renditions that it was making.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from uuid import UUID

from portal.database.connection import retry_outage, transaction
from portal.database.models import Outcome
from portal.database.outages import is_outage
from portal.errors import DatabaseUnavailable, Unavailable
from portal.processing import attempts, renditions
from portal.processing.attempts import Failure, LeaseLost, OpenAttempt
from portal.processing.encoding import EncodingRun, PassOutcome, Preempted, Tools
from portal.processing.outputs import StorageSink, open_rendition, put_master, write_master
from portal.processing.progress import Heartbeat, under_lease
from portal.processing.removal import remove_again
from portal.processing.sources import (
    Source,
    SourceChanged,
    SourceInterrupted,
    probed_source,
)
from portal.processing.tries import is_interruption
from portal.storage.objects import output_prefix
from portal.telemetry.tracing import span
from portal.text import error_words
from portal.transcoding import errors
from portal.transcoding.encoding.pictures import make_storyboard
from portal.transcoding.planning.ladder import Plan, plan_renditions
from portal.transcoding.planning.storyboard import plan_storyboard

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass of a worker, under the lease of an attempt."""

    attempt: OpenAttempt
    tools: Tools

    async def make_playable(self, *, may_encode: bool = True) -> None:
        """Carry out a first pass: the video becomes ready, or failed if its source is invalid.

        A pass that has to encode is left to another job unless this one `may_encode`.
        """
        attempt = self.attempt
        async with self._closed_afterwards():
            try:
                work = partial(self._first_pass, may_encode=may_encode)
                source, result = await self._under_lease(work)
            except (errors.SourceRejected, SourceChanged) as exc:
                logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
                failure = Failure(str(exc.code), exc.detail)
                await attempts.reject(attempt, failure, message=exc.message)
                return
            if isinstance(result, Plan):
                await self._queue_encode(source, result)
            else:
                await self._publish(source, result)

    async def _publish(self, source: Source, outcome: PassOutcome) -> None:
        publish = partial(
            renditions.publish,
            self.attempt,
            outcome.output,
            source,
            folders=outcome.folders,
            queue=self.tools.queue,
        )
        with span("publish"):
            await retry_outage(publish)
        logger.info("Video is ready", extra={"action": "video_ready"})

    async def _queue_encode(self, source: Source, plan: Plan) -> None:
        queue_encode = partial(
            renditions.queue_encode, self.attempt, plan, source, queue=self.tools.queue
        )
        await retry_outage(queue_encode)
        fields = {"action": "encode_queued", "video_id": str(self.attempt.video_id)}
        logger.info("Encode is queued", extra=fields)

    async def make_missing(self) -> None:
        """Carry out a later pass, and queue another one if renditions are missing.

        The video stays ready. An invalid source fails the missing renditions.
        """
        attempt = self.attempt
        async with self._closed_afterwards():
            try:
                is_done = await self._make_next()
            except (errors.SourceRejected, SourceChanged) as exc:
                logger.warning("Source refused: %s", exc.code, extra={"action": "source_rejected"})
                # The playlist may lack renditions that an earlier pass committed.
                await put_master(attempt.video, self.tools.storage)
                await renditions.fail_missing(attempt, Failure(str(exc.code), exc.detail))
            except LeaseLost:
                # The playlist may be older than the rows when the lease was lost.
                await put_master(attempt.video, self.tools.storage)
                raise
            else:
                logger.info("Pass is done", extra={"action": "pass_done", "is_last": is_done})

    async def _make_next(self) -> bool:
        """Make the attempt's targets, and return whether the ladder is complete."""
        attempt = self.attempt
        queue = self.tools.queue
        if attempt.makes_storyboard:
            await self._under_lease(self._make_storyboard)
            finish = partial(renditions.finish_storyboard, attempt, queue=queue)
        else:
            await self._under_lease(self._later_pass)
            finish = partial(renditions.finish_pass, attempt, queue=queue)
        return await retry_outage(finish)

    @asynccontextmanager
    async def _closed_afterwards(self) -> AsyncIterator[None]:
        """Close the attempt after the block, however it ends; a lost lease is only logged.

        If the video was deleted in the meantime, its new files are removed.
        """
        attempt = self.attempt
        outcome = Outcome.FAILED
        failure = None
        logger.info("Pass begun", extra={"action": "pass_begun", "attempt": attempt.number})
        try:
            yield
        except LeaseLost:
            # If only the lease of a run was lost, the attempt is still open.
            outcome = Outcome.HANDED_BACK
            logger.warning("Lease lost, work discarded", extra={"action": "lease_lost"})
        except Preempted:
            outcome = Outcome.HANDED_BACK
            logger.info(
                "Pass is preempted", extra={"action": "preempted", "attempt": attempt.number}
            )
            raise
        except errors.TranscodeFailed as exc:
            logger.warning("%s: %s", exc, exc.detail, extra={"action": "transcode_failed"})
            failure = Failure(exc.code, exc.detail)
            raise
        except BaseException as exc:
            if is_interruption(exc):
                outcome = Outcome.HANDED_BACK
                failure = _interruption_reason(exc)
                reason = failure.detail if failure else "the worker ends"
                logger.warning("Pass released: %s", reason, extra={"action": "handed_back"})
            else:
                failure = Failure("internal_error", type(exc).__name__)
            raise
        finally:
            if not await attempts.release(attempt, outcome, failure):
                video = attempt.video
                await remove_again(video.id, video.storage_key, queue=self.tools.queue)

    async def _under_lease(self, work: Callable[[Heartbeat], Awaitable[Result]]) -> Result:
        heartbeat = Heartbeat(self.attempt.video_id, self.attempt)
        return await under_lease(heartbeat, work(heartbeat))

    async def _first_pass(
        self, heartbeat: Heartbeat, *, may_encode: bool
    ) -> tuple[Source, PassOutcome | Plan]:
        make = partial(self._make_first, heartbeat=heartbeat, may_encode=may_encode)
        async with self._probed_source() as source:
            try:
                result = await make(source)
            except errors.CopyUndeliverable as exc:
                fields = {"action": "copy_undeliverable"}
                logger.info("Copy is undeliverable: %s", exc, extra=fields)
                source = replace(source, notes=(*source.notes, errors.Note.COPY_UNDELIVERABLE))
                result = await make(source)
        if isinstance(result, PassOutcome):
            prefix = output_prefix(self.attempt.video_id, self.attempt.number)
            await write_master(self.tools.storage, prefix, result.master)
        return source, result

    async def _make_first(
        self, source: Source, *, heartbeat: Heartbeat, may_encode: bool
    ) -> PassOutcome | Plan:
        """Plan a ladder, and make its first pass; return the plan if that needs an encoder.

        A source whose copy is known to be undeliverable is encoded.
        """
        may_copy = errors.Note.COPY_UNDELIVERABLE not in source.notes
        plan = plan_renditions(source.probe, may_copy=may_copy)
        limits = self.tools.limits
        if 0 < limits.max_transcode_s < plan.ladder_s:
            detail = f"The ladder is expected to take {plan.ladder_s:.0f} s."
            raise limits.rejection(errors.RejectCode.TOO_MUCH_WORK, detail)
        targets = plan.first_pass(cautious=self.attempt.is_cautious)
        if plan.encode_s(targets) > 0 and not may_encode:
            return plan
        await renditions.plan(self.attempt, plan, source, targets=targets)
        return await EncodingRun(
            attempt=self.attempt,
            tools=self.tools,
            heartbeat=heartbeat,
            source=source,
            plan=plan,
            targets=targets,
        ).make()

    async def _later_pass(self, heartbeat: Heartbeat) -> None:
        attempt = self.attempt
        if attempt.targets:
            outcome = await self._make_targets(heartbeat)
            add = partial(renditions.add, attempt, outcome.output, folders=outcome.folders)
            await retry_outage(add)
        await attempts.hold(attempt)
        await put_master(attempt.video, self.tools.storage)

    async def _make_targets(self, heartbeat: Heartbeat) -> PassOutcome:
        attempt = self.attempt
        async with self._probed_source() as source:
            plan = plan_renditions(source.probe, may_copy=False)
            planned = {rung.name for rung in plan.video}
            await renditions.forget(attempt, set(attempt.targets) - planned)
            targets = tuple(name for name in attempt.targets if name in planned)
            lowest = await renditions.lowest_complete(attempt.video)
            reference = (await open_rendition(lowest, self.tools.storage)).playlist
            return await EncodingRun(
                attempt=attempt,
                tools=self.tools,
                heartbeat=heartbeat,
                source=source,
                plan=plan,
                targets=targets,
                reference=reference,
            ).make()

    async def _make_storyboard(self, heartbeat: Heartbeat) -> None:
        video = self.attempt.video
        tools = self.tools
        lowest = await open_rendition(await renditions.lowest_complete(video), tools.storage)
        duration_s = lowest.playlist.duration_s
        await make_storyboard(
            lowest,
            plan_storyboard(video.width or 1, video.height or 1, duration_s=duration_s),
            sink=StorageSink(tools.storage, video.id, self.attempt, video.published_attempt or 0),
            work_dir=tools.work_dir,
            on_progress=heartbeat.report,
        )

    def _probed_source(self) -> AbstractAsyncContextManager[Source]:
        return probed_source(
            self.attempt.video,
            self.tools.storage,
            self.tools.limits,
            interruptions=self.attempt.interruptions,
        )


def _interruption_reason(exc: BaseException) -> Failure | None:
    """Return the reason of an interruption, for the operator; None if the worker ends."""
    cause = errors.without_signatures(error_words(exc.__cause__ or exc))
    if isinstance(exc, SourceInterrupted):
        return Failure(errors.FailCode.SOURCE_UNREACHABLE, cause)
    if isinstance(exc, errors.DiskFull):
        return Failure("disk_full", str(exc))
    if isinstance(exc, Unavailable):
        return Failure(exc.code, cause)
    if is_outage(exc):
        return Failure(DatabaseUnavailable.code, cause)
    return None


EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


async def make_playable(video_id: UUID, tools: Tools, *, may_encode: bool) -> None:
    """Make a processing video playable, or failed if its attempts are used up.

    A video that has to be encoded is left to a job that `may_encode`. Raises `HeldByAnother`, or
    the error that interrupted the pass, after which the job has to run again.
    """
    try:
        attempt = await attempts.begin(video_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        code = attempts.TRANSCODE_FAILED
        async with transaction():
            await attempts.fail_video(video_id, code=code, message=EXHAUSTED_MESSAGE)
        return
    if attempt:
        await Pass(attempt, tools).make_playable(may_encode=may_encode)


async def complete_ladder(video_id: UUID, tools: Tools) -> None:
    """Make the next part of a playable video's ladder, in one pass. Raises as `make_playable`."""
    attempt = await renditions.begin_next(video_id, worker=tools.worker)
    if attempt is not None:
        await Pass(attempt, tools).make_missing()
