"""The file a video is made from: whether storage still holds the one that was there at first.

An object is told by its ETag. A server that computes none, as the embedded one, leaves its time
of writing and its size. That time has whole seconds (RFC 9110, 8.8.2.2), so of an object written
a moment ago both ends count, too: another video of the same size has another index there.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from portal.errors import ObjectMissing

if TYPE_CHECKING:
    from portal.database.models import Video
    from portal.storage.bucket import Storage
    from portal.storage.objects import ObjectInfo

END_BYTES = 64 * 1024


class SourceChanged(Exception):
    """The object under the storage key is not the one the video was created from."""

    code = "source_changed"
    message = "The uploaded file was changed or removed after it was sent. Upload it again."
    detail = ""


async def identify(key: str, storage: Storage) -> ObjectInfo:
    """What HEAD tells about a source, with an `etag` that no other file will have."""
    found = await storage.head(key)
    if not found.is_fresh or not found.size_bytes:
        return found
    return replace(found, etag=f"{found.etag}/{await _digest_of_ends(key, found, storage)}")


async def holds_source(video: Video, storage: Storage) -> bool:
    """Whether the source is the very object the video was created from; see `check_source`."""
    try:
        await check_source(video, storage)
    except SourceChanged:
        return False
    return True


async def check_source(video: Video, storage: Storage) -> None:
    """Raise `SourceChanged` unless the source is the very object the video was created from."""
    recorded = video.source_etag
    try:
        found = await storage.head(video.storage_key)
        etag = found.etag
        if recorded.startswith(f"{etag}/"):
            etag = f"{etag}/{await _digest_of_ends(video.storage_key, found, storage)}"
    except ObjectMissing:
        raise SourceChanged from None
    if etag != recorded:
        raise SourceChanged


async def _digest_of_ends(key: str, found: ObjectInfo, storage: Storage) -> str:
    digest = hashlib.blake2b(digest_size=12)
    last = max(0, found.size_bytes - END_BYTES)
    for begin in sorted({0, last}):
        digest.update(await storage.get_range(key, begin, END_BYTES))
    return digest.hexdigest()
