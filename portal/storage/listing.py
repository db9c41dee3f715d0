"""What storage holds, page by page: objects, folders, open multipart uploads.

Nothing here holds more than a page (`LIST_LIMIT` entries) at a time. Servers agree on the
order of what lies directly in a folder; of a whole tree some list `audio-2/` before `audio/`.
"""

from collections.abc import AsyncIterator

from portal.storage.bucket import Storage
from portal.storage.errors import MultipartMissing, ObjectMissing
from portal.storage.objects import OpenMultipart, Page, StoredObject


async def objects_below(prefix: str, storage: Storage) -> AsyncIterator[StoredObject]:
    """Every object whose key begins with this."""
    async for page in _pages(prefix, storage, delimiter=""):
        for entry in page.objects:
            yield entry


async def entries_of(folder: str, storage: Storage) -> AsyncIterator[StoredObject | str]:
    """What lies directly in a folder: its objects, and the prefixes of its folders."""
    async for page in _pages(folder, storage, delimiter="/"):
        found: list[StoredObject | str] = [*page.folders, *page.objects]
        for entry in sorted(found, key=lambda it: it if isinstance(it, str) else it.key):
            yield entry


async def open_multiparts(prefix: str, storage: Storage) -> AsyncIterator[list[OpenMultipart]]:
    """The open multipart uploads of keys that begin with this, a page at a time.

    Raises `ListingRefused` at servers that don't list them, or not to these credentials.
    """
    after: tuple[str, str] | None = ("", "")
    while after is not None:
        try:
            answer = await storage.multiparts.page(prefix, after)
        except (MultipartMissing, ObjectMissing):
            # How some servers say that there are none.
            return
        uploads = answer.get("Uploads", ())
        yield [OpenMultipart(it["Key"], it["UploadId"], it["Initiated"]) for it in uploads]
        following = (answer.get("NextKeyMarker", ""), answer.get("NextUploadIdMarker", ""))
        after = following if answer.get("IsTruncated") and following != after else None


async def _pages(prefix: str, storage: Storage, *, delimiter: str) -> AsyncIterator[Page]:
    following, is_last = "", False
    while not is_last:
        page = await storage.list_page(prefix, delimiter=delimiter, page=following)
        yield page
        following, is_last = page.next_page, not page.next_page
