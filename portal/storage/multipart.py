"""Uploads in parts, as S3 has them: begun, given their parts' addresses, completed or given up.

Which of them belong to what is for `uploads`; this module only speaks to storage.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from portal.errors import StorageUnavailable
from portal.storage.calls import BucketCalls, code_of
from portal.storage.errors import ListingRefused, MultipartMissing, ObjectMissing, StorageRefused
from portal.storage.objects import LIST_LIMIT, StoredPart

# Putting thousands of parts together may take storage a while.
COMPLETE_TIMEOUT_S = 55
# Servers without ListMultipartUploads, and credentials that don't allow it.
REFUSED_LISTING_CODES = frozenset({"NotImplemented", "MethodNotAllowed", "AccessDenied"})
# Parts that a page of ListParts holds, here as at most servers.
PARTS_PAGE = 1000


class Multiparts:
    """Those of one bucket; `Storage.multiparts`."""

    def __init__(self, calls: BucketCalls) -> None:
        self._call = calls.call

    async def create(self, key: str, *, content_type: str) -> str:
        """Begin an upload in parts; returns storage's id for it."""
        answer = await self._call("create_multipart_upload", Key=key, ContentType=content_type)
        return str(answer["UploadId"])

    async def list_parts(self, key: str, multipart_id: str) -> list[StoredPart]:
        """The parts stored so far, by number; or `MultipartMissing`."""
        found: dict[int, StoredPart] = {}
        marker = 0
        while True:
            page = await self._call(
                "list_parts",
                Key=key,
                UploadId=multipart_id,
                PartNumberMarker=marker,
                MaxParts=PARTS_PAGE,
            )
            # By number, for some servers' pages begin with the marker and others' after it.
            for part in page.get("Parts", ()):
                number = part["PartNumber"]
                found[number] = StoredPart(number, part["Size"], part["ETag"])
            following = int(page.get("NextPartNumberMarker") or 0)
            if not page.get("IsTruncated") or following <= marker:
                return [found[number] for number in sorted(found)]
            marker = following

    async def complete(self, key: str, multipart_id: str, parts: Collection[StoredPart]) -> None:
        """Make the object of these parts.

        Raises `MultipartMissing`, also for an upload that was completed before, or `PartsRefused`.
        """
        named = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        await self._call(
            "complete_multipart_upload",
            timeout_s=COMPLETE_TIMEOUT_S,
            Key=key,
            UploadId=multipart_id,
            MultipartUpload={"Parts": named},
        )

    async def abort(self, key: str, multipart_id: str) -> None:
        """Give up an upload in parts; one already gone is no error."""
        with suppress(MultipartMissing, ObjectMissing):
            await self._call("abort_multipart_upload", Key=key, UploadId=multipart_id)

    async def page(self, prefix: str, after: tuple[str, str]) -> dict[str, Any]:
        """An answer to ListMultipartUploads, after this key and upload; see `listing`.

        Raises `ListingRefused`.
        """
        key, multipart_id = after
        markers = {"KeyMarker": key, "UploadIdMarker": multipart_id}
        options: dict[str, Any] = {name: value for name, value in markers.items() if value}
        try:
            answer: dict[str, Any] = await self._call(
                "list_multipart_uploads", Prefix=prefix, MaxUploads=LIST_LIMIT, **options
            )
        except (StorageRefused, StorageUnavailable) as exc:
            if code_of(exc.__cause__) in REFUSED_LISTING_CODES:
                raise ListingRefused(prefix) from exc
            raise
        return answer
