"""Object storage: keys, presigned addresses, and the few object operations the portal needs.

Translates botocore's errors at this boundary: `ObjectMissing` for the one expected code,
`StorageUnavailable` when storage cannot be reached or is overloaded; anything else propagates.
Media bytes of uploads never pass through here; clients talk to storage directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

import aioboto3
from botocore.config import Config as ClientConfig
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from portal.errors import ObjectMissing, StorageUnavailable
from portal.presigning import Presigner

if TYPE_CHECKING:
    from portal.config import Config

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 20
MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})


def upload_key(upload_id: UUID, extension: str) -> str:
    """Storage key of a raw file: `videos/<unique id>.<extension>`."""
    return f"videos/{upload_id.hex}.{extension}"


def output_prefix(video_id: UUID | str, attempt: int) -> str:
    """Where one transcoding attempt writes; published output is never written again."""
    return f"hls/{video_id}/{attempt}/"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What HEAD tells about an object.

    `etag` names this very content; where storage computes none, as the embedded server for large
    files, its time of writing and size stand in for it.
    """

    size_bytes: int
    etag: str


class Storage:
    """One bucket, seen from the portal (`client`) and from browsers (`public`)."""

    def __init__(self, client: Any, bucket: str, *, internal: Presigner, public: Presigner) -> None:
        self._client = client
        self._internal = internal
        self._public = public
        self.bucket = bucket

    async def presign_put(self, key: str, *, content_type: str, ttl_s: int) -> str:
        """Address for a browser to PUT this key to, with exactly this Content-Type."""
        with _translated_errors(key):
            return await self._public.put(key, content_type=content_type, ttl_s=ttl_s)

    async def presign_get(self, key: str, *, ttl_s: int) -> str:
        """Address from which a browser may read this one object."""
        with _translated_errors(key):
            return await self._public.get(key, ttl_s=ttl_s)

    async def presign_get_many(self, keys: Collection[str], *, ttl_s: int) -> dict[str, str]:
        """As `presign_get`, for the segments of a long playlist at once."""
        with _translated_errors(self.bucket):
            return await self._public.get_many(keys, ttl_s=ttl_s)

    async def presign_internal_get(self, key: str, *, ttl_s: int) -> str:
        """As `presign_get`, by the address that the portal's own machines use."""
        with _translated_errors(key):
            return await self._internal.get(key, ttl_s=ttl_s)

    async def public_origin(self) -> str:
        """Scheme and host that browsers send uploads to and fetch segments from."""
        with _translated_errors(self.bucket):
            parts = urlsplit(await self._public.bucket_url())
        return f"{parts.scheme}://{parts.netloc}"

    async def head(self, key: str) -> ObjectInfo:
        """Size and ETag of an object, or `ObjectMissing`."""
        with _translated_errors(key):
            answer = await self._client.head_object(Bucket=self.bucket, Key=key)
        size_bytes = answer["ContentLength"]
        etag = answer.get("ETag", "").strip('"')
        return ObjectInfo(size_bytes, etag or f"{answer['LastModified'].isoformat()}/{size_bytes}")

    async def get(self, key: str) -> bytes:
        """The content of a small object, such as a playlist, or `ObjectMissing`."""
        with _translated_errors(key):
            answer = await self._client.get_object(Bucket=self.bucket, Key=key)
            async with answer["Body"] as body:
                content: bytes = await body.read()
        return content

    async def put(self, key: str, data: bytes | Path, *, content_type: str) -> None:
        """Write an object, from memory or from a file of at most a few megabytes."""
        body = await asyncio.to_thread(data.read_bytes) if isinstance(data, Path) else data
        with _translated_errors(key):
            await self._client.put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType=content_type
            )

    async def delete(self, key: str) -> None:
        """Remove an object; an object already gone is no error."""
        with _translated_errors(key):
            await self._client.delete_object(Bucket=self.bucket, Key=key)

    async def check_bucket(self) -> None:
        """Make sure that the bucket is there and may be used."""
        with _translated_errors(self.bucket):
            await self._client.head_bucket(Bucket=self.bucket)


@asynccontextmanager
async def open_storage(config: Config) -> AsyncIterator[Storage]:
    """Make the clients once; they are shared by all requests and jobs of the process."""
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
        )


def _client(session: Any, endpoint_url: str) -> Any:
    return session.client(
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


@contextmanager
def _translated_errors(key: str) -> Iterator[None]:
    try:
        yield
    except ClientError as exc:
        if exc.response.get("Error", {}).get("Code") in MISSING_CODES:
            raise ObjectMissing(key) from exc
        if exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
            raise StorageUnavailable from exc
        raise
    except (HTTPClientError, TimeoutError) as exc:
        raise StorageUnavailable from exc
    except BotoCoreError as exc:
        # No credentials, unknown region: the operator's to mend, and to be read in the log.
        raise StorageUnavailable from exc
