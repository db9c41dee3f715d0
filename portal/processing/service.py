"""What a worker does for a video: takes the lease on it and carries out a pass."""

from uuid import UUID

from portal.processing import attempts, completion
from portal.processing.passes import Pass
from portal.processing.tools import Tools

EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


async def prepare(video_id: UUID, tools: Tools) -> None:
    """Look into a video's file: make it failed, or playable if copying does, or queue its encode.

    Raises `HeldByAnother` and whatever breaks a pass off that is to be repeated.
    """
    if first_pass := await _begin(video_id, tools):
        await first_pass.prepare()


async def make_playable(video_id: UUID, tools: Tools) -> None:
    """Make a video playable, or failed; nothing when that is done. Raises likewise."""
    if first_pass := await _begin(video_id, tools):
        await first_pass.make_playable()


async def _begin(video_id: UUID, tools: Tools) -> Pass | None:
    """Take the lease on a processing video; one that was tried often enough fails instead."""
    try:
        attempt = await attempts.begin(video_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        code = attempts.TRANSCODE_FAILED
        await attempts.fail_video(video_id, code=code, message=EXHAUSTED_MESSAGE)
        return None
    return Pass(attempt, tools) if attempt else None


async def complete_ladder(video_id: UUID, tools: Tools) -> None:
    """Make what is missing of a playable video's ladder, in one pass; raises likewise."""
    attempt = await completion.begin(video_id, worker=tools.worker)
    if attempt is not None:
        await Pass(attempt, tools).make_missing()
