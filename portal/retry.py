"""Retry policy: growing pauses with jitter, up to a cap, for a limited time or for ever.

`retry` calls a function until it succeeds. `Backoff` computes the pauses, also for the queue and
for the supervisor of child processes, which have their own ways to wait.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from random import uniform
from time import monotonic
from typing import TypeVar

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from `first_s` to `cap_s`, each shortened at random by up to a half.

    The jitter separates the retries of clients that failed at the same time.
    """

    first_s: float = 1.0
    cap_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        """Return the seconds to wait after this number of consecutive failures, from 1 on."""
        whole_s = min(self.first_s * 2.0 ** min(failures - 1, MAX_DOUBLINGS), self.cap_s)
        return whole_s * uniform(0.5, 1.0)  # noqa: S311  # no secret


class RetryLater(Exception):
    """Failure after which the next try must wait for at least `pause_s`."""

    def __init__(self, text: str, pause_s: float) -> None:
        super().__init__(text)
        self.pause_s = pause_s


async def retry(
    work: Callable[[], Awaitable[Result]],
    *,
    on: Callable[[Exception], bool] | tuple[type[Exception], ...],
    backoff: Backoff,
    give_up_after_s: float = inf,
    attempts: float = inf,
    part: str = "",
) -> Result:
    """Call `work`, which must be repeatable, until it succeeds.

    A failure is raised if it is not among `on`, after the last of `attempts`, or after
    `give_up_after_s`. `part` is the name of the unreachable part in the log; without a name nothing
    is logged.
    """
    deadline = monotonic() + give_up_after_s
    failures = 0
    while True:
        try:
            return await work()
        except Exception as exc:
            failures += 1
            is_expected = isinstance(exc, on) if isinstance(on, tuple) else on(exc)
            if not is_expected or failures >= attempts or monotonic() > deadline:
                raise
            pause_s = backoff.pause_s(failures)
            if isinstance(exc, RetryLater):
                pause_s = max(pause_s, exc.pause_s)
            if part:
                logger.warning(
                    "%s unreachable, trying again",
                    part,
                    extra={"action": "retry", "failures": failures},
                )
        await asyncio.sleep(pause_s)
