"""What tests of deletion and posters share: looking into storage, and storage that is down."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import aioboto3
from botocore.config import Config as ClientConfig

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


def unreachable(config: Config) -> Config:
    """The same settings, but nobody listens where storage should be."""
    return replace(config, s3_endpoint_url="http://127.0.0.1:9")
