"""Operations on objects, multipart uploads and listings of one bucket.

`calls` translates botocore's errors. Media bytes of uploads pass through here for imports only:
clients talk to storage directly.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aioboto3
from botocore.config import Config as ClientConfig
from botocore.handlers import add_expect_header

from portal.config import Config
from portal.errors import StorageUnavailable
from portal.storage import objects
from portal.storage.calls import (
    MISSING_CODES,
    BucketCalls,
    MultipartMissing,
    ObjectMissing,
    RangeRefused,
    StorageRefused,
)
from portal.storage.presigning import Presigner

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 20
# Objects are written once, except master playlists, which grow while a ladder is completed.
FOREVER_S = 31_536_000
MASTER_MAX_AGE_S = 5
# Completing an upload of thousands of parts may take storage a while.
COMPLETE_TIMEOUT_S = 55
# Parts in a page of ListParts, the limit of most servers.
PARTS_PAGE = 1000
# Bytes of each end of an object that its digest covers.
END_BYTES = 64 * 1024
# Bytes of an object that `Storage.pieces` holds in memory.
PIECE_BYTES = 1024 * 1024


class Multiparts:
    """S3 multipart uploads of one bucket. The package `uploads` knows whose they are."""

    def __init__(self, calls: BucketCalls) -> None:
        self._call = calls.call

    async def create(self, key: str, *, content_type: str) -> str:
        """Begin a multipart upload, and return storage's id for it."""
        response = await self._call("create_multipart_upload", Key=key, ContentType=content_type)
        return str(response["UploadId"])

    async def list_parts(self, key: str, multipart_id: str) -> list[objects.StoredPart]:
        """Return the parts stored so far, by number. Raise `MultipartMissing`."""
        parts: dict[int, objects.StoredPart] = {}
        marker = 0
        while True:
            page = await self._call(
                "list_parts",
                Key=key,
                UploadId=multipart_id,
                PartNumberMarker=marker,
                MaxParts=PARTS_PAGE,
            )
            # Pages may overlap: those of some servers begin with the marker itself.
            for part in page.get("Parts", ()):
                number = part["PartNumber"]
                parts[number] = objects.StoredPart(number, part["Size"], part["ETag"])
            next_marker = int(page.get("NextPartNumberMarker") or 0)
            if not page.get("IsTruncated") or next_marker <= marker:
                return [parts[number] for number in sorted(parts)]
            marker = next_marker

    async def put_part(self, key: str, multipart_id: str, number: int, data: bytes) -> None:
        """Write or overwrite a part from memory. Raise `MultipartMissing`."""
        await self._call(
            "upload_part", Key=key, UploadId=multipart_id, PartNumber=number, Body=data
        )

    async def complete(
        self, key: str, multipart_id: str, parts: Collection[objects.StoredPart]
    ) -> None:
        """Complete an upload with these parts.

        Raise `MultipartMissing`, also for a completed upload, or `PartsRefused`.
        """
        named_parts = [{"PartNumber": part.number, "ETag": part.etag} for part in parts]
        await self._call(
            "complete_multipart_upload",
            timeout_s=COMPLETE_TIMEOUT_S,
            Key=key,
            UploadId=multipart_id,
            MultipartUpload={"Parts": named_parts},
        )

    async def abort(self, key: str, multipart_id: str) -> None:
        """Abort a multipart upload. A missing one is no error."""
        with suppress(MultipartMissing, ObjectMissing):
            await self._call("abort_multipart_upload", Key=key, UploadId=multipart_id)


class Storage:
    """A bucket. `public` signs addresses for browsers, `internal` for the portal's machines."""

    def __init__(self, calls: BucketCalls, *, internal: Presigner, public: Presigner) -> None:
        self._client = calls.client
        self._calls = calls
        self.bucket = calls.bucket
        self.internal = internal
        self.public = public
        self.multiparts = Multiparts(calls)

    async def head(self, key: str) -> objects.ObjectInfo:
        """Return the properties of an object. Raise `ObjectMissing`."""
        return objects.read_info(await self._calls.call("head_object", Key=key))

    async def get(self, key: str) -> bytes:
        """Return the content of a small object, such as a playlist. Raise `ObjectMissing`."""
        _, content = await self._read(key)
        return content

    async def pieces(self, key: str, *, begin: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes of an object from `begin` to before `end`. Raise `ObjectMissing`.

        Each piece is a separate request, so that slow readers don't occupy connections.
        """
        for start in range(begin, end, PIECE_BYTES):
            last = min(start + PIECE_BYTES, end) - 1
            _, content = await self._read(key, Range=f"bytes={start}-{last}")
            yield content

    async def identify(self, key: str) -> tuple[objects.ObjectInfo, str]:
        """Return the properties of an object and, if storage has no ETags, a digest of its ends.

        The digest is of the first and last `END_BYTES`. Raise `ObjectMissing`.
        """
        # This request returns the properties, too.
        info, start = await self._read_from(0, key)
        if info.etag:
            return info, ""
        digest = hashlib.blake2b(start, digest_size=12)
        if info.size_bytes > END_BYTES:
            _, end = await self._read_from(info.size_bytes - END_BYTES, key)
            digest.update(end)
        return info, digest.hexdigest()

    async def _read_from(self, begin: int, key: str) -> tuple[objects.ObjectInfo, bytes]:
        """Return at most `END_BYTES` of an object from `begin`."""
        try:
            return await self._read(key, Range=f"bytes={begin}-{begin + END_BYTES - 1}")
        except RangeRefused:  # the object ends before `begin`
            return await self.head(key), b""

    async def _read(self, key: str, **options: str) -> tuple[objects.ObjectInfo, bytes]:
        async with self._calls.guarded(key):
            response = await self._client.get_object(Bucket=self.bucket, Key=key, **options)
            async with response["Body"] as body:
                content: bytes = await body.read()
        return objects.read_info(response), content

    async def put(
        self, key: str, data: bytes | Path, *, content_type: str, max_age_s: int = FOREVER_S
    ) -> None:
        """Write an object from memory, or from a file of a few megabytes at most.

        Caches may keep the object for `max_age_s`.
        """
        body = await asyncio.to_thread(data.read_bytes) if isinstance(data, Path) else data
        await self._calls.call(
            "put_object",
            Key=key,
            Body=body,
            ContentType=content_type,
            CacheControl=f"public, max-age={max_age_s}",
        )

    async def copy(self, key: str, target: str) -> None:
        """Copy an object of at most 5 GB to another key. Raise `ObjectMissing`."""
        source = {"Bucket": self.bucket, "Key": key}
        await self._calls.call("copy_object", Key=target, CopySource=source)

    async def delete(self, key: str) -> None:
        """Delete an object. A missing one is no error."""
        await self._calls.call("delete_object", Key=key)

    async def list_some(self, prefix: str) -> list[str]:
        """Return the first keys with this prefix, at most `LIST_LIMIT`."""
        response = await self._calls.call(
            "list_objects_v2", Prefix=prefix, MaxKeys=objects.LIST_LIMIT
        )
        return [entry["Key"] for entry in response.get("Contents", ())]

    async def pages(self, prefix: str, *, delimiter: str = "") -> AsyncIterator[Mapping[str, Any]]:
        """Yield responses to ListObjectsV2, one page at a time."""
        options: dict[str, Any] = {
            "Prefix": prefix,
            "Delimiter": delimiter,
            "MaxKeys": objects.LIST_LIMIT,
        }
        while True:
            response = await self._calls.call("list_objects_v2", **options)
            yield response
            token = response.get("NextContinuationToken", "")
            if not response.get("IsTruncated") or not token:
                return
            options["ContinuationToken"] = token

    async def delete_many(self, keys: Collection[str]) -> None:
        """Delete at most `LIST_LIMIT` objects with one request. Missing ones are no error.

        Raise `StorageUnavailable` if storage did not delete some of them.
        """
        batch = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        response = await self._calls.call("delete_objects", Delete=batch)
        for error in response.get("Errors", ()):
            if error.get("Code") not in MISSING_CODES:
                raise StorageUnavailable from StorageRefused(error.get("Code"), error.get("Key"))

    async def check_bucket(self) -> None:
        """Check that the bucket exists and is accessible.

        Raises `ObjectMissing` if there is no such bucket, `StorageDenied` for refused credentials,
        `StorageUnavailable` when storage is unreachable, and `StorageRefused` for other errors.
        """
        await self._calls.call("head_bucket")


async def objects_below(prefix: str, storage: Storage) -> AsyncIterator[objects.StoredObject]:
    """Yield all objects with this prefix.

    The order of folders depends on the server: some list `audio-2/` before `audio/`.
    """
    async for page in storage.pages(prefix):
        for entry in page.get("Contents", ()):
            yield objects.read_entry(entry)


async def entries_of(folder: str, storage: Storage) -> AsyncIterator[objects.StoredObject | str]:
    """Yield the objects of a folder, and the prefixes of its subfolders."""
    async for page in storage.pages(folder, delimiter="/"):
        for subfolder in page.get("CommonPrefixes", ()):
            yield str(subfolder["Prefix"])
        for entry in page.get("Contents", ()):
            yield objects.read_entry(entry)


@asynccontextmanager
async def open_storage(config: Config, *, fail_fast: bool = False) -> AsyncIterator[Storage]:
    """Open the clients that all requests and jobs of the process share.

    `fail_fast` shortens the time limits of calls, for the web.
    """
    session = aioboto3.Session(region_name=config.aws_region)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(session, config.s3_endpoint_url))
        public_client = client
        if config.s3_public_endpoint_url != config.s3_endpoint_url:
            public_client = await stack.enter_async_context(
                _client(session, config.s3_public_endpoint_url)
            )
        yield Storage(
            BucketCalls(client, config.s3_bucket, fail_fast=fail_fast),
            internal=Presigner(session, client, config.s3_bucket),
            public=Presigner(session, public_client, config.s3_bucket),
        )


@asynccontextmanager
async def _client(session: Any, endpoint_url: str) -> AsyncIterator[Any]:
    opening = session.client(
        "s3",
        endpoint_url=endpoint_url or None,
        config=ClientConfig(
            signature_version="s3v4",
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": 3},
            max_pool_connections=50,
            # Virtual-host addresses need a DNS name per bucket, which self-hosted servers lack.
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            # Some S3-compatible servers don't know the newer default checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    async with opening as client:
        # The client would send `Expect: 100-continue` and wait for the server without limit. The
        # embedded server does not respond to that when it refuses a request; it waits for the body.
        client.meta.events.unregister("before-call.s3", add_expect_header)
        yield client
