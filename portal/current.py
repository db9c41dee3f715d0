"""What the request at hand works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import current_app

from portal.errors import VideoNotFound
from portal.publishing import parse_video_id

if TYPE_CHECKING:
    from uuid import UUID

    from portal.models import Video
    from portal.resources import Resources
    from portal.work.progress import Progress


def current_resources() -> Resources:
    """The shared connections of the process that answers this request."""
    resources: Resources = current_app.extensions["portal"]
    return resources


async def read_video(video_id: str) -> Video:
    """The video of an address, to look at: others may be given the same object.

    Raises `VideoNotFound` for an unknown or malformed id.
    """
    parsed = parse_video_id(video_id)
    video = await current_resources().videos.read(parsed) if parsed else None
    if video is None:
        raise VideoNotFound
    return video


async def read_progress(video_id: UUID) -> Progress:
    """How a video's transcoding stands; `VideoNotFound` once it has been deleted."""
    progress = await current_resources().progress.read(video_id)
    if progress is None:
        raise VideoNotFound
    return progress
