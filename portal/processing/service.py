"""What a worker does for a video: takes the lease on it and carries out a pass."""

from uuid import UUID

from portal.processing import attempts, renditions
from portal.processing.passes import Pass, Tools

EXHAUSTED_MESSAGE = (
    "The file could not be converted: every try ended unexpectedly. "
    "Try exporting the video again, for example as H.264 in an mp4 file."
)


async def make_playable(video_id: UUID, tools: Tools) -> None:
    """Make a video playable, or failed; nothing when that is done.

    Raises `HeldByAnother` and whatever breaks a pass off that is to be repeated.
    """
    try:
        attempt = await attempts.begin(video_id, worker=tools.worker)
    except attempts.AttemptsExhausted:
        code = attempts.TRANSCODE_FAILED
        await attempts.fail_video(video_id, code=code, message=EXHAUSTED_MESSAGE)
        return
    if attempt is not None:
        await Pass(attempt, tools).make_playable()


async def complete_ladder(video_id: UUID, tools: Tools) -> None:
    """Make what is missing of a playable video's ladder, in one pass; raises likewise."""
    attempt = await renditions.begin_completion(video_id, worker=tools.worker)
    if attempt is not None:
        await Pass(attempt, tools).make_missing()
