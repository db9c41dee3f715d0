"""What storage holds, page by page: objects, folders, unfinished uploads in parts.

Nothing here holds more than a page (`LIST_LIMIT` entries) at a time. Servers agree on the
order of what lies directly in a folder; of a whole tree some list `audio-2/` before `audio/`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from portal.errors import MultipartMissing, ObjectMissing

if TYPE_CHECKING:
    from portal.storage.bucket import Storage


# As many as S3 lists, or removes, at once.
LIST_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as lists have it. `etag` is empty where storage computes none."""

    key: str
    size_bytes: int
    etag: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class OpenMultipart:
    """An upload in parts that was neither completed nor aborted."""

    key: str
    multipart_id: str
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """Objects, and folders by their whole prefix; `next_page` is empty on the last one."""

    objects: tuple[StoredObject, ...]
    folders: tuple[str, ...]
    next_page: str


def read_page(answer: Mapping[str, Any]) -> Page:
    """A page of an answer to ListObjectsV2."""
    return Page(
        objects=tuple(_stored_object(entry) for entry in answer.get("Contents", ())),
        folders=tuple(entry["Prefix"] for entry in answer.get("CommonPrefixes", ())),
        next_page=answer.get("NextContinuationToken", "") if answer.get("IsTruncated") else "",
    )


def read_multiparts(answer: Mapping[str, Any]) -> list[OpenMultipart]:
    """The uploads of an answer to ListMultipartUploads."""
    return [
        OpenMultipart(entry["Key"], entry["UploadId"], entry["Initiated"])
        for entry in answer.get("Uploads", ())
    ]


async def objects_below(prefix: str, storage: Storage) -> AsyncIterator[StoredObject]:
    """Every object whose key begins with this."""
    async for page in _pages(prefix, storage, delimiter=""):
        for entry in page.objects:
            yield entry


async def entries_of(folder: str, storage: Storage) -> AsyncIterator[StoredObject | str]:
    """What lies directly in a folder: its objects, and the prefixes of its folders."""
    async for page in _pages(folder, storage, delimiter="/"):
        found: list[StoredObject | str] = [*page.folders, *page.objects]
        for entry in sorted(found, key=_name):
            yield entry


async def open_multiparts(prefix: str, storage: Storage) -> AsyncIterator[list[OpenMultipart]]:
    """The unfinished uploads of keys that begin with this, a page at a time.

    Raises `ListingRefused` at servers that don't list them, or not to these credentials.
    """
    after: tuple[str, str] | None = ("", "")
    while after is not None:
        try:
            answer = await storage.multiparts.page(prefix, after)
        except (MultipartMissing, ObjectMissing):
            # How some servers say that there are none.
            return
        yield read_multiparts(answer)
        following = (answer.get("NextKeyMarker", ""), answer.get("NextUploadIdMarker", ""))
        after = following if answer.get("IsTruncated") and following != after else None


async def _pages(prefix: str, storage: Storage, *, delimiter: str) -> AsyncIterator[Page]:
    following, is_last = "", False
    while not is_last:
        page = await storage.list_page(prefix, delimiter=delimiter, page=following)
        yield page
        following, is_last = page.next_page, not page.next_page


def _stored_object(entry: Mapping[str, Any]) -> StoredObject:
    etag = entry.get("ETag", "").strip('"')
    return StoredObject(entry["Key"], entry["Size"], etag, entry["LastModified"])


def _name(entry: StoredObject | str) -> str:
    return entry if isinstance(entry, str) else entry.key
