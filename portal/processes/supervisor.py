"""Supervision of child processes: started in order, restarted with pauses, stopped in reverse.

A child that ends is restarted after a pause, which grows while the child keeps failing; the others
continue. Only a `must_start` child that never gets ready ends the set: `running_children` then
raises `ChildError`. This module knows nothing about the portal.
"""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from portal.concurrency import task_group
from portal.processes.child import SystemUser, describe_exit, kill_group, send, spawn, stop
from portal.processes.output import LineOutput
from portal.processes.records import record_children, write_atomically
from portal.retry import Backoff

logger = logging.getLogger(__name__)

READY_INTERVAL_S = 0.05
LAST_LINES_TIMEOUT_S = 0.5


class ChildError(Exception):
    """A child that could not be started or has failed permanently; the message is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """Specification of a child: how to start it, check that it is ready, and stop it.

    `stop_signals` are followed by a wait in seconds each, and at the end by SIGKILL. Without a
    child that `must_start` the others are useless.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    output: LineOutput
    ready: Callable[[], Awaitable[bool]] | None = None
    ready_timeout_s: float = 30.0
    must_start: bool = False
    stop_signals: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)
    stop_now_signal: signal.Signals = signal.SIGKILL
    death_signal: signal.Signals = signal.SIGTERM
    user: SystemUser | None = None
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class RestartPolicy(Backoff):
    """Pauses between restarts; the count of failures is reset after a run of `settled_s`.

    A child that was ready for `served_s` is restarted as after a first failure. A child that must
    start fails permanently after `first_tries` failures before it was ever ready.
    """

    settled_s: float = 60.0
    served_s: float = 1.0
    first_tries: int = 5


@dataclass(slots=True)
class _Child:
    """State of a child over its restarts; `failures` counts consecutive failures.

    `served_s` is how long the last process was ready; 0 for a child without a check for that.
    """

    spec: ChildSpec
    process: Process | None = None
    pump: asyncio.Task[None] | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0
    served_s: float = 0.0

    @property
    def alive(self) -> bool:
        """Return whether the process is running."""
        return self.process is not None and self.process.returncode is None

    @property
    def is_vital(self) -> bool:
        """Return whether the set depends on this child, which was never ready yet."""
        return self.spec.must_start and not self.ready.is_set()


@dataclass(slots=True)
class Children:
    """Running set of children, created by `running_children`."""

    _tasks: asyncio.TaskGroup
    _pumps: asyncio.TaskGroup
    _policy: RestartPolicy
    _record: Path | None
    _failing: Path | None
    _batches: list[list[_Child]] = field(default_factory=list)
    _work: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, *specs: ChildSpec) -> None:
        """Start children together and wait until each is ready; later batches stop first."""
        batch = [_Child(spec) for spec in specs]
        self._batches.append(batch)
        for child in batch:
            self.background(self._keep_running(child))
        for child in batch:
            await child.ready.wait()

    async def run(self, spec: ChildSpec) -> None:
        """Run a child to its end. Raises `ChildError` with its last lines unless it succeeds."""
        child = _Child(spec)
        process = await self._spawn(child)
        try:
            async with asyncio.timeout(spec.ready_timeout_s):
                returncode = await process.wait()
        except TimeoutError:
            raise ChildError(
                f"{spec.name} did not finish within {spec.ready_timeout_s:g} s."
            ) from None
        finally:
            await stop(process, spec.stop_signals)
        await _last_lines(child)
        if returncode != 0:
            raise ChildError(_with_tail(f"{spec.name} failed ({describe_exit(returncode)})", spec))

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine next to the children; it is cancelled when they are stopped."""
        self._work.append(self._tasks.create_task(work))

    def stop_now(self) -> None:
        """Send each child its `stop_now_signal`."""
        for process, spec in self._running():
            send(process, spec.stop_now_signal)

    async def stop(self) -> None:
        """Cancel the background work, then stop all children, the last started first.

        A child gets its `stop_signals`, and SIGKILL at the end, with all processes that it has
        started. No child is restarted.
        """
        try:
            await _cancel(self._work)
            for batch in reversed(self._batches):
                async with asyncio.TaskGroup() as stopping:
                    for child in batch:
                        if child.process is not None:
                            stopping.create_task(stop(child.process, child.spec.stop_signals))
                await _last_lines(*batch)
        finally:
            for process, _ in self._running():
                kill_group(process)

    async def _keep_running(self, child: _Child) -> None:
        spec = child.spec
        while True:
            reason = await self._run_once(child)
            child.failures += 1
            self._write_state()
            if child.is_vital and child.failures >= self._policy.first_tries:
                text = f"{spec.name} failed {child.failures} times, the last time: {reason}"
                raise ChildError(_with_tail(text, spec))
            has_served = child.served_s >= self._policy.served_s
            pause_s = self._policy.pause_s(1 if has_served else child.failures)
            again = f" (failure {child.failures} in a row)" if child.failures > 1 else ""
            text = f"{spec.name} died: {reason}{again}; restarting it in {pause_s:.1f} s"
            logger.warning(
                "%s",
                text if spec.output.is_shown else _with_tail(text, spec),
                extra={"action": "child_restart", "child": spec.name, "failures": child.failures},
            )
            await asyncio.sleep(pause_s)

    async def _run_once(self, child: _Child) -> str:
        """Start a child and wait until it ends; return the reason."""
        spec = child.spec
        child.served_s = 0.0
        try:
            process = await self._spawn(child)
        except ChildError as exc:
            if child.is_vital:  # a restart would not help
                raise
            return str(exc)
        try:
            async with asyncio.timeout(spec.ready_timeout_s):
                await self._until_ready_or_dead(child)
        except TimeoutError:
            await stop(process, spec.stop_signals)
            return f"not ready within {spec.ready_timeout_s:g} s"
        ready_at = monotonic()
        while child.alive:
            try:
                async with asyncio.timeout(self._policy.settled_s):
                    await process.wait()
            except TimeoutError:
                if child.failures:
                    child.failures = 0
                    self._write_state()
        if spec.ready is not None:
            child.served_s = monotonic() - ready_at
        kill_group(process)
        await _last_lines(child)
        return describe_exit(process.returncode or 0)

    async def _until_ready_or_dead(self, child: _Child) -> None:
        while child.alive:
            if child.spec.ready is None or await child.spec.ready():
                child.ready.set()
                return
            await asyncio.sleep(READY_INTERVAL_S)

    async def _spawn(self, child: _Child) -> Process:
        spec = child.spec
        try:
            output = spec.output.open()
            try:
                child.process = await spawn(
                    spec.argv,
                    environ=spec.environ,
                    output=output,
                    cwd=spec.cwd,
                    user=spec.user,
                    death_signal=spec.death_signal,
                )
            finally:
                os.close(output)
        except OSError as exc:
            raise ChildError(f"{spec.name} cannot be started: {exc}") from exc
        child.pump = self._pumps.create_task(spec.output.pump())
        self._write_state()
        return child.process

    def _write_state(self) -> None:
        """Write the running children for the next start, and the failing ones for others."""
        running = [(process.pid, int(spec.death_signal)) for process, spec in self._running()]
        failing = [child.spec.name for child in self._all() if child.failures]
        try:
            if self._record:
                record_children(self._record, running)
            if self._failing:
                write_atomically(self._failing, "".join(f"{name}\n" for name in failing))
        except OSError as exc:  # a full disk must not end the children
            logger.warning("%s", exc, extra={"action": "write_state"})

    def _all(self) -> list[_Child]:
        return [child for batch in self._batches for child in batch]

    def _running(self) -> list[tuple[Process, ChildSpec]]:
        return [
            (child.process, child.spec) for child in self._all() if child.process and child.alive
        ]


@asynccontextmanager
async def running_children(
    *,
    policy: RestartPolicy | None = None,
    record: Path | None = None,
    failing: Path | None = None,
) -> AsyncIterator[Children]:
    """Provide a set of children that is stopped at the end of the block.

    Raises the error that ended the set. `record` is a file with the running processes for
    `end_orphans`; `failing` is one with the names of children that died recently, one per line.
    """
    # Two groups, because a failing task cancels its group, while the output of the other children
    # must be read until they have ended.
    async with task_group() as pumps, task_group() as tasks:
        children = Children(tasks, pumps, policy or RestartPolicy(), record, failing)
        try:
            yield children
        finally:
            await children.stop()


def _with_tail(text: str, spec: ChildSpec) -> str:
    """Append the last lines of the child to a text."""
    tail = spec.output.tail()
    return "\n  | ".join([f"{text}. Its last lines:", *tail]) if tail else text


async def _last_lines(*children: _Child) -> None:
    """Let the pumps read the remaining output, with a limit: grandchildren may keep it open."""
    pumps = [child.pump for child in children if child.pump is not None]
    if pumps:
        await asyncio.wait(pumps, timeout=LAST_LINES_TIMEOUT_S)
        await _cancel(pumps)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
