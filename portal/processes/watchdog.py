"""Attend one child that works on something: pause it, and end it when it stalls or takes too long.

The child tells by what it prints how far it is; its readers tell the `Watch`.
"""

import asyncio
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Coroutine
from dataclasses import dataclass, field

from portal.concurrency import task_group
from portal.processes.child import send

_WATCH_PERIOD_S = 0.2


class Stalled(Exception):
    """The child made no progress for too long."""


class OutOfTime(Exception):
    """The child took longer than it may."""


@dataclass(slots=True)
class Watch:
    """What is known about a child: when it has to be ready, and when it last got on."""

    timeout_s: float
    stall_s: float
    _started_at: float = field(default_factory=time.monotonic)
    _moved_at: float = field(default_factory=time.monotonic)
    _position: tuple[object, ...] = ()

    def saw(self, *position: object) -> None:
        """The child says that it is here."""
        if position != self._position:
            self._moved_at = time.monotonic()
        self._position = position

    def skip(self, seconds: float) -> None:
        """Time in which the child was paused counts for neither limit."""
        self._started_at += seconds
        self._moved_at += seconds

    def check(self) -> None:
        """Raise Stalled or OutOfTime when a limit is exceeded."""
        now = time.monotonic()
        if now - self._moved_at > self.stall_s:
            raise Stalled
        if now - self._started_at > self.timeout_s:
            raise OutOfTime


async def attend(
    process: Process, watch: Watch, *readers: Coroutine[None, None, None], paused: asyncio.Event
) -> None:
    """Run the readers of its output until the child has ended; the caller stops and judges it.

    While `paused` is set the child stands still. Raises Stalled, OutOfTime, or a reader's error.
    """
    async with task_group() as tasks:
        for reader in readers:
            tasks.create_task(reader)
        watchdog = tasks.create_task(_guard(process, watch, paused))
        await process.wait()
        watchdog.cancel()


async def _guard(process: Process, watch: Watch, paused: asyncio.Event) -> None:
    """Enforce the limits and pause."""
    is_paused = False
    checked_at = time.monotonic()
    while True:
        await asyncio.sleep(_WATCH_PERIOD_S)
        now = time.monotonic()
        if is_paused:
            watch.skip(now - checked_at)
        checked_at = now
        if paused.is_set() != is_paused:
            is_paused = paused.is_set()
            send(process, signal.SIGSTOP if is_paused else signal.SIGCONT)
        watch.check()
