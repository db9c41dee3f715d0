"""Changes of videos as they happen, for the streams of one process: one LISTEN for all of them.

A stream is a place, the number of the last event that it was given, and a few events that wait to
be sent. What happens is read once and given to all streams that may see it; a stream that is behind
reads from the table by itself. So a slow reader costs as little as an idle one.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from contextvars import Context
from math import inf
from uuid import UUID

from psycopg import AsyncConnection

from portal.accounts.permissions import Audience, Principal
from portal.concurrency import task_group
from portal.database.connection import BACKOFF, CONNECT_TIMEOUT_S, Row
from portal.database.outages import is_outage
from portal.events.log import EventType
from portal.retry import retry
from portal.videos import events
from portal.videos.progress import fetch_under_way
from portal.videos.reading import audience_in

HEARTBEAT_S = 15.0
PROGRESS_INTERVAL_S = 2.0
# Events that may wait for a stream; with more of them it is behind.
MAX_WAITING = 64
ROWS_AT_ONCE = 100


class StreamEvent:
    """A row of an event, or of progress, which has no number.

    It is shared by all streams, and so are its encoded texts, by their type and the account that
    they are for, if they are not the same for everyone.
    """

    __slots__ = ("number", "row", "texts")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.number: int | None = row.get("number")
        self.texts: dict[tuple[str, UUID | None], bytes] = {}

    def seen_by(self, sees: Callable[[Audience], bool]) -> Row | None:
        """Return the row as a reader receives it, or None if they don't: `events.as_seen_by`."""
        if self.number is not None:
            return events.as_seen_by(sees, self.row)
        return self.row if sees(audience_in(self.row)) else None


class Stream:
    """What one reader gets: the events of a video, or of all videos that lists show them.

    With `types` only the events of these types are sent.
    The stream of a video ends with its deletion, which is also told when it is hidden from the
    reader.
    """

    def __init__(
        self,
        reader: Principal,
        *,
        after: int,
        video_id: str = "",
        types: Collection[EventType] = (),
    ) -> None:
        self.reader = reader
        self.types = types
        self.place = after
        self.video_id = video_id
        self.sees = reader.may_see if video_id else reader.may_list
        self._is_behind = self._is_ended = False
        self._waiting: list[StreamEvent] = []
        self._is_news = asyncio.Event()

    def give(self, event: StreamEvent) -> None:
        """Have an event sent, if the reader may see it."""
        if event.seen_by(self.sees):
            self._waiting.append(event)
            self._is_news.set()
        if len(self._waiting) > MAX_WAITING:
            self.catch_up()

    def catch_up(self) -> None:
        """Have it read from the table what it lacks."""
        self._is_behind, self._waiting = True, []
        self._is_news.set()

    def end(self) -> None:
        """Send nothing more."""
        self._is_ended = True
        self._is_news.set()

    async def take(self) -> list[StreamEvent] | None:
        """What is to be sent next: nothing within `HEARTBEAT_S`, or None at the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S):
                await self._is_news.wait()
        self._is_news.clear()
        if self._is_ended:
            return None
        place, found, self._waiting = self.place, self._waiting, []
        if self._is_behind:
            # What is given meanwhile waits, and is left out then if it is among these.
            self._is_behind = False
            rows = await events.fetch_after(place, video_id=self.video_id, limit=ROWS_AT_ONCE)
            found = [StreamEvent(row) for row in rows]
            if len(rows) == ROWS_AT_ONCE:
                self.catch_up()
        self.place = max([place, *(it.number or 0 for it in found)])
        taken = [
            event for event in found if (event.number or inf) > place and event.seen_by(self.sees)
        ]
        last = taken[-1].seen_by(self.sees) if taken else None
        if self.video_id and last and last.get("type") == EventType.DELETED:
            self.end()
        return taken


class EventStreams:
    """The streams of a process. While there are some, it holds one connection to the database."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        # By their video; those of all videos under no name.
        self._streams: dict[str, set[Stream]] = {}
        self._task: asyncio.Task[None] | None = None
        # The number of the last event that was given to the streams; None until it is known.
        self._place: int | None = None
        self._is_news = asyncio.Event()

    async def newest_number(self) -> int:
        """The number after which a new stream begins."""
        return await events.newest_number() if self._place is None else self._place

    def add(self, stream: Stream) -> None:
        """Give a stream what happens after its place, until it is removed."""
        self._streams.setdefault(stream.video_id, set()).add(stream)
        if stream.place != self._place:
            stream.catch_up()
        if self._task is None:
            # In a context of its own: it is no part of the request that happens to be the first.
            self._task = asyncio.create_task(self._run(), context=Context())

    def remove(self, stream: Stream) -> None:
        """Forget a stream; without streams nobody listens."""
        those = self._streams[stream.video_id]
        those.remove(stream)
        if not those:
            del self._streams[stream.video_id]
        if self._task is not None and not self._streams:
            self._task.cancel()
            self._task = self._place = None

    async def _run(self) -> None:
        try:
            await retry(self._listen, on=is_outage, backoff=BACKOFF, part="Database")
        finally:
            # Also if something unexpected ended it: readers come again, and the first begins anew.
            if self._task is asyncio.current_task():
                for stream in self._all():
                    stream.end()

    async def _listen(self) -> None:
        connection = await AsyncConnection.connect(
            self._database_url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S
        )
        async with connection, task_group() as tasks:
            await connection.execute("LISTEN portal_events")
            if self._place is None:
                self._place = await events.newest_number()
                for stream in self._all():
                    stream.catch_up()
            tasks.create_task(self._tell_events(self._place))
            tasks.create_task(self._tell_progress())
            # Something may have happened while nobody listened.
            self._is_news.set()
            async for _ in connection.notifies():
                self._is_news.set()

    async def _tell_events(self, place: int) -> None:
        while True:
            await self._is_news.wait()
            self._is_news.clear()
            rows = await events.fetch_after(place, limit=ROWS_AT_ONCE)
            for row in rows:
                self._give(StreamEvent(row))
                self._place = place = row["number"]
            if len(rows) == ROWS_AT_ONCE:
                self._is_news.set()

    async def _tell_progress(self) -> None:
        told: dict[str, tuple[str, float]] = {}
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            rows = await fetch_under_way()
            found = {row["video_id"]: (row["stage"], row["percent"]) for row in rows}
            for row in rows:
                if told.get(row["video_id"]) != found[row["video_id"]]:
                    self._give(StreamEvent(row))
            told = found

    def _give(self, event: StreamEvent) -> None:
        for video_id in ("", event.row["video_id"]):
            for stream in self._streams.get(video_id, ()):
                stream.give(event)

    def _all(self) -> list[Stream]:
        return [stream for those in self._streams.values() for stream in those]
