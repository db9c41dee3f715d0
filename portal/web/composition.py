"""The composition of a web process: everything its views share, made once.

Below it nothing reaches for the whole: each part is given what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from quart import current_app

from portal.accounts import people, sessions, tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import Principal
from portal.concurrency import CachedValue, SingleFlight
from portal.config import Config
from portal.database.connection import Row, open_database
from portal.database.models import Video
from portal.queue.app import Queue, open_queue
from portal.storage.bucket import Storage, open_storage
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.playback_links import fetch_live_links
from portal.videos.playback_tokens import SigningKeys
from portal.videos.progress import Progress, fetch_progress, read_figures
from portal.videos.publishing import CategoryTable, NewUpload, issue_uploads
from portal.videos.reading import fetch_records, fetch_videos
from portal.web.data_loader import DataLoader
from portal.web.event_streams import EventStreams
from portal.web.playlists import Playlists

if TYPE_CHECKING:
    from portal.accounts.oidc import Provider


class AccountsExist:
    """Whether the portal has accounts, remembered once it has; until then each request asks."""

    def __init__(self) -> None:
        self._have = False
        self._loader: DataLoader[None, bool] = DataLoader(_fetch_existence)

    async def __call__(self) -> bool:
        """True for good after the first: the last owner can't be removed."""
        self._have = self._have or bool(await self._loader.load(None))
        return self._have


async def _fetch_existence(keys: Sequence[None]) -> dict[None, bool]:
    return dict.fromkeys(keys, await people.has_accounts())


@dataclass(frozen=True, slots=True)
class WebContext:
    """What the views of a process share; see `open_context`."""

    config: Config
    storage: Storage
    queue: Queue
    playlists: Playlists
    streams: EventStreams
    # A concurrency limit: of what anyone may ask for, searches cost the most.
    searches: asyncio.Semaphore
    # None where there is no single sign-on.
    provider: Provider | None = None
    sessions: DataLoader[str, Principal] = field(
        default_factory=partial(DataLoader, sessions.fetch_principals)
    )
    programs: DataLoader[str, Principal] = field(
        default_factory=partial(DataLoader, tokens.fetch_principals)
    )
    accounts_exist: AccountsExist = field(default_factory=AccountsExist)
    passwords: Passwords = field(default_factory=Passwords)
    signing_keys: SigningKeys = field(default_factory=SigningKeys)
    # Of those that work, the video of each.
    playback_links: DataLoader[UUID, UUID] = field(
        default_factory=partial(DataLoader, fetch_live_links)
    )
    members: DataLoader[UUID, Principal] = field(
        default_factory=partial(DataLoader, people.fetch_principals)
    )
    # Those that are asked for at once are recorded by one statement.
    new_uploads: DataLoader[NewUpload, bool] = field(
        default_factory=partial(DataLoader, issue_uploads)
    )
    categories: CategoryTable = field(default_factory=CategoryTable)
    records: DataLoader[UUID, Row] = field(default_factory=partial(DataLoader, fetch_records))
    videos: DataLoader[UUID, Video] = field(default_factory=partial(DataLoader, fetch_videos))
    progress: DataLoader[UUID, Progress] = field(
        default_factory=partial(DataLoader, fetch_progress)
    )
    figures: CachedValue[dict[str, list[Row]]] = field(
        default_factory=partial(CachedValue, read_figures)
    )
    readiness: SingleFlight[dict[str, str]] = field(default_factory=SingleFlight)
    quota: Quota = NO_QUOTA


def web_context() -> WebContext:
    """The context of the process that answers the current request."""
    context: WebContext = current_app.extensions["portal"]
    return context


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
            streams=EventStreams(config.database_url),
            searches=asyncio.Semaphore(config.database_pool_size // 2),
            quota=Quota.of(config),
            provider=_provider(config),
        )


def _provider(config: Config) -> Provider | None:
    if not config.oidc_issuer:
        return None
    # Its libraries take 10 MB of memory.
    from portal.accounts.oidc import Provider

    return Provider(config)
