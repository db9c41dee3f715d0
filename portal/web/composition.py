"""The composition of a web process: everything its views share, made once.

Below it nothing reaches for the whole: each part is given what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from quart import current_app

from portal.accounts import people, sessions, tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import Principal
from portal.concurrency import CachedValue, SingleFlight
from portal.config import Config
from portal.database.connection import Row, open_database
from portal.database.models import Video
from portal.events.records import VideoRow
from portal.queue.app import Queue, open_queue
from portal.storage.bucket import Storage, open_storage
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.playback_links import SigningKeys, fetch_live_links
from portal.videos.progress import Progress, fetch_progress, read_figures
from portal.videos.publishing import CategoryTable, NewUpload, issue_uploads
from portal.videos.reading import fetch_records, fetch_videos
from portal.videos.words import Vocabulary
from portal.web.event_streams import EventStreams
from portal.web.playlists import Playlists

if TYPE_CHECKING:
    from portal.accounts.oidc import Provider

Key = TypeVar("Key")
Value = TypeVar("Value")


class DataLoader(Generic[Key, Value]):
    """Reads by key, batched where many clients poll at once; one for each kind of value.

    What is asked for while a query is under way is fetched together by the next one. A read never
    sees less than what was committed before it was asked for. A hundred polls cost one query.
    `fetch` reads what there is of some keys, at most once at a time. Values are shared by all who
    asked for them, who must not change them.
    """

    def __init__(self, fetch: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]]) -> None:
        self._fetch = fetch
        self._asked: dict[Key, asyncio.Future[Value | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def load(self, key: Key) -> Value | None:
        """The value of this key; None if there is none."""
        if key not in self._asked:
            self._asked[key] = asyncio.get_running_loop().create_future()
        answer = self._asked[key]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        # An asker that is cancelled must not cancel it for the others.
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                found = await self._fetch(list(asked))
            except Exception as exc:  # noqa: BLE001  # it is the askers' to handle
                for answer in asked.values():
                    answer.set_exception(exc)
                    answer.exception()  # seen, even if all who asked have gone
            else:
                for key, answer in asked.items():
                    answer.set_result(found.get(key))
        self._reading = None


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
    records: DataLoader[UUID, VideoRow] = field(default_factory=partial(DataLoader, fetch_records))
    videos: DataLoader[UUID, Video] = field(default_factory=partial(DataLoader, fetch_videos))
    progress: DataLoader[UUID, Progress] = field(
        default_factory=partial(DataLoader, fetch_progress)
    )
    figures: CachedValue[dict[str, list[Row]]] = field(
        default_factory=partial(CachedValue, read_figures)
    )
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
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
