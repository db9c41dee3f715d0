"""What views work with: the web process's context, and the one place that answers 404."""

from typing import TypeVar
from uuid import UUID

from quart import current_app

from portal.database.connection import Row
from portal.database.models import Video
from portal.errors import VideoNotFound
from portal.videos.progress import Progress
from portal.videos.publishing import parse_video_id
from portal.web.composition import WebContext
from portal.web.data_loader import DataLoader

Value = TypeVar("Value")


def web_context() -> WebContext:
    """The context of the process that answers this request."""
    context: WebContext = current_app.extensions["portal"]
    return context


async def read_video(video_id: str) -> Video:
    """The video of an address, to look at: others may be given the same object.

    Raises `VideoNotFound` for an unknown or malformed id.
    """
    return await _read(web_context().videos, parse_video_id(video_id))


async def read_record(video_id: str) -> Row:
    """As `read_video`, what the API tells of it."""
    return await _read(web_context().records, parse_video_id(video_id))


async def read_progress(video_id: UUID) -> Progress:
    """How a video's transcoding stands; `VideoNotFound` once it has been deleted."""
    return await _read(web_context().progress, video_id)


async def _read(loader: DataLoader[Value], video_id: UUID | None) -> Value:
    value = await loader.load(video_id) if video_id else None
    if value is None:
        raise VideoNotFound
    return value
