"""The address that a pass reads its source from, while that is the published one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from portal.errors import StorageUnavailable
from portal.processing.attempts import OpenAttempt
from portal.processing.sources import check_source
from portal.storage.bucket import Storage
from portal.transcoding.errors import FailCode, SourceRejected, TranscodeFailed

# Long enough for a slow source; ffmpeg reads it by ranges for as long as it encodes.
SOURCE_URL_TTL_S = 24 * 3600
# A storage that has a source and never delivers it is not asked for ever; with the pauses between
# them so many tries take a quarter of an hour at least.
MAX_INTERRUPTIONS = 100


class SourceInterrupted(StorageUnavailable):
    """Storage has the source, and broke off while it was read. It costs no attempt, at first."""


@asynccontextmanager
async def checked_source(attempt: OpenAttempt, storage: Storage) -> AsyncIterator[str]:
    """An address of the very object that was published, before, in and after what is done with it.

    It is read by many requests, so whatever is made of it counts only once it is known to have
    stayed. An outage of storage, or another file put there, looks like a bad source to ffmpeg; it
    must not count as one.
    """
    await check_source(attempt.video, storage)
    key = attempt.video.storage_key
    try:
        yield await storage.internal.presign_source(key, ttl_s=SOURCE_URL_TTL_S)
    except (TranscodeFailed, SourceRejected) as exc:
        await check_source(attempt.video, storage)
        is_broken_off = exc.code == FailCode.SOURCE_UNREACHABLE
        if is_broken_off and attempt.interruptions < MAX_INTERRUPTIONS:
            raise SourceInterrupted from exc
        raise
    await check_source(attempt.video, storage)
