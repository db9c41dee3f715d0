"""What may be done to a running portal, by a seeded choice, and how often it was done.

A fault that costs attempts is spared a video that would be failed by one more: to be failed after
three attempts is a promise of its own, and an intact file hit three times by chance would look
like a poisonous one.
"""

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
from fault_injection import WORKERS, Stack

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
PAUSE_S = (0.1, 2.5)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that may be done; `inflict` returns False when it could not be at the moment."""

    inflict: Callable[[Stack, Random], bool]
    costs_attempts: bool
    freezes: bool = False


@dataclass(slots=True)
class RandomFaults:
    """Hurts a stack. `tally` counts what was done, by kind."""

    stack: Stack
    rng: Random
    tally: Counter[str] = field(default_factory=Counter)

    async def inflict(self, count: int) -> None:
        """As many as that, at random moments."""
        while count:
            await asyncio.sleep(self.rng.uniform(*PAUSE_S))
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


def _signal(name: str, number: signal.Signals) -> Callable[[Stack, Random], bool]:
    return lambda stack, rng: stack.signal(name, number)


def _signal_worker(number: signal.Signals) -> Callable[[Stack, Random], bool]:
    return lambda stack, rng: stack.signal(rng.choice(WORKERS), number)


def _signal_child(
    find: Callable[[Stack], list[psutil.Process]], number: signal.Signals
) -> Callable[[Stack, Random], bool]:
    def send(stack: Stack, rng: Random) -> bool:
        children = find(stack)
        with suppress(psutil.NoSuchProcess):
            if children:
                rng.choice(children).send_signal(number)
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
    "kill worker": Fault(_signal_worker(signal.SIGKILL), costs_attempts=True),
    "kill ffmpeg": Fault(_signal_child(Stack.encoders, signal.SIGKILL), costs_attempts=True),
    "kill probe": Fault(_signal_child(Stack.probes, signal.SIGKILL), costs_attempts=True),
    "kill web": Fault(_signal("web", signal.SIGKILL), costs_attempts=False),
    "kill storage": Fault(_signal("storage", signal.SIGKILL), costs_attempts=False),
    "kill database": Fault(_signal("database", signal.SIGKILL), costs_attempts=True),
    "power cut": Fault(_cut_the_power, costs_attempts=True),
    "stop worker": Fault(_signal_worker(signal.SIGTERM), costs_attempts=False),
    "stop ffmpeg": Fault(_signal_child(Stack.encoders, signal.SIGTERM), costs_attempts=True),
    "stop web": Fault(_signal("web", signal.SIGTERM), costs_attempts=False),
    "stop storage": Fault(_signal("storage", signal.SIGTERM), costs_attempts=False),
    "stop database": Fault(_signal("database", signal.SIGINT), costs_attempts=True),
    "freeze worker": Fault(lambda stack, rng: False, costs_attempts=False, freezes=True),
}
