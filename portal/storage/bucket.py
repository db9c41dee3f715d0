"""Object storage: presigned addresses, and the few object operations the portal needs.

Botocore's errors are translated at this boundary, by `storage_calls`.
Media bytes of uploads never pass through here; clients talk to storage directly.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aioboto3
from botocore.config import Config as ClientConfig
from botocore.handlers import add_expect_header

from portal.config import Config
from portal.errors import StorageUnavailable
from portal.storage.calls import MISSING_CODES, StorageCalls
from portal.storage.multipart import Multiparts
from portal.storage.objects import LIST_LIMIT, ObjectInfo, Page, read_info, read_page
from portal.storage.presigning import Presigner

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 20
# Objects are written once, but for master playlists, which grow while a ladder is completed.
FOREVER_S = 31_536_000
MASTER_MAX_AGE_S = 5


class StorageKept(Exception):
    """Storage answered, but did not remove what it was asked to remove."""


class Storage:
    """One bucket, seen from the portal (`client`) and from browsers (`public`)."""

    def __init__(
        self,
        client: Any,
        bucket: str,
        *,
        internal: Presigner,
        public: Presigner,
        calls: StorageCalls,
    ) -> None:
        self._client = client
        self._calls = calls
        self._internal = internal
        self._public = public
        self.bucket = bucket
        self.multiparts = Multiparts(client, bucket, public=public, calls=calls)

    async def presign_put(self, key: str, *, content_type: str, ttl_s: int) -> str:
        """Address for a browser to PUT this key to, with exactly this Content-Type."""
        return await self._public.put(key, content_type=content_type, ttl_s=ttl_s)

    async def presign_get(self, key: str, *, ttl_s: int) -> str:
        """Address from which a browser may read this one object."""
        return await self._public.get(key, ttl_s=ttl_s)

    async def presign_download(self, key: str, *, file_name: str, ttl_s: int) -> str:
        """As `presign_get`; a browser saves the object under this name instead of showing it."""
        return await self._public.download(key, file_name=file_name, ttl_s=ttl_s)

    async def presign_get_many(self, keys: Collection[str], *, ttl_s: int) -> dict[str, str]:
        """As `presign_get`, for the segments of a long playlist at once."""
        return await self._public.get_many(keys, ttl_s=ttl_s)

    async def presign_internal_get(self, key: str, *, ttl_s: int) -> str:
        """As `presign_get`, by the address that the portal's own machines use."""
        return await self._internal.get(key, ttl_s=ttl_s)

    async def address_life_s(self, ttl_s: int) -> int:
        """For how long an address presigned now is good; less than `ttl_s` if its credentials end.

        Whoever lets others keep such addresses does so for less than this.
        """
        return await self._public.life_s(ttl_s)

    async def address_signer(self) -> str:
        """The id of the credentials that sign now; kept addresses of others may end earlier."""
        return await self._public.signer_id()

    async def public_origin(self) -> str:
        """Scheme and host that browsers send uploads to and fetch segments from."""
        parts = urlsplit(await self._public.bucket_url())
        return f"{parts.scheme}://{parts.netloc}"

    async def head(self, key: str) -> ObjectInfo:
        """What HEAD tells about an object, or `ObjectMissing`."""
        async with self._calls.guarded(key):
            return read_info(await self._client.head_object(Bucket=self.bucket, Key=key))

    async def get(self, key: str) -> bytes:
        """The content of a small object, such as a playlist, or `ObjectMissing`."""
        return (await self._read(key))[1]

    async def get_range(self, key: str, begin: int, length: int) -> tuple[ObjectInfo, bytes]:
        """So many bytes of an object from there on, or those there are; or `ObjectMissing`.

        Raises `RangeRefused` when none are there, as in an empty object.
        """
        return await self._read(key, Range=f"bytes={begin}-{begin + length - 1}")

    async def _read(self, key: str, **options: str) -> tuple[ObjectInfo, bytes]:
        async with self._calls.guarded(key):
            answer = await self._client.get_object(Bucket=self.bucket, Key=key, **options)
            async with answer["Body"] as body:
                content: bytes = await body.read()
        return read_info(answer), content

    async def put(
        self, key: str, data: bytes | Path, *, content_type: str, max_age_s: int = FOREVER_S
    ) -> None:
        """Write an object, from memory or from a file of at most a few megabytes.

        Whoever is served it straight from the bucket may keep it for `max_age_s`.
        """
        body = await asyncio.to_thread(data.read_bytes) if isinstance(data, Path) else data
        async with self._calls.guarded(key):
            await self._client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=body,
                ContentType=content_type,
                CacheControl=f"public, max-age={max_age_s}",
            )

    async def delete(self, key: str) -> None:
        """Remove an object; an object already gone is no error."""
        async with self._calls.guarded(key):
            await self._client.delete_object(Bucket=self.bucket, Key=key)

    async def list_some(self, prefix: str) -> list[str]:
        """The first keys that begin with this, at most `LIST_LIMIT`."""
        return [entry.key for entry in (await self.list_page(prefix)).objects]

    async def list_page(self, prefix: str, *, delimiter: str = "", page: str = "") -> Page:
        """A page of what begins with this; see `listing`, which goes through all of them."""
        options = {"ContinuationToken": page} if page else {}
        async with self._calls.guarded(prefix):
            answer = await self._client.list_objects_v2(
                Bucket=self.bucket,
                Prefix=prefix,
                Delimiter=delimiter,
                MaxKeys=LIST_LIMIT,
                **options,
            )
        return read_page(answer)

    async def delete_many(self, keys: Collection[str]) -> None:
        """Remove objects, at most `LIST_LIMIT`, with one request; those already gone are no error.

        Raises `StorageUnavailable` when storage kept some of them.
        """
        wanted = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        async with self._calls.guarded(self.bucket):
            answer = await self._client.delete_objects(Bucket=self.bucket, Delete=wanted)
        kept = [it for it in answer.get("Errors", ()) if it.get("Code") not in MISSING_CODES]
        if kept:
            raise StorageUnavailable from StorageKept(kept[0].get("Code"), kept[0].get("Key"))

    async def check_bucket(self) -> None:
        """Make sure that the bucket is there and may be used."""
        async with self._calls.guarded(self.bucket):
            await self._client.head_bucket(Bucket=self.bucket)


@asynccontextmanager
async def open_storage(config: Config, *, fail_fast: bool = False) -> AsyncIterator[Storage]:
    """Make the clients once; they are shared by all requests and jobs of the process.

    With `fail_fast` calls have short time limits, and are refused at once while storage is away.
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
            client,
            config.s3_bucket,
            internal=Presigner(session, client, config.s3_bucket),
            public=Presigner(session, public_client, config.s3_bucket),
            calls=StorageCalls(fail_fast=fail_fast),
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
