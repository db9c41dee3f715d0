"""The contents of storage, and settings of storage that is down."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import aioboto3
from botocore.config import Config as ClientConfig

from portal.config import Config
from portal.storage.bucket import Storage


def s3_client(environ: Mapping[str, str]) -> AbstractAsyncContextManager[Any]:
    """Return a client of the storage in these settings, independent of the portal."""
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
    """Return the keys of all objects of a video."""
    output_keys = await storage.list_some(f"hls/{video_id}/")
    return output_keys + (await storage.list_some(storage_key) if storage_key else [])


def unreachable(config: Config) -> Config:
    """Return the same settings with an address of storage on which nothing listens."""
    return replace(config, s3_endpoint_url="http://127.0.0.1:9")
