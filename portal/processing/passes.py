"""A worker's passes over a source: the first makes a video playable, later ones its other sizes.

A pass runs under a lease and leaves its attempt closed however it ends. Whatever it writes lies
in a folder of its own but for the master playlist, which has one address from the first pass on
and is written again after each later one. Rows are committed before a master playlist names
them, so a worker killed at any moment loses at most the renditions it was making.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
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
from portal.processing.sources import SourceChanged, SourceInterrupted, probed_source
from portal.processing.tries import is_interruption
from portal.storage.objects import output_prefix
from portal.telemetry.tracing import span
from portal.text import error_words
from portal.transcoding import errors
from portal.transcoding.encoding.pictures import make_storyboard
from portal.transcoding.planning.ladder import Plan, plan_renditions
from portal.transcoding.planning.storyboard import plan_storyboard
from portal.transcoding.probing.facts import Probe

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class EncoderNeeded:
    """A source was looked into; its first pass takes more than copying."""

    plan: Plan
    expected_s: float


@dataclass(frozen=True, slots=True)
class Pass:
    """An attempt, to be carried out with these tools."""

    attempt: OpenAttempt
    tools: Tools

    async def make_playable(self, *, may_encode: bool = True) -> None:
        """Carry out a first pass: the video becomes ready, or failed if its source is at fault.

        One that takes more than copying is left to another job unless this one `may_encode`.
        """
        attempt = self.attempt
        async with self._closed_afterwards():
            try:
                work = partial(self._first_pass, may_encode=may_encode)
                found, made = await self._under_lease(work)
            except (errors.SourceRejected, SourceChanged) as exc:
                logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
                failure = Failure(str(exc.code), exc.detail)
                await attempts.reject(attempt, failure, message=exc.message)
                return
            if isinstance(made, EncoderNeeded):
                await self._leave_encode(made)
            else:
                await self._publish(found, made)

    async def _publish(self, found: Probe, made: PassOutcome) -> None:
        attempt, queue = self.attempt, self.tools.queue
        with span("publish"):
            await retry_outage(
                lambda: renditions.publish(
                    attempt, made.output, found, folders=made.folders, queue=queue
                )
            )
        logger.info("Video is ready", extra={"action": "video_ready"})

    async def _leave_encode(self, needed: EncoderNeeded) -> None:
        attempt, plan, queue = self.attempt, needed.plan, self.tools.queue
        expected_s = needed.expected_s
        await retry_outage(
            lambda: renditions.queue_encode(attempt, plan, expected_s=expected_s, queue=queue)
        )
        told = {"action": "encode_queued", "expected_s": round(expected_s, 1)}
        logger.info("Encode is queued", extra=told)

    async def make_missing(self) -> None:
        """Carry out a later pass, and see to it that another follows if more is missing.

        The video stays ready whatever happens; a source at fault fails what is missing.
        """
        attempt = self.attempt
        async with self._closed_afterwards():
            try:
                is_done = await self._make_next()
            except (errors.SourceRejected, SourceChanged) as exc:
                logger.warning("Source refused: %s", exc.code, extra={"action": "source_rejected"})
                # What an earlier pass committed may not have reached the playlist yet.
                await put_master(attempt.video, self.tools.storage)
                await renditions.fail_missing(attempt, Failure(str(exc.code), exc.detail))
            except LeaseLost:
                # A master playlist may have been half written when it was lost.
                await put_master(attempt.video, self.tools.storage)
                raise
            else:
                logger.info("Pass is done", extra={"action": "pass_done", "is_last": is_done})

    async def _make_next(self) -> bool:
        """Make what the attempt was begun for; True when nothing is left to do."""
        attempt, queue = self.attempt, self.tools.queue
        if attempt.makes_storyboard:
            await self._under_lease(self._make_storyboard)
            finish = partial(renditions.finish_storyboard, attempt, queue=queue)
        else:
            await self._under_lease(self._later_pass)
            finish = partial(renditions.finish_pass, attempt, queue=queue)
        return await retry_outage(finish)

    @asynccontextmanager
    async def _closed_afterwards(self) -> AsyncIterator[None]:
        """Leave the attempt closed however its work ends; a lost lease is only logged.

        Files written of a video that was deleted meanwhile are removed.
        """
        attempt, outcome, failure = self.attempt, Outcome.FAILED, None
        logger.info("Pass begun", extra={"action": "pass_begun", "attempt": attempt.number})
        try:
            yield
        except LeaseLost:
            # It may be that of a run alone.
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
                outcome, failure = Outcome.HANDED_BACK, _reason(exc)
                why = failure.detail if failure else "told to end"
                logger.warning("Pass released: %s", why, extra={"action": "handed_back"})
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
    ) -> tuple[Probe, PassOutcome | EncoderNeeded]:
        async with self._probed_source() as (source_url, found):
            try:
                made = await self._make_first(source_url, found, heartbeat, may_encode=may_encode)
            except errors.CopyUndeliverable as exc:
                told = {"action": "copy_undeliverable"}
                logger.info("Copy is undeliverable: %s", exc, extra=told)
                self.attempt.video.notes.append(errors.Note.COPY_UNDELIVERABLE)
                made = await self._make_first(source_url, found, heartbeat, may_encode=may_encode)
        if isinstance(made, PassOutcome):
            prefix = output_prefix(self.attempt.video_id, self.attempt.number)
            await write_master(self.tools.storage, prefix, made.master)
        return found, made

    async def _make_first(
        self, source_url: str, found: Probe, heartbeat: Heartbeat, *, may_encode: bool
    ) -> PassOutcome | EncoderNeeded:
        """Plan a ladder and make the first of it. What is known to be undeliverable is encoded."""
        may_copy = errors.Note.COPY_UNDELIVERABLE not in self.attempt.video.notes
        plan = plan_renditions(found, may_copy=may_copy)
        limits, expected_s = self.tools.limits, plan.ladder_s
        if 0 < limits.max_transcode_s < expected_s:
            detail = f"{expected_s:.0f} s are expected"
            raise limits.rejection(errors.RejectCode.TOO_MUCH_WORK, detail)
        wanted = plan.first_pass(cautious=self.attempt.is_cautious)
        if plan.encode_s(wanted) > 0 and not may_encode:
            return EncoderNeeded(plan, self.tools.pace.ratio * plan.encode_s(wanted))
        await renditions.plan(self.attempt, plan, wanted=wanted)
        return await EncodingRun(
            attempt=self.attempt,
            tools=self.tools,
            heartbeat=heartbeat,
            source_url=source_url,
            source=found,
            plan=plan,
            wanted=wanted,
        ).make()

    async def _later_pass(self, heartbeat: Heartbeat) -> None:
        attempt = self.attempt
        if attempt.wanted:
            made = await self._make_wanted(heartbeat)
            await retry_outage(lambda: renditions.add(attempt, made.output, folders=made.folders))
        await attempts.hold(attempt)
        await put_master(attempt.video, self.tools.storage)

    async def _make_wanted(self, heartbeat: Heartbeat) -> PassOutcome:
        attempt = self.attempt
        async with self._probed_source() as (source_url, found):
            plan = plan_renditions(found, may_copy=False)
            planned = {rung.name for rung in plan.video}
            await renditions.forget(attempt, set(attempt.wanted) - planned)
            wanted = tuple(name for name in attempt.wanted if name in planned)
            lowest = await renditions.lowest_complete(attempt.video)
            reference = (await open_rendition(lowest, self.tools.storage)).playlist
            return await EncodingRun(
                attempt=attempt,
                tools=self.tools,
                heartbeat=heartbeat,
                source_url=source_url,
                source=found,
                plan=plan,
                wanted=wanted,
                reference=reference,
            ).make()

    async def _make_storyboard(self, heartbeat: Heartbeat) -> None:
        video, tools = self.attempt.video, self.tools
        lowest = await open_rendition(await renditions.lowest_complete(video), tools.storage)
        size, duration_s = (video.width or 1, video.height or 1), lowest.playlist.duration_s
        await make_storyboard(
            lowest,
            plan_storyboard(*size, duration_s=duration_s),
            sink=StorageSink(tools.storage, video.id, self.attempt, video.published_attempt or 0),
            work_dir=tools.work_dir,
            on_progress=heartbeat.report,
        )

    def _probed_source(self) -> AbstractAsyncContextManager[tuple[str, Probe]]:
        attempt, tools = self.attempt, self.tools
        return probed_source(
            attempt.video, tools.storage, tools.limits, interruptions=attempt.interruptions
        )


def _reason(exc: BaseException) -> Failure | None:
    """Why a pass is to be repeated, for the operator; None when the worker was told to end."""
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
    """Make a video playable, or failed, as one that was tried often enough; else nothing.

    One that copying does not make playable is left to a job that `may_encode`. Raises
    `HeldByAnother` and whatever breaks a pass off that is to be repeated.
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
    """Make what is next of a playable video's ladder, in one pass; raises as `make_playable`."""
    attempt = await renditions.begin_next(video_id, worker=tools.worker)
    if attempt is not None:
        await Pass(attempt, tools).make_missing()
