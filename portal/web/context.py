"""What the request at hand works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from quart import current_app

from portal.errors import VideoNotFound
from portal.videos.publishing import parse_video_id

if TYPE_CHECKING:
    from uuid import UUID

    from portal.database.models import Video
    from portal.videos.progress import Progress
    from portal.web.api.records import Record
    from portal.web.data_loader import BatchReader
    from portal.web.resources import Resources

Value = TypeVar("Value")


def current_resources() -> Resources:
    """The shared connections of the process that answers this request."""
    resources: Resources = current_app.extensions["portal"]
    return resources


async def read_video(video_id: str) -> Video:
    """The video of an address, to look at: others may be given the same object.

    Raises `VideoNotFound` for an unknown or malformed id.
    """
    return await _read(current_resources().videos, parse_video_id(video_id))


async def read_record(video_id: str) -> Record:
    """As `read_video`, what the API tells of it."""
    return await _read(current_resources().records, parse_video_id(video_id))


async def read_progress(video_id: UUID) -> Progress:
    """How a video's transcoding stands; `VideoNotFound` once it has been deleted."""
    return await _read(current_resources().progress, video_id)


async def _read(reader: BatchReader[Value], video_id: UUID | None) -> Value:
    value = await reader.read(video_id) if video_id else None
    if value is None:
        raise VideoNotFound
    return value
