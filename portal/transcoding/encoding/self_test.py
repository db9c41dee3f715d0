"""Whether ffmpeg runs on this machine and makes what renditions are made of."""

from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.command import self_test_arguments

_LIMIT_S = 15.0


async def check_ffmpeg() -> None:
    """Encode one frame. Raises TranscodeFailed or OSError when that can't be done."""
    await ffmpeg.run(self_test_arguments(), timeout_s=_LIMIT_S)
