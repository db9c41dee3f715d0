"""What may be done to a running portal, by a seeded choice, and how often it was done.

A fault that costs attempts is spared a video that would be failed by one more: to be failed after
three attempts is a promise of its own, and an intact file hit three times by chance would look
like a poisonous one.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psutil
import psycopg
from audit import processes_of
from fault_kit import WORKERS, Stack

# Whether an attempt, or the try of a rendition, more would be one too many.
AT_RISK = """
SELECT 1 FROM videos
WHERE status = 'processing' AND (
  SELECT count(*) FROM attempts
  WHERE video_id = videos.id AND (outcome = 'failed' OR outcome IS NULL)) >= 3
UNION ALL SELECT 1 FROM renditions WHERE state = 'planned' AND tries >= 3
"""
# How long a process stays frozen: less than a lease, and more than a pause for breath.
FREEZE_S = (0.5, 3.0)


@dataclass(slots=True)
class Injuries:
    """Hurts a stack. `tally` counts what was done, by kind."""

    stack: Stack
    rng: Random
    tally: Counter[str] = field(default_factory=Counter)

    async def inflict(self, count: int, *, pause_s: tuple[float, float] = (0.1, 2.5)) -> None:
        """As many as that, at random moments."""
        while count:
            await asyncio.sleep(self.rng.uniform(*pause_s))
            kind = self.rng.choice(sorted(KINDS))
            if await self._hurt(kind):
                self.tally[kind] += 1
                count -= 1

    async def _hurt(self, kind: str) -> bool:
        fault = KINDS[kind]
        if fault.costs_attempts and await self._is_risky():
            return False
        if fault.freezes:
            return await self._freeze(self.rng.choice(WORKERS))
        return fault.inflict(self.stack, self.rng)

    async def _is_risky(self) -> bool:
        try:
            return bool(await self.stack.rows(AT_RISK))
        except psycopg.OperationalError:
            return True  # the database is down already, and nobody knows

    async def _freeze(self, name: str) -> bool:
        if not (is_frozen := self.stack.signal(name, signal.SIGSTOP)):
            return False
        await asyncio.sleep(self.rng.uniform(*FREEZE_S))
        self.stack.signal(name, signal.SIGCONT)
        return is_frozen


@dataclass(frozen=True, slots=True)
class _Fault:
    inflict: Callable[[Stack, Random], bool]
    costs_attempts: bool
    freezes: bool = False


def _signal(name: str, number: signal.Signals) -> Callable[[Stack, Random], bool]:
    return lambda stack, rng: stack.signal(name, number)


def _signal_worker(number: signal.Signals) -> Callable[[Stack, Random], bool]:
    return lambda stack, rng: stack.signal(rng.choice(WORKERS), number)


def _signal_encoder(number: signal.Signals) -> Callable[[Stack, Random], bool]:
    def send(stack: Stack, rng: Random) -> bool:
        encoders = stack.encoders()
        with suppress(psutil.NoSuchProcess):
            if encoders:
                rng.choice(encoders).send_signal(number)
                return True
        return False

    return send


def _cut_the_power(stack: Stack, rng: Random) -> bool:
    """Everything at once, the database's own children and the encoders included."""
    processes = processes_of(stack.folder)
    rng.shuffle(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return bool(processes)


# A database is told to end by SIGINT: SIGTERM asks it to wait until its clients have left.
KINDS = {
    "kill worker": _Fault(_signal_worker(signal.SIGKILL), costs_attempts=True),
    "kill ffmpeg": _Fault(_signal_encoder(signal.SIGKILL), costs_attempts=True),
    "kill web": _Fault(_signal("web", signal.SIGKILL), costs_attempts=False),
    "kill storage": _Fault(_signal("storage", signal.SIGKILL), costs_attempts=False),
    "kill database": _Fault(_signal("database", signal.SIGKILL), costs_attempts=True),
    "power cut": _Fault(_cut_the_power, costs_attempts=True),
    "stop worker": _Fault(_signal_worker(signal.SIGTERM), costs_attempts=False),
    "stop ffmpeg": _Fault(_signal_encoder(signal.SIGTERM), costs_attempts=True),
    "stop web": _Fault(_signal("web", signal.SIGTERM), costs_attempts=False),
    "stop storage": _Fault(_signal("storage", signal.SIGTERM), costs_attempts=False),
    "stop database": _Fault(_signal("database", signal.SIGINT), costs_attempts=True),
    "freeze worker": _Fault(lambda stack, rng: False, costs_attempts=False, freezes=True),
}
