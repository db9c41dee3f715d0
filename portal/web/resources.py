"""The shared connections of a process: database, storage, queue; made once and passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from portal.concurrency.single_flight import SingleFlight
from portal.database.connection import open_database
from portal.database.models import Video
from portal.queue.app import Queue, open_queue
from portal.storage.bucket import Storage, open_storage
from portal.videos.progress import Progress, fetch_progress
from portal.videos.publishing import CategoryTable, fetch_videos
from portal.web.api.records import Record, fetch_records
from portal.web.body_cache import SharedBodies
from portal.web.data_loader import BatchReader
from portal.web.service_metrics import ServiceFigures

if TYPE_CHECKING:
    from portal.config import Config


@dataclass(frozen=True, slots=True)
class Resources:
    """What the web, the worker and the command line share; see `open_resources`."""

    config: Config
    storage: Storage
    queue: Queue
    signed_playlists: SharedBodies
    searches: asyncio.Semaphore
    categories: CategoryTable = field(default_factory=CategoryTable)
    records: BatchReader[Record] = field(default_factory=lambda: BatchReader(fetch_records))
    videos: BatchReader[Video] = field(default_factory=lambda: BatchReader(fetch_videos))
    progress: BatchReader[Progress] = field(default_factory=lambda: BatchReader(fetch_progress))
    figures: ServiceFigures = field(default_factory=ServiceFigures)
    readiness: SingleFlight[dict[str, bool]] = field(default_factory=SingleFlight)
    # What never changes while the process runs.
    documents: SharedBodies = field(default_factory=lambda: SharedBodies(ttl_s=inf))


@asynccontextmanager
async def open_resources(config: Config, *, fail_fast: bool = False) -> AsyncIterator[Resources]:
    """Open everything for the length of a process.

    With `fail_fast`, for the web, what is known to be away is not waited for.

    Nothing is contacted yet, so that the web can start, and say what is missing, while the
    database or storage is down.
    """
    async with (
        open_database(config, fail_fast=fail_fast),
        open_storage(config, fail_fast=fail_fast) as storage,
    ):
        yield Resources(
            config=config,
            storage=storage,
            queue=open_queue(config.database_url),
            # Searches cost the most of what anyone may ask for; the others go on beside them.
            searches=asyncio.Semaphore(config.database_pool_size // 2),
            # What is left of the signatures' life must still cover a whole viewing.
            signed_playlists=SharedBodies(ttl_s=config.playback_url_ttl_s / 4),
        )
