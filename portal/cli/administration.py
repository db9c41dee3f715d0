"""What operators ask of a portal from the command line, as plain values.

Each function opens what it needs for itself. Raises `VideoNotFound` for an unknown id.
"""

from collections.abc import Awaitable, Callable, Sequence

from portal.accounts.permissions import EVERYONES
from portal.config import Config
from portal.database.connection import Row, fetch_rows, open_database
from portal.database.models import Attempt, Rendition, Video
from portal.database.states import VideoStatus
from portal.errors import PortalError
from portal.queue.app import open_queue
from portal.queue.rows import JOBS_OF_VIDEO, read_queue
from portal.videos import deletion, library, publishing, reading
from portal.videos.library_queries import LibraryQuery

HIDDEN = frozenset({"search", "sort_title", "submitted_digest"})
MEASURED = ("failure_code", "duration_s", "size_bytes", "created_at")
RENDITION = ("name", "kind", "state", "attempt_number", "tries", "size_bytes", "error_code")
ATTEMPT = ("number", "worker", "stage", "percent", "started_at", "finished_at")
OUTCOME = ("outcome", "error_code", "error_detail")


async def list_videos(
    config: Config, *, status: str | None, search: str, limit: int
) -> tuple[list[Row], int]:
    """The newest videos that match, and how many match in all (see `library.COUNT_CAP`)."""
    state = VideoStatus(status) if status else None
    wanted = LibraryQuery(text=search, status=state, seen_by=EVERYONES)
    async with open_database(config):
        page = await library.list_videos(wanted, limit=limit)
        work = await library.read_work([video.id for video in page.videos])
    return [_summary(video, work.get(video.id)) for video in page.videos], page.total


async def describe_video(config: Config, video_id: str) -> Row:
    """Everything the database knows of a video."""
    async with open_database(config):
        video = await reading.get_video(video_id)
        renditions = await Rendition.filter(video_id=video.id).values(*RENDITION)
        attempts = Attempt.filter(video_id=video.id).order_by("number")
        [record] = await Video.filter(id=video.id).values()
        record["storage_key"] = record.pop("upload_id")
        return {
            **{name: value for name, value in record.items() if name not in HIDDEN},
            "renditions": renditions,
            "attempts": await attempts.values(*ATTEMPT, *OUTCOME),
            "jobs": await fetch_rows(JOBS_OF_VIDEO, str(video.id)),
        }


async def retry_video(config: Config, video_ids: Sequence[str]) -> dict[str, str]:
    """Try again what failed of these; returns why it was refused, by id."""
    return await _for_each(config, video_ids, publishing.retry_transcode)


async def delete_video(config: Config, video_ids: Sequence[str]) -> dict[str, str]:
    """Delete these; returns why it was refused, by id."""
    return await _for_each(
        config, video_ids, lambda video, *, queue: deletion.delete_video(video.id, queue=queue)
    )


async def describe_queue(config: Config, *, limit: int) -> dict[str, list[Row]]:
    """The queue's counts, jobs, workers and leases."""
    async with open_database(config):
        return await read_queue(limit=limit)


async def _for_each(
    config: Config, video_ids: Sequence[str], act: Callable[..., Awaitable[object]]
) -> dict[str, str]:
    refused = {}
    queue = open_queue(config.database_url)
    async with open_database(config), queue.open_async():
        for video_id in video_ids:
            try:
                await act(await reading.get_video(video_id), queue=queue)
            except PortalError as exc:
                refused[video_id] = exc.detail
    return refused


def _summary(video: Video, work: library.Work | None) -> Row:
    return {
        "id": str(video.id),
        "title": video.title,
        "status": video.status,
        "stage": work.stage if work else None,
        "percent": work.percent if work else None,
        **{name: getattr(video, name) for name in MEASURED},
    }
