"""Try again after a failure: growing pauses with jitter, up to a cap, for a time or for ever.

`Backoff` says how long to wait; the queue and the supervisor of child processes, which wait by
their own means, ask it for seconds. `retry` waits and calls again by itself.
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

    The jitter keeps those that failed together from coming back together.
    """

    first_s: float = 1.0
    cap_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, counted from 1."""
        whole_s = min(self.first_s * 2.0 ** min(failures - 1, MAX_DOUBLINGS), self.cap_s)
        return whole_s * uniform(0.5, 1.0)  # noqa: S311  # no secret


class RetryLater(Exception):
    """A failure that asks for at least this pause before the next try."""

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
    what: str = "",
) -> Result:
    """Call `work` until it succeeds; only for work that may be repeated.

    A failure is raised as it is when `on` does not expect it, after so many `attempts`, or after
    `give_up_after_s`. `what` names in the log the part that is away; without it nothing is logged.
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
            if what:
                logger.warning(
                    "%s away, trying again", what, extra={"action": "retry", "failures": failures}
                )
        await asyncio.sleep(pause_s)
