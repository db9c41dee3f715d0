"""Object storage: the few operations on objects, uploads in parts and listings the portal needs.

Botocore's errors are translated at this boundary, by `calls`.
Media bytes of uploads never pass through here, but for imports; clients talk to storage directly.
"""

import asyncio
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
)
from portal.storage.presigning import Presigner

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 20
# Objects are written once, but for master playlists, which grow while a ladder is completed.
FOREVER_S = 31_536_000
MASTER_MAX_AGE_S = 5
# Putting thousands of parts together may take storage a while.
COMPLETE_TIMEOUT_S = 55
# Parts that a page of ListParts holds, here as at most servers.
PARTS_PAGE = 1000


class StorageKept(Exception):
    """Storage answered, but did not remove what it was asked to remove."""


class Multiparts:
    """Uploads in parts of one bucket, as S3 has them; which belong to what is for `uploads`."""

    def __init__(self, calls: BucketCalls) -> None:
        self._call = calls.call

    async def create(self, key: str, *, content_type: str) -> str:
        """Begin an upload in parts; returns storage's id for it."""
        answer = await self._call("create_multipart_upload", Key=key, ContentType=content_type)
        return str(answer["UploadId"])

    async def list_parts(self, key: str, multipart_id: str) -> list[objects.StoredPart]:
        """The parts stored so far, by number; or `MultipartMissing`."""
        found: dict[int, objects.StoredPart] = {}
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
                found[number] = objects.StoredPart(number, part["Size"], part["ETag"])
            following = int(page.get("NextPartNumberMarker") or 0)
            if not page.get("IsTruncated") or following <= marker:
                return [found[number] for number in sorted(found)]
            marker = following

    async def put_part(self, key: str, multipart_id: str, number: int, data: bytes) -> None:
        """Write a part from memory, over one with the same number; or `MultipartMissing`."""
        await self._call(
            "upload_part", Key=key, UploadId=multipart_id, PartNumber=number, Body=data
        )

    async def complete(
        self, key: str, multipart_id: str, parts: Collection[objects.StoredPart]
    ) -> None:
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


class Storage:
    """One bucket. Addresses for browsers come from `public`, for our own machines `internal`."""

    def __init__(self, calls: BucketCalls, *, internal: Presigner, public: Presigner) -> None:
        self._client = calls.client
        self._calls = calls
        self.bucket = calls.bucket
        self.internal = internal
        self.public = public
        self.multiparts = Multiparts(calls)

    async def head(self, key: str) -> objects.ObjectInfo:
        """What HEAD tells about an object, or `ObjectMissing`."""
        return objects.read_info(await self._calls.call("head_object", Key=key))

    async def get(self, key: str) -> bytes:
        """The content of a small object, such as a playlist, or `ObjectMissing`."""
        return (await self._read(key))[1]

    async def get_range(
        self, key: str, begin: int, length: int
    ) -> tuple[objects.ObjectInfo, bytes]:
        """So many bytes of an object from there on, or those there are; or `ObjectMissing`."""
        try:
            return await self._read(key, Range=f"bytes={begin}-{begin + length - 1}")
        except RangeRefused:  # there are none, as in an empty object
            return await self.head(key), b""

    async def _read(self, key: str, **options: str) -> tuple[objects.ObjectInfo, bytes]:
        async with self._calls.guarded(key):
            answer = await self._client.get_object(Bucket=self.bucket, Key=key, **options)
            async with answer["Body"] as body:
                content: bytes = await body.read()
        return objects.read_info(answer), content

    async def put(
        self, key: str, data: bytes | Path, *, content_type: str, max_age_s: int = FOREVER_S
    ) -> None:
        """Write an object, from memory or from a file of at most a few megabytes.

        Whoever is served it straight from the bucket may keep it for `max_age_s`.
        """
        body = await asyncio.to_thread(data.read_bytes) if isinstance(data, Path) else data
        await self._calls.call(
            "put_object",
            Key=key,
            Body=body,
            ContentType=content_type,
            CacheControl=f"public, max-age={max_age_s}",
        )

    async def delete(self, key: str) -> None:
        """Remove an object; an object already gone is no error."""
        await self._calls.call("delete_object", Key=key)

    async def list_some(self, prefix: str) -> list[str]:
        """The first keys that begin with this, at most `LIST_LIMIT`."""
        answer = await self._calls.call(
            "list_objects_v2", Prefix=prefix, MaxKeys=objects.LIST_LIMIT
        )
        return [entry["Key"] for entry in answer.get("Contents", ())]

    async def pages(self, prefix: str, *, delimiter: str = "") -> AsyncIterator[Mapping[str, Any]]:
        """Answers to ListObjectsV2, one at a time: a page is the most that is held."""
        options: dict[str, Any] = {
            "Prefix": prefix,
            "Delimiter": delimiter,
            "MaxKeys": objects.LIST_LIMIT,
        }
        while True:
            answer = await self._calls.call("list_objects_v2", **options)
            yield answer
            following = answer.get("NextContinuationToken", "")
            if not answer.get("IsTruncated") or not following:
                return
            options["ContinuationToken"] = following

    async def delete_many(self, keys: Collection[str]) -> None:
        """Remove objects, at most `LIST_LIMIT`, with one request; those already gone are no error.

        Raises `StorageUnavailable` when storage kept some of them.
        """
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = await self._calls.call("delete_objects", Delete=wanted)
        kept = [it for it in answer.get("Errors", ()) if it.get("Code") not in MISSING_CODES]
        if kept:
            raise StorageUnavailable from StorageKept(kept[0].get("Code"), kept[0].get("Key"))

    async def check_bucket(self) -> None:
        """Make sure that the bucket is there and may be used."""
        await self._calls.call("head_bucket")


async def objects_below(prefix: str, storage: Storage) -> AsyncIterator[objects.StoredObject]:
    """Every object whose key begins with this.

    Of a whole tree some servers list `audio-2/` before `audio/`.
    """
    async for page in storage.pages(prefix):
        for entry in page.get("Contents", ()):
            yield objects.read_entry(entry)


async def entries_of(folder: str, storage: Storage) -> AsyncIterator[objects.StoredObject | str]:
    """What lies directly in a folder: its objects, and the prefixes of its folders."""
    async for page in storage.pages(folder, delimiter="/"):
        for found in page.get("CommonPrefixes", ()):
            yield str(found["Prefix"])
        for entry in page.get("Contents", ()):
            yield objects.read_entry(entry)


@asynccontextmanager
async def open_storage(config: Config, *, fail_fast: bool = False) -> AsyncIterator[Storage]:
    """Make the clients once; they are shared by all requests and jobs of the process.

    With `fail_fast`, for the web, calls have short time limits.
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
    making = session.client(
        "s3",
        endpoint_url=endpoint_url or None,
        config=ClientConfig(
            signature_version="s3v4",
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": 3},
            max_pool_connections=50,
            # Virtual-host addresses need DNS for each bucket, which self-hosted servers lack.
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            # Not every S3-compatible server knows the newer default checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    async with making as client:
        # It would send a body only when asked to go on (100 Continue), and wait for that without a
        # limit. A server that refuses a request without reading it need not ask: the embedded one
        # then waits for the body, and both wait for ever.
        client.meta.events.unregister("before-call.s3", add_expect_header)
        yield client
