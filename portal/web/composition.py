"""The composition of a web process: everything its views share, made once.

Below it nothing reaches for the whole: each part is given what it needs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf

from portal.concurrency.single_flight import SingleFlight
from portal.config import Config
from portal.database.connection import Row, open_database
from portal.database.models import Video
from portal.queue.app import Queue, open_queue
from portal.storage.bucket import Storage, open_storage
from portal.videos.progress import Progress, fetch_progress
from portal.videos.publishing import CategoryTable, fetch_videos
from portal.videos.rows import fetch_records
from portal.web.body_cache import BodyCache
from portal.web.data_loader import DataLoader
from portal.web.playlists import Playlists
from portal.web.service_metrics import ServiceFigures


@dataclass(frozen=True, slots=True)
class WebContext:
    """What the views of a process share; see `open_context`."""

    config: Config
    storage: Storage
    queue: Queue
    playlists: Playlists
    # A concurrency limit: of what anyone may ask for, searches cost the most.
    searches: asyncio.Semaphore
    categories: CategoryTable = field(default_factory=CategoryTable)
    records: DataLoader[Row] = field(default_factory=lambda: DataLoader(fetch_records))
    videos: DataLoader[Video] = field(default_factory=lambda: DataLoader(fetch_videos))
    progress: DataLoader[Progress] = field(default_factory=lambda: DataLoader(fetch_progress))
    figures: ServiceFigures = field(default_factory=ServiceFigures)
    readiness: SingleFlight[dict[str, str]] = field(default_factory=SingleFlight)
    # The API's descriptions, which never change while the process runs.
    documents: BodyCache = field(default_factory=lambda: BodyCache(ttl_s=inf))


@asynccontextmanager
async def open_context(config: Config) -> AsyncIterator[WebContext]:
    """Open everything for the length of a process.

    Nothing is contacted yet, so that the web can start, and say what is missing, while the
    database or storage is down. The queue's own pool is not opened: enqueuing uses the connection
    of the current transaction.
    """
    async with (
        open_database(config, fail_fast=True),
        open_storage(config, fail_fast=True) as storage,
    ):
        yield WebContext(
            config=config,
            storage=storage,
            queue=open_queue(config.database_url),
            playlists=Playlists(
                storage, base_url=config.playback_base_url, url_ttl_s=config.playback_url_ttl_s
            ),
            searches=asyncio.Semaphore(config.database_pool_size // 2),
        )
