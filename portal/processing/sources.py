"""The file a video is made from: whether storage still holds the one that was there at first.

An ETag names the content of an object. Of a server without ETags, as the embedded one, weaker
evidence is put together, and recorded in the ETag's place:

- The size, and a digest of the first and last `END_BYTES`. An MP4 file has its index at an end, so
  another recording differs there. Files that differ only in between are the same by this.
- `Last-Modified`, in whole seconds. The embedded server answers when the upload began; once it was
  restarted, when the file was written last. Both lie between its first answer and the time of that
  answer, and what is put there afterwards lies outside. That can't tell uploads that began in the
  same second, nor one that was under way when the video was created.

So a replacement goes unnoticed only when neither tells: sent at the same time, of the same size,
with the same ends. Nothing is listed: the embedded server would read the whole folder for that.
"""

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from portal.database.models import Video
from portal.errors import StorageUnavailable
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import ObjectInfo
from portal.telemetry.tracing import span
from portal.transcoding.errors import FailCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import SourceLimits, examine, judge

END_BYTES = 64 * 1024
# Version 0.4.0 recorded the time of writing alone, and a digest in the two seconds after it.
TIME = r"\d{4}-\d\d-\d\dT[\d:]+\+00:00"
EVIDENCE = re.compile(
    rf"(?:(?P<earliest>{TIME})--)?(?P<latest>{TIME})/(?P<size>\d+)(?:/(?P<digest>[0-9a-f]+))?"
)


class SourceChanged(Exception):
    """The object under the storage key is not the one the video was created from."""

    code = "source_changed"
    message = "The uploaded file was changed or removed after it was sent. Upload it again."
    detail = ""


async def identify(key: str, storage: Storage) -> ObjectInfo:
    """What storage tells about a source, with its ETag or the evidence that stands for one."""
    # With what HEAD would tell, in one request.
    found, start = await storage.get_range(key, 0, END_BYTES)
    if found.etag:
        return found
    latest = max(found.modified_at, found.answered_at)
    times = f"{found.modified_at.isoformat()}--{latest.isoformat()}"
    digest = await _digest_of_ends(key, found.size_bytes, start, storage)
    return replace(found, etag=f"{times}/{found.size_bytes}/{digest}")


async def check_source(video: Video, storage: Storage) -> None:
    """Raise `SourceChanged` unless `holds_source`."""
    if not await holds_source(video, storage):
        raise SourceChanged


async def holds_source(video: Video, storage: Storage) -> bool:
    """Whether the source is the very object the video was created from."""
    recorded, key = video.source_etag, video.storage_key
    try:
        found, start = await storage.get_range(key, 0, END_BYTES)
        if found.etag:
            return found.etag == recorded
        evidence = EVIDENCE.fullmatch(recorded)
        if evidence is None or not _fits(evidence, found):
            return False
        digest = evidence["digest"]
        return not digest or digest == await _digest_of_ends(key, found.size_bytes, start, storage)
    except ObjectMissing:
        return False


def _fits(evidence: re.Match[str], found: ObjectInfo) -> bool:
    earliest = evidence["earliest"]
    return (
        int(evidence["size"]) == found.size_bytes
        and (not earliest or datetime.fromisoformat(earliest) <= found.modified_at)
        and found.modified_at <= datetime.fromisoformat(evidence["latest"])
    )


async def _digest_of_ends(key: str, size_bytes: int, start: bytes, storage: Storage) -> str:
    digest = hashlib.blake2b(start, digest_size=12)
    if size_bytes > END_BYTES:
        _, end = await storage.get_range(key, size_bytes - END_BYTES, END_BYTES)
        digest.update(end)
    return digest.hexdigest()


# Long enough for a slow source; ffmpeg reads it by ranges for as long as it encodes.
SOURCE_URL_TTL_S = 24 * 3600
# A storage that has a source and never delivers it is not asked for ever; with the pauses between
# them so many tries take a quarter of an hour at least.
MAX_INTERRUPTIONS = 100


class SourceInterrupted(StorageUnavailable):
    """Storage has the source, and broke off while it was read. It costs no attempt, at first."""


@asynccontextmanager
async def checked_source(
    video: Video, storage: Storage, *, interruptions: int = 0
) -> AsyncIterator[str]:
    """An address of the very object that was published, before, in and after what is done with it.

    It is read by many requests, so whatever is made of it counts only once it is known to have
    stayed. An outage of storage, or another file put there, looks like a bad source to ffmpeg; it
    must not count as one. So many `interruptions` there were by storage that did not deliver it.
    """
    await check_source(video, storage)
    key = video.storage_key
    try:
        yield await storage.internal.presign_source(key, ttl_s=SOURCE_URL_TTL_S)
    except (TranscodeFailed, SourceRejected) as exc:
        await check_source(video, storage)
        is_broken_off = exc.code == FailCode.SOURCE_UNREACHABLE
        if is_broken_off and interruptions < MAX_INTERRUPTIONS:
            raise SourceInterrupted from exc
        raise
    await check_source(video, storage)


@asynccontextmanager
async def probed_source(
    video: Video, storage: Storage, limits: SourceLimits, *, interruptions: int = 0
) -> AsyncIterator[tuple[str, Probe]]:
    """As `checked_source`, with what the source holds, which is looked for once and kept."""
    async with checked_source(video, storage, interruptions=interruptions) as source_url:
        if video.probe_answer is None:
            with span("probe"):
                video.probe_answer = await examine(source_url, limits=limits)
        yield source_url, judge(video.probe_answer, limits)
