"""The first pass over a file, which makes its version playable, or failed if it is invalid.

The files of a pass are stored before its rows are committed, and its master playlist last, so a
killed worker loses at most the part that it was encoding.
"""

import logging
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from portal.database.connection import retry_outage, transaction
from portal.database.models import Version, VideoStatus
from portal.films import attempts, renditions
from portal.films.attempts import Failure, OpenAttempt
from portal.films.makers import maker_of
from portal.films.outputs import master_beside, write_master
from portal.films.passes import closed_afterwards
from portal.films.progress import held
from portal.films.removal import remove_source
from portal.films.sources import SourceChanged
from portal.films.version_hooks import VersionHook
from portal.films.versions import is_current
from portal.queue.tools import Tools
from portal.storage.objects import output_prefix
from portal.telemetry.tracing import span
from portal.transcoding import errors
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.planning.ladder import Plan

logger = logging.getLogger(__name__)

EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


async def publish_version(
    version_id: UUID, tools: Tools, *, may_encode: bool, hooks: Sequence[VersionHook]
) -> None:
    """Make a processing version playable, or failed if its attempts are used up.

    The `hooks` follow when viewers get it. A version that has to be encoded is left to a job that
    `may_encode`. The file of a failed
    replacement is removed, because nothing uses it any more. Raises `HeldByAnother`, or the error
    that interrupted the pass, after which the job has to run again.
    """
    try:
        attempt = await attempts.begin(version_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        attempt = None
        code = attempts.TRANSCODE_FAILED
        async with transaction():
            await attempts.fail_version(version_id, code=code, message=EXHAUSTED_MESSAGE)
    if attempt:
        await make_playable(attempt, tools, may_encode=may_encode, hooks=hooks)
    failed = await Version.get_or_none(id=version_id, status=VideoStatus.FAILED)
    if failed is not None and not await is_current(failed):
        await remove_source(failed, tools.storage)


async def make_playable(
    attempt: OpenAttempt, tools: Tools, *, may_encode: bool = True, hooks: Sequence[VersionHook]
) -> None:
    """Make a version's first rendition; it is then ready, or failed if its source is invalid.

    If it has to be encoded and this job may not encode (`may_encode`), a job that may is queued
    instead. Raises the error that interrupted the work.
    """
    async with closed_afterwards(attempt, tools):
        try:
            async with held(attempt) as reports:
                maker = maker_of(attempt.version)
                source, result = await maker.make_first(
                    attempt, tools, reports, may_encode=may_encode
                )
                if isinstance(result, PassOutput):
                    prefix = output_prefix(attempt.video_id, attempt.number)
                    await write_master(tools.storage, prefix, master_beside(result))
        except (errors.SourceRejected, SourceChanged) as exc:
            logger.info("Source refused: %s", exc.code, extra={"action": "source_rejected"})
            failure = Failure(str(exc.code), exc.detail)
            await attempts.reject(attempt, failure, message=exc.message)
            return
        if isinstance(result, Plan):
            queue_encode = partial(renditions.queue_encode, attempt, result, source)
            await retry_outage(queue_encode)
            fields = {"action": "encode_queued", "video_id": str(attempt.video_id)}
            logger.info("Encode is queued", extra=fields)
            return
        publish = partial(renditions.publish, attempt, result, source, hooks)
        with span("publish"):
            await retry_outage(publish)
        logger.info("Video is ready", extra={"action": "video_ready"})
