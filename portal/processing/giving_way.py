"""A pass that encodes gives way to a video that waits to be playable and is due before it."""

import asyncio
from dataclasses import dataclass

import psycopg

from portal.queue.rows import is_overtaken
from portal.transcoding.encoding.progress import Stage

# A pass takes seconds to get going: it is not ended before it has made something, mostly.
MIN_RUN_S = 3.0
LOOK_S = 1.0
# A job that a free slot is about to take is no longer there at the second look.
LOOKS = 2
# What is done so soon is worth ending.
SOON_S = 10.0


class GaveWay(Exception):
    """A pass ended early for another video; it goes on when its turn comes again."""


@dataclass(slots=True)
class Turn:
    """Whether a pass that a job runs may go on. `must_play` is one that others of its kind await.

    A pass that completes a ladder always gives way, one that makes a video playable only if it is
    not done soon.
    """

    job_id: int
    must_play: bool
    stage: Stage = Stage.TRANSCODING
    seconds_left: float | None = None

    def saw(self, stage: Stage, seconds_left: float | None) -> None:
        """How far the pass is."""
        self.stage, self.seconds_left = stage, seconds_left

    async def watch(self) -> None:
        """Run beside the pass. Raises GaveWay when it is another's turn."""
        await asyncio.sleep(MIN_RUN_S)
        seen = 0
        while seen < LOOKS:
            await asyncio.sleep(LOOK_S)
            seen = seen + 1 if not self._is_done_soon() and await self._is_overtaken() else 0
        raise GaveWay

    def _is_done_soon(self) -> bool:
        left_s = self.seconds_left
        is_close = self.must_play and left_s is not None and left_s <= SOON_S
        return is_close or self.stage is Stage.FINISHING

    async def _is_overtaken(self) -> bool:
        try:
            return await is_overtaken(self.job_id)
        except psycopg.OperationalError:
            return False
