"""Keeps a set of child processes running: in order, restarted with pauses, ended in reverse.

Knows nothing about the portal. A child that dies is started again after a growing pause; one
that keeps dying ends the whole set with `KeepsDying`, raised where `running_children` is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.processes.orphans import remember
from portal.processes.output import (
    ChildSpec,
    LineOutput,
    UpError,
    describe_exit,
    end,
    kill_group,
    send,
    spawn,
)

logger = logging.getLogger(__name__)

READY_INTERVAL_S = 0.05
TRIM_INTERVAL_S = 60.0
LAST_LINES_TIMEOUT_S = 0.5


class KeepsDying(UpError):
    """A child died too often in a row."""


class ChildFailed(UpError):
    """A child that should run once and succeed did not."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """A child that lived for `settled_s` starts with a clean record."""

    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0
    settled_s: float = 60.0
    deaths_allowed: int = 5

    def pause_s(self, deaths: int) -> float:
        return float(min(self.first_pause_s * 2 ** (deaths - 1), self.longest_pause_s))


class _Child:
    """One child over all its lives."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.process: asyncio.subprocess.Process | None = None
        self.keeper: asyncio.Task[None] | None = None
        self.pump: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.returncode is None


class Children:
    """The running set; made by `running_children`."""

    def __init__(
        self,
        keepers: asyncio.TaskGroup,
        pumps: asyncio.TaskGroup,
        *,
        policy: RestartPolicy,
        roster: Path | None,
    ) -> None:
        self._keepers = keepers
        self._pumps = pumps
        self._policy = policy
        self._roster = roster
        self._waves: list[list[_Child]] = []
        self._background: list[asyncio.Task[None]] = []

    async def start(self, *specs: ChildSpec) -> None:
        """Start these together, after all earlier ones, and wait until each is ready."""
        wave = [_Child(spec) for spec in specs]
        self._waves.append(wave)
        for child in wave:
            child.keeper = self._keepers.create_task(self._keep(child))
        for child in wave:
            await child.ready.wait()

    async def run(self, spec: ChildSpec) -> None:
        """Run a child that ends by itself; `ChildFailed` with its last lines unless it succeeds."""
        child = _Child(spec)
        process = await self._spawn(child)
        try:
            async with asyncio.timeout(spec.ready_timeout_s):
                returncode = await process.wait()
        except TimeoutError:
            raise ChildFailed(
                f"{spec.name} did not finish within {spec.ready_timeout_s:g} s."
            ) from None
        finally:
            await end(process, spec)
        await _last_lines(child)
        if returncode != 0:
            raise ChildFailed(_with_tail(f"{spec.name} failed ({describe_exit(returncode)})", spec))

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside the children, and give it up when they are ended."""
        self._background.append(self._keepers.create_task(work))

    def pid(self, name: str) -> int | None:
        """The process number of a running child."""
        for child in self._all():
            if child.spec.name == name and child.process is not None and child.alive:
                return child.process.pid
        return None

    def hurry(self) -> None:
        """Make everything end at once, the way each child bears it best."""
        for child in self._all():
            if child.process is not None and child.alive:
                send(child.process, child.spec.hurry_signal)

    async def stop(self) -> None:
        """End all children, last started first."""
        try:
            await _cancel([*self._background, *(child.keeper for child in self._all())])
            for wave in reversed(self._waves):
                async with asyncio.TaskGroup() as ending:
                    for child in wave:
                        if child.process is not None:
                            ending.create_task(end(child.process, child.spec))
                await _last_lines(*wave)
        finally:
            for child in self._all():
                if child.process is not None and child.alive:
                    kill_group(child.process)

    async def _keep(self, child: _Child) -> None:
        clock = asyncio.get_running_loop().time
        spec, deaths = child.spec, 0
        while True:
            started = clock()
            reason = await self._live(child)
            deaths = 1 if clock() - started >= self._policy.settled_s else deaths + 1
            if deaths >= self._policy.deaths_allowed:
                text = f"{spec.name} died {deaths} times in a row, the last time: {reason}"
                raise KeepsDying(_with_tail(text, spec))
            pause_s = self._policy.pause_s(deaths)
            text = f"{spec.name} died: {reason}; starting it again in {pause_s:g} s"
            logger.warning(
                "%s",
                _with_unseen_tail(text, spec),
                extra={"action": "child_restart", "child": spec.name, "deaths": deaths},
            )
            await asyncio.sleep(pause_s)

    async def _live(self, child: _Child) -> str:
        """One life: start, get ready, wait for the death. Returns the reason."""
        spec = child.spec
        try:
            process = await self._spawn(child)
        except UpError as exc:
            if not child.ready.is_set():  # it has never worked, and will not by itself
                raise
            return exc.message
        try:
            async with asyncio.timeout(spec.ready_timeout_s):
                await self._until_ready_or_dead(child)
        except TimeoutError:
            await end(process, spec)
            return f"not ready within {spec.ready_timeout_s:g} s"
        while child.alive:
            try:
                async with asyncio.timeout(TRIM_INTERVAL_S):
                    await process.wait()
            except TimeoutError:
                await asyncio.to_thread(spec.output.trim)
        kill_group(process)
        await _last_lines(child)
        return describe_exit(process.returncode or 0)

    async def _until_ready_or_dead(self, child: _Child) -> None:
        while child.alive:
            if child.spec.ready is None or await child.spec.ready():
                child.ready.set()
                return
            await asyncio.sleep(READY_INTERVAL_S)

    async def _spawn(self, child: _Child) -> asyncio.subprocess.Process:
        child.process = await spawn(child.spec)
        if isinstance(child.spec.output, LineOutput):
            child.pump = self._pumps.create_task(child.spec.output.pump())
        if self._roster:
            remember(self._roster, self._running())
        return child.process

    def _all(self) -> list[_Child]:
        return [child for wave in self._waves for child in wave]

    def _running(self) -> list[tuple[int, int]]:
        return [
            (child.process.pid, int(child.spec.orphan_signal))
            for child in self._all()
            if child.process is not None and child.alive
        ]


@asynccontextmanager
async def running_children(
    *, policy: RestartPolicy | None = None, roster: Path | None = None
) -> AsyncIterator[Children]:
    """A set of children that ends with the block.

    Raises the one error that ended it. `roster` is the file that names the running processes
    for a later `end_leftovers`.
    """
    try:
        # A keeper that fails cancels the other keepers and the block at once, while the output of
        # the other children must be read until they have ended: hence two groups.
        async with asyncio.TaskGroup() as pumps, asyncio.TaskGroup() as keepers:
            children = Children(keepers, pumps, policy=policy or RestartPolicy(), roster=roster)
            try:
                yield children
            finally:
                await children.stop()
    except BaseExceptionGroup as failures:
        raise _cause(failures) from None


def _cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report: of several that fell together the first one made for people."""
    told = failures.subgroup(UpError)
    error: BaseException = told or failures
    while isinstance(error, BaseExceptionGroup) and (told or len(error.exceptions) == 1):
        error = error.exceptions[0]
    return error


def _with_tail(text: str, spec: ChildSpec) -> str:
    """The text, followed by the last lines of the child."""
    tail = spec.output.tail()
    return "\n  | ".join([f"{text}. Its last lines:", *tail]) if tail else text


def _with_unseen_tail(text: str, spec: ChildSpec) -> str:
    """As `_with_tail`, unless the lines were shown as they came."""
    return text if isinstance(spec.output, LineOutput) else _with_tail(text, spec)


async def _last_lines(*children: _Child) -> None:
    """Let the pumps read what is left; a grandchild may hold the other end open for ever."""
    pumps = [child.pump for child in children if child.pump is not None]
    if pumps:
        await asyncio.wait(pumps, timeout=LAST_LINES_TIMEOUT_S)
        await _cancel(pumps)


async def _cancel(tasks: Sequence[asyncio.Task[None] | None]) -> None:
    running = [task for task in tasks if task is not None and not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
