"""Composition root of a web process: everything that its views share, created once.

Lower modules never see the whole context: each gets the parts that it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from quart import current_app

from portal.accounts import guests, people, sessions, tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import Principal
from portal.concurrency import SingleFlight
from portal.config import Config
from portal.database.account_models import Guest
from portal.database.connection import Row, open_database
from portal.database.models import Upload, Video
from portal.films.version_hooks import VersionHook
from portal.http.event_streams import EventStreams
from portal.http.playlists import Playlists
from portal.storage.bucket import Storage, open_storage
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.feature import FindPending, Pending, ReadPanel
from portal.videos.playback_links import SigningKeys, fetch_live_links
from portal.videos.progress import Progress, fetch_progress
from portal.videos.publishing import CategoryTable, issue_uploads
from portal.videos.reading import fetch_records, fetch_videos
from portal.videos.words import Vocabulary

if TYPE_CHECKING:
    from portal.accounts.oidc import Provider

Key = TypeVar("Key")
Value = TypeVar("Value")


class DataLoader(Generic[Key, Value]):
    """Batched reads by key, for one kind of value that many clients poll.

    Keys that are requested while a query is running are fetched together by the next one, so a
    hundred polls cost one query. A read sees everything that was committed before its request.
    `fetch` reads the existing values of some keys; one call runs at a time, after a pause of
    `pause_s` for further keys. Callers share the values and must not change them.
    """

    def __init__(
        self,
        fetch: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Value]]],
        *,
        pause_s: float = 0.0,
    ) -> None:
        self._fetch = fetch
        self._pause_s = pause_s
        self._asked: dict[Key, asyncio.Future[Value | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def load(self, key: Key) -> Value | None:
        """Return the value of a key; None if there is none."""
        if key not in self._asked:
            self._asked[key] = asyncio.get_running_loop().create_future()
        answer = self._asked[key]
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())
        # A cancelled caller must not cancel the read of the others.
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        while self._asked:
            if self._pause_s:
                await asyncio.sleep(self._pause_s)
            pending = self._asked
            self._asked = {}
            try:
                values = await self._fetch(list(pending))
            except Exception as exc:  # noqa: BLE001  # the callers handle it
                for answer in pending.values():
                    answer.set_exception(exc)
                    answer.exception()  # marked as retrieved, even if all callers are gone
            else:
                for key, answer in pending.items():
                    answer.set_result(values.get(key))
        self._reading = None


class AccountsExist:
    """Check that the portal has accounts, which is read on each request until it has."""

    def __init__(self) -> None:
        self._have = False
        self._loader: DataLoader[None, bool] = DataLoader(_fetch_existence)

    async def __call__(self) -> bool:
        """Return whether accounts exist. True is final: the last owner can't be removed."""
        self._have = self._have or bool(await self._loader.load(None))
        return self._have


async def _fetch_existence(keys: Sequence[None]) -> dict[None, bool]:
    return dict.fromkeys(keys, await people.has_accounts())


@dataclass(frozen=True, slots=True)
class WebContext:
    """Objects that the views of a process share; see `open_context`."""

    config: Config
    storage: Storage
    hooks: Sequence[VersionHook]
    pending: Sequence[FindPending]
    panels: Sequence[ReadPanel]
    playlists: Playlists
    streams: EventStreams
    # Limit of concurrent searches, the most expensive requests that anyone may send.
    searches: asyncio.Semaphore
    # The provider of single sign-on, if there is one.
    provider: Provider | None = None
    sessions: DataLoader[str, Principal] = field(
        default_factory=partial(DataLoader, sessions.fetch_principals)
    )
    programs: DataLoader[str, Principal] = field(
        default_factory=partial(DataLoader, tokens.fetch_principals)
    )
    guests: DataLoader[str, Guest] = field(default_factory=partial(DataLoader, guests.fetch_guests))
    accounts_exist: AccountsExist = field(default_factory=AccountsExist)
    passwords: Passwords = field(default_factory=Passwords)
    signing_keys: SigningKeys = field(default_factory=SigningKeys)
    # Videos of the working playback links, by link id.
    playback_links: DataLoader[UUID, UUID] = field(
        default_factory=partial(DataLoader, fetch_live_links)
    )
    members: DataLoader[UUID, Principal] = field(
        default_factory=partial(DataLoader, people.fetch_principals)
    )
    # Simultaneous uploads are recorded by one statement.
    new_uploads: DataLoader[Upload, bool] = field(
        default_factory=partial(DataLoader, issue_uploads)
    )
    categories: CategoryTable = field(default_factory=CategoryTable)
    records: DataLoader[UUID, Row] = field(default_factory=partial(DataLoader, fetch_records))
    videos: DataLoader[UUID, Video] = field(default_factory=partial(DataLoader, fetch_videos))
    progress: DataLoader[UUID, Progress] = field(
        default_factory=partial(DataLoader, fetch_progress)
    )
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    readiness: SingleFlight[dict[str, str]] = field(default_factory=SingleFlight)
    quota: Quota = NO_QUOTA
    _shared: dict[Callable[[], Any], Any] = field(default_factory=dict)

    def shared(self, make: Callable[[], Value]) -> Value:
        """Return what `make` returned when this process first called this method with it."""
        if make not in self._shared:
            self._shared[make] = make()
        value: Value = self._shared[make]
        return value

    async def find_pending(self, video_id: UUID, reader: Principal) -> Pending | None:
        """Return the work that will create a video, if the reader may see it."""
        for find in self.pending:
            if work := await find(video_id, reader):
                return work
        return None


def web_context() -> WebContext:
    """Return the context of the current process."""
    context: WebContext = current_app.extensions["portal"]
    return context


@asynccontextmanager
async def open_context(
    config: Config,
    *,
    hooks: Sequence[VersionHook],
    pending: Sequence[FindPending],
    panels: Sequence[ReadPanel],
) -> AsyncIterator[WebContext]:
    """Open the context for the lifetime of a process, with what features declare.

    Nothing is contacted yet, so that the web process starts, and reports what is missing, while the
    database or storage is down.
    """
    async with (
        open_database(config, fail_fast=True),
        open_storage(config, fail_fast=True) as storage,
    ):
        yield WebContext(
            config=config,
            storage=storage,
            hooks=hooks,
            pending=pending,
            panels=panels,
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
    # The provider's libraries take 10 MB of memory.
    from portal.accounts.oidc import Provider

    return Provider(config)
