"""What tests of deletion and posters share: looking into storage, and storage that is down."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from time import time
from typing import Any
from uuid import uuid4

import aioboto3
from botocore.config import Config as ClientConfig
from running_portal import until

from portal.config import Config
from portal.storage.bucket import Storage


def s3_client(environ: Mapping[str, str]) -> AbstractAsyncContextManager[Any]:
    """A client of the storage that these settings name, which knows nothing of the portal."""
    session = aioboto3.Session(
        environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1"
    )
    settings = ClientConfig(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        retries={"total_max_attempts": 1},
    )
    return session.client("s3", endpoint_url=environ["S3_ENDPOINT_URL"], config=settings)


async def stored(storage: Storage, video_id: Any, storage_key: str = "") -> list[str]:
    """Every key that storage holds of a video."""
    found = await storage.list_some(f"hls/{video_id}/")
    return found + (await storage.list_some(storage_key) if storage_key else [])


async def with_own_bucket(environ: Mapping[str, str]) -> dict[str, str]:
    """These settings with a new bucket."""
    name = f"bucket-{uuid4().hex}"
    async with s3_client(environ) as client:
        await client.create_bucket(Bucket=name)
    return {**environ, "S3_BUCKET": name}


async def another_second() -> None:
    """Wait until storage's clock, which is this machine's, shows another second."""
    now_s = int(time())
    await until(lambda: int(time()) > now_s, timeout_s=5, interval_s=0.02)


def unreachable(config: Config) -> Config:
    """The same settings, but nobody listens where storage should be."""
    return replace(config, s3_endpoint_url="http://127.0.0.1:9")
