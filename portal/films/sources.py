"""Identity of a version's source: a check that storage still has the file that was published.

An ETag identifies the content of an object. For servers without ETags, such as the embedded one,
weaker evidence is recorded in the ETag's place:

- The size, and a digest of the first and last 64 KiB. An MP4 file has its index at an end, so
  another recording differs there. Files that differ only in the middle look the same.
- `Last-Modified`, in whole seconds. The embedded server returns the time when the upload began;
  after a restart, the time of the last write. Both are between its first answer and the time of
  that answer; files that are put there later have later times. Uploads that began in the same
  second, or before the version was created, can't be told apart.

So a replacement is missed only if it was sent at the same time, with the same size and the same
ends. Objects are not listed, because the embedded server would read the whole folder.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from portal.database.models import Version
from portal.errors import StorageUnavailable
from portal.locale.messages import Message
from portal.queue.tools import Tools
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import ObjectInfo
from portal.telemetry.tracing import span
from portal.transcoding.errors import FailCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import examine, judge

# Version 0.4.0 recorded the time of writing alone, and a digest only of files younger than two
# seconds.
TIME = r"\d{4}-\d\d-\d\dT[\d:]+\+00:00"
EVIDENCE = re.compile(
    rf"(?:(?P<earliest>{TIME})--)?(?P<latest>{TIME})/(?P<size>\d+)(?:/(?P<digest>[0-9a-f]+))?"
)


class SourceChanged(Exception):
    """The object under the storage key is not the one that the version was created from."""

    code = "source_changed"
    message = Message(
        "The uploaded file was changed or removed after it was sent. Upload it again."
    )
    detail = ""


async def identify(key: str, storage: Storage) -> ObjectInfo:
    """Return the facts of a source, with its ETag or the evidence in the ETag's place."""
    info, digest = await storage.identify(key)
    if info.etag:
        return info
    latest = max(info.modified_at, info.answered_at)
    times = f"{info.modified_at.isoformat()}--{latest.isoformat()}"
    return replace(info, etag=f"{times}/{info.size_bytes}/{digest}")


async def check_source(version: Version, storage: Storage) -> None:
    """Raise `SourceChanged` unless `holds_source`."""
    if not await holds_source(version, storage):
        raise SourceChanged


async def holds_source(version: Version, storage: Storage) -> bool:
    """Return whether the source is the object that the version was created from."""
    try:
        info, digest = await storage.identify(version.storage_key)
    except ObjectMissing:
        return False
    if info.etag:
        return info.etag == version.source_etag
    evidence = EVIDENCE.fullmatch(version.source_etag)
    return evidence is not None and _agrees_with(info, digest, evidence)


def _agrees_with(info: ObjectInfo, digest: str, evidence: re.Match[str]) -> bool:
    earliest = evidence["earliest"]
    return (
        int(evidence["size"]) == info.size_bytes
        and evidence["digest"] in (None, digest)
        and (not earliest or datetime.fromisoformat(earliest) <= info.modified_at)
        and info.modified_at <= datetime.fromisoformat(evidence["latest"])
    )


# ffmpeg reads ranges of the source for as long as it encodes.
SOURCE_URL_TTL_S = 24 * 3600
# Attempts at a source that storage has but doesn't deliver; with the pauses between them, they take
# a quarter of an hour at least.
MAX_INTERRUPTIONS = 100


class SourceInterrupted(StorageUnavailable):
    """Storage has the source, but broke off while it was read. The attempt doesn't count."""


@asynccontextmanager
async def checked_source(
    version: Version, storage: Storage, *, interruptions: int = 0
) -> AsyncIterator[str]:
    """Yield an address of the source, and check before and after the block that it is unchanged.

    ffmpeg reads the source by many requests, so its output counts only if the source stayed the
    same. An outage of storage, and a file that was replaced, look like a bad source to ffmpeg, but
    must not fail the version. `interruptions` counts earlier attempts that storage broke off.
    Raises `SourceChanged` or `SourceInterrupted`.
    """
    await check_source(version, storage)
    key = version.storage_key
    try:
        yield await storage.internal.presign_source(key, ttl_s=SOURCE_URL_TTL_S)
    except (TranscodeFailed, SourceRejected) as exc:
        await check_source(version, storage)
        is_broken_off = exc.code == FailCode.SOURCE_UNREACHABLE
        if is_broken_off and interruptions < MAX_INTERRUPTIONS:
            raise SourceInterrupted from exc
        raise
    await check_source(version, storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Checked source of a version: its address, its probe, and the notes about it so far.

    `answer` is the probe as the version's row stores it.
    """

    url: str
    probe: Probe
    answer: str
    notes: tuple[str, ...]


@asynccontextmanager
async def probed_source(
    version: Version, tools: Tools, *, interruptions: int = 0
) -> AsyncIterator[Source]:
    """Yield the source, checked as by `checked_source`; it is probed unless the row has a probe."""
    async with checked_source(version, tools.storage, interruptions=interruptions) as url:
        answer = version.probe_answer
        if answer is None:
            with span("probe"):
                answer = await examine(url, limits=tools.limits)
        probe = judge(answer, tools.limits)
        yield Source(url=url, probe=probe, answer=answer, notes=tuple(version.notes))
