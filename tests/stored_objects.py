"""What tests of deletion and posters share: looking into storage, and storage that is down."""

from dataclasses import replace
from typing import Any

from portal.config import Config
from portal.storage.bucket import Storage


async def stored(storage: Storage, video_id: Any, storage_key: str = "") -> list[str]:
    """Every key that storage holds of a video."""
    found = await storage.list_some(f"hls/{video_id}/")
    return found + (await storage.list_some(storage_key) if storage_key else [])


def unreachable(config: Config) -> Config:
    """The same settings, but nobody listens where storage should be."""
    return replace(config, s3_endpoint_url="http://127.0.0.1:9")
