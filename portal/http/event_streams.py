"""Streams of events in one process, with one LISTEN for all of them.

A stream has a place, the number of its last event, and a few events that wait to be sent. Each
event is read once and given to all streams whose readers see it. A stream that falls behind reads
from the table by itself, so a slow reader costs as little as an idle one.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from contextvars import Context
from math import inf
from uuid import UUID

from psycopg import AsyncConnection

from portal.accounts.permissions import Audience, Principal, audience_in
from portal.concurrency import task_group
from portal.database.connection import BACKOFF, CONNECT_TIMEOUT_S, Row, with_keepalives
from portal.database.outages import is_outage
from portal.events.log import EventType
from portal.retry import retry
from portal.videos import events
from portal.videos.progress import fetch_under_way

HEARTBEAT_S = 15.0
PROGRESS_INTERVAL_S = 2.0
# Events that may wait in a stream. With more of them the stream is behind.
MAX_WAITING = 64
ROWS_AT_ONCE = 100


class StreamEvent:
    """A row of an event, or of progress, which has no number.

    All streams share it and its encoded `texts`. The key of a text is its type, and the account if
    the text differs between accounts.
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
    """Events for one reader: of a video, or of all videos in the reader's lists.

    With `types` only events of these types are sent. The stream of a video ends with the deletion
    of the video, which is also sent when the video is hidden from the reader.
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
        self._is_behind = False
        self._is_ended = False
        self._waiting: list[StreamEvent] = []
        self._is_news = asyncio.Event()

    def give(self, event: StreamEvent) -> None:
        """Add an event that is to be sent, if the reader sees it."""
        if event.seen_by(self.sees):
            self._waiting.append(event)
            self._is_news.set()
        if len(self._waiting) > MAX_WAITING:
            self.catch_up()

    def catch_up(self) -> None:
        """Have the stream read the missing events from the table."""
        self._is_behind = True
        self._waiting = []
        self._is_news.set()

    def end(self) -> None:
        """End the stream."""
        self._is_ended = True
        self._is_news.set()

    async def take(self) -> list[StreamEvent] | None:
        """Wait for the next events that the reader sees, and return them; None at the end.

        The list is empty if none arrived within `HEARTBEAT_S`, or if the reader sees none of them.
        `types` is left to the caller.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S):
                await self._is_news.wait()
        self._is_news.clear()
        if self._is_ended:
            return None
        place = self.place
        candidates = self._waiting
        self._waiting = []
        if self._is_behind:
            # Events that arrive during the query are left out later if it returns them, too.
            self._is_behind = False
            rows = await events.fetch_after(place, video_id=self.video_id, limit=ROWS_AT_ONCE)
            candidates = [StreamEvent(row) for row in rows]
            if len(rows) == ROWS_AT_ONCE:
                self.catch_up()
        self.place = max([place, *(event.number or 0 for event in candidates)])
        new = [event for event in candidates if (event.number or inf) > place]
        visible = [event for event in new if event.seen_by(self.sees)]
        last = visible[-1].seen_by(self.sees) if visible else None
        if self.video_id and last and last.get("type") == EventType.DELETED:
            self.end()
        return visible


class EventStreams:
    """The streams of a process, which share one connection to the database."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        # Streams by video. Streams of all videos have an empty key.
        self._streams: dict[str, set[Stream]] = {}
        self._task: asyncio.Task[None] | None = None
        # Number of the last event that was given to the streams; None until it is known.
        self._place: int | None = None
        self._is_news = asyncio.Event()

    async def newest_number(self) -> int:
        """Return the number after which a new stream begins."""
        return await events.newest_number() if self._place is None else self._place

    def add(self, stream: Stream) -> None:
        """Give a stream the events after its place, until it is removed."""
        self._streams.setdefault(stream.video_id, set()).add(stream)
        if stream.place != self._place:
            stream.catch_up()
        if self._task is None:
            # The task has its own context, because it outlives the request of the first stream.
            self._task = asyncio.create_task(self._run(), context=Context())

    def remove(self, stream: Stream) -> None:
        """Remove a stream. Without streams the process stops listening."""
        streams = self._streams[stream.video_id]
        streams.remove(stream)
        if not streams:
            del self._streams[stream.video_id]
        if self._task is not None and not self._streams:
            self._task.cancel()
            self._task = None
            self._place = None

    async def _run(self) -> None:
        try:
            await retry(self._listen, on=is_outage, backoff=BACKOFF, part="Database")
        finally:
            # After an unexpected error readers reconnect, and the first one restarts the task.
            if self._task is asyncio.current_task():
                for stream in self._all_streams():
                    stream.end()

    async def _listen(self) -> None:
        connection = await AsyncConnection.connect(
            with_keepalives(self._database_url),
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_S,
        )
        async with connection, task_group() as tasks:
            await connection.execute("LISTEN portal_events")
            if self._place is None:
                self._place = await events.newest_number()
                for stream in self._all_streams():
                    stream.catch_up()
            tasks.create_task(self._give_events(self._place))
            tasks.create_task(self._give_progress())
            # There may be events from before the LISTEN.
            self._is_news.set()
            async for _ in connection.notifies():
                self._is_news.set()

    async def _give_events(self, place: int) -> None:
        while True:
            await self._is_news.wait()
            self._is_news.clear()
            rows = await events.fetch_after(place, limit=ROWS_AT_ONCE)
            for row in rows:
                self._give(StreamEvent(row))
                self._place = place = row["number"]
            if len(rows) == ROWS_AT_ONCE:
                self._is_news.set()

    async def _give_progress(self) -> None:
        former: dict[str, tuple[str, float]] = {}
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_S)
            rows = await fetch_under_way()
            present = {row["video_id"]: (row["stage"], row["percent"]) for row in rows}
            for row in rows:
                if former.get(row["video_id"]) != present[row["video_id"]]:
                    self._give(StreamEvent(row))
            former = present

    def _give(self, event: StreamEvent) -> None:
        for video_id in ("", event.row["video_id"]):
            for stream in self._streams.get(video_id, ()):
                stream.give(event)

    def _all_streams(self) -> list[Stream]:
        return [stream for streams in self._streams.values() for stream in streams]
