"""Remembers that a part of the portal is away, so that not everyone waits to find out.

Whoever finds that the database or storage does not answer has waited for seconds. All who come
after are told at once, for `PAUSE_S`; then one of them tries again, and the others follow when
that has worked. Only the web does so: workers have time, and wait by rules of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

PAUSE_S = 1.0


class Outage:
    """What is known of one part; `error` is raised while it is away."""

    def __init__(
        self, error: Callable[[], Exception], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._error = error
        self._clock = clock
        self._away_until: float | None = None
        self._is_tried = False

    @property
    def is_away(self) -> bool:
        """Whether the last that is known is that it did not answer."""
        return self._away_until is not None

    def refuse(self) -> None:
        """Raise the error if it would be found again, for all but the one who is to try."""
        if self._away_until is not None and (self._is_tried or self._clock() < self._away_until):
            raise self._error()

    def found_away(self) -> None:
        """It did not answer."""
        self._away_until = self._clock() + PAUSE_S

    def found_back(self) -> None:
        """It answered."""
        self._away_until = None

    @asynccontextmanager
    async def trying(self) -> AsyncIterator[bool]:
        """Around a use of the part, unless refused; says whether it is the try of a part away."""
        self.refuse()
        is_try = self.is_away
        self._is_tried = self._is_tried or is_try
        try:
            yield is_try
        finally:
            if is_try:
                self._is_tried = False
