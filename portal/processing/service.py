"""What a worker does for a video: takes the lease on it and carries out a pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from portal.processing import attempts, renditions
from portal.processing.attempts import OpenAttempt
from portal.processing.passes import Pass
from portal.queue.app import Queue
from portal.storage.bucket import Storage
from portal.transcoding.probing.probe import SourceLimits

EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcoder:
    """Does so under the name of its worker; `limits` are those of sources."""

    worker: str
    storage: Storage
    queue: Queue
    limits: SourceLimits
    work_dir: Path

    async def make_playable(self, video_id: UUID) -> None:
        """Make a video playable, or failed; nothing when that is done.

        Raises `HeldByAnother` and whatever breaks a pass off that is to be repeated.
        """
        try:
            attempt = await attempts.begin(video_id, worker=self.worker)
        except attempts.AttemptsExhausted:
            await attempts.fail_video(
                video_id, code=attempts.TRANSCODE_FAILED, message=EXHAUSTED_MESSAGE
            )
            return
        if attempt is not None:
            await self._pass(attempt).make_playable()

    async def complete(self, video_id: UUID) -> None:
        """Make what is missing of a playable video's ladder, in one pass; raises likewise."""
        attempt = await renditions.begin_completion(video_id, worker=self.worker)
        if attempt is not None:
            await self._pass(attempt).make_missing()

    def _pass(self, attempt: OpenAttempt) -> Pass:
        return Pass(
            attempt=attempt,
            storage=self.storage,
            queue=self.queue,
            limits=self.limits,
            work_dir=self.work_dir,
        )
