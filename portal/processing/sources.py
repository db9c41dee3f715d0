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

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from portal.errors import ObjectMissing

if TYPE_CHECKING:
    from portal.database.models import Video
    from portal.storage.bucket import Storage
    from portal.storage.objects import ObjectInfo

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
    """What HEAD tells about a source, with its ETag or the evidence that stands for one."""
    found = await storage.head(key)
    if found.etag:
        return found
    latest = max(found.modified_at, found.answered_at)
    times = f"{found.modified_at.isoformat()}--{latest.isoformat()}"
    digest = await _digest_of_ends(key, found.size_bytes, storage)
    return replace(found, etag=f"{times}/{found.size_bytes}/{digest}")


async def holds_source(video: Video, storage: Storage) -> bool:
    """Whether the source is the very object the video was created from; see `check_source`."""
    try:
        await check_source(video, storage)
    except SourceChanged:
        return False
    return True


async def check_source(video: Video, storage: Storage) -> None:
    """Raise `SourceChanged` unless the source is the very object the video was created from."""
    key, recorded = video.storage_key, video.source_etag
    try:
        found = await storage.head(key)
        if found.etag:
            is_same = found.etag == recorded
        else:
            is_same = await _fits(recorded, key, found, storage)
    except ObjectMissing:
        raise SourceChanged from None
    if not is_same:
        raise SourceChanged


async def _fits(recorded: str, key: str, found: ObjectInfo, storage: Storage) -> bool:
    evidence = EVIDENCE.fullmatch(recorded)
    if evidence is None or int(evidence["size"]) != found.size_bytes:
        return False
    earliest = evidence["earliest"]
    if found.modified_at > datetime.fromisoformat(evidence["latest"]) or (
        earliest and found.modified_at < datetime.fromisoformat(earliest)
    ):
        return False
    digest = evidence["digest"]
    return not digest or digest == await _digest_of_ends(key, found.size_bytes, storage)


async def _digest_of_ends(key: str, size_bytes: int, storage: Storage) -> str:
    digest = hashlib.blake2b(digest_size=12)
    if size_bytes:
        for begin in sorted({0, max(0, size_bytes - END_BYTES)}):
            digest.update(await storage.get_range(key, begin, END_BYTES))
    return digest.hexdigest()
