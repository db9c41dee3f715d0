"""Database rows of videos without files, for tests of pages."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from portal.database.connection import lock_video, transaction
from portal.database.models import (
    Attempt,
    Publication,
    Rendition,
    RenditionState,
    Upload,
    Version,
    Video,
    VideoStatus,
)
from portal.database.search import search_columns
from portal.database.work_models import MadeSegment
from portal.features import VERSION_HOOKS
from portal.films.versions import make_current
from portal.storage.objects import upload_key
from portal.transcoding.packaging.master import Kind

READY = {
    "status": VideoStatus.READY,
    "published_attempt": 1,
    "has_poster": True,
    "duration_s": 3725.4,
    "width": 1080,
    "height": 1920,
}


VERSION_COLUMNS = Version._meta.fields - {"id", "video_id", "created_at", "attempts", "renditions"}
SEARCHED = ("title", "description", "tags")
# Below the ids of other jobs.
CUT_JOBS = count(-2_000_000)
NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


async def make_upload_row(owner_id: UUID | None = None) -> Upload:
    """Create an upload without a file."""
    upload_id = uuid4()
    return await Upload.create(
        id=upload_id,
        key=upload_key(upload_id, "mp4"),
        file_name="a.mp4",
        content_type="video/mp4",
        owner_id=owner_id,
    )


async def make_row(number: int = 1, **values: Any) -> Video:
    """Create a video without files."""
    upload = await make_upload_row()
    row = {
        "id": uuid4(),
        "title": f"Video {number}",
        "description": "",
        "category_ids": [1],
        "tags": "",
        "file_name": "a.mp4",
        "storage_key": upload.key,
        # In the order of the numbers, and below the queue's own ids, which begin at 1.
        "transcode_job_id": number - 1_000_000,
        "size_bytes": 1_234_567,
        "source_etag": '"e"',
        "created_at": NOW + timedelta(minutes=number),
        "updated_at": NOW,
    }
    return await create_video(**{**row, **values})


async def create_video(**columns: Any) -> Video:
    """Create a video with a version from the columns of both."""
    of_version = {name: columns.pop(name) for name in [*columns] if name in VERSION_COLUMNS}
    video_id = columns["id"]
    derived = search_columns(**{name: columns[name] for name in SEARCHED})
    async with transaction():
        await Publication.create(**derived, **columns, version_id=video_id)
        created_at = columns["created_at"]
        await Version.create(id=video_id, video_id=video_id, created_at=created_at, **of_version)
    return await Video.get(id=video_id)


async def make_cut(video: Video, **values: Any) -> Version:
    """Create a cut of a ready video without files, as the output of its attempt 2."""
    film = await Version.get(id=video.base_id or video.version_id)
    of_file = ("file_name", "storage_key", "size_bytes", "source_etag", "created_at")
    row = {
        **{name: getattr(film, name) for name in of_file},
        "keep": [[0.0, 4.0], [9.0, 11.0]],
        "duration_s": 6.0,
        "status": VideoStatus.READY,
        "published_attempt": 2,
        "has_storyboard": True,
        "transcode_job_id": film.transcode_job_id - 500_000,
    }
    ids = {"id": uuid4(), "video_id": video.id, "base_id": film.id}
    return await Version.create(**ids, **{**row, **values})


async def make_replacement(video: Video) -> Version:
    """Create a version of a ready video with another file, which has a row of its own."""
    other = await make_row(20_000)
    version = await make_cut(video, storage_key=other.storage_key)
    await Version.filter(id=version.id).update(base_id=None, keep=None)
    return version


async def change_video(video_id: UUID | str, **columns: Any) -> None:
    """Set columns of a video and of its current version, and the columns derived from them."""
    video = await Video.get(id=video_id)
    texts = {name: columns.get(name, getattr(video, name)) for name in SEARCHED}
    columns |= search_columns(**texts)
    of_version = {name: columns.pop(name) for name in [*columns] if name in VERSION_COLUMNS}
    await Publication.filter(id=video_id).update(**columns)
    if of_version:
        await Version.filter(id=video.version_id).update(**of_version)


async def make_live(version: Version) -> Version:
    """Make a version the current one of its video, and return it."""
    async with transaction():
        await make_current(version, VERSION_HOOKS)
    return await Version.get(id=version.id)


async def cut_video(video: Video, keep: list[list[float]] | None) -> Video:
    """Make a version that keeps these intervals the current one; None for the whole film."""
    current = await (await Video.get(id=video.id)).current_version()
    base = await Version.get(id=current.base_id or current.id)
    async with transaction():
        version = base
        if keep is not None:
            columns = {name: getattr(base, name) for name in VERSION_COLUMNS}
            columns |= {"keep": keep, "base_id": base.id, "has_poster": True}
            columns["duration_s"] = sum(end_s - start_s for start_s, end_s in keep)
            columns["published_attempt"] = (current.published_attempt or 0) + 1
            columns["transcode_job_id"] = next(CUT_JOBS)
            now = datetime.now(UTC)
            version = await Version.create(id=uuid4(), video_id=video.id, created_at=now, **columns)
        await lock_video(video.id)
        await make_current(version, VERSION_HOOKS)
    return await Video.get(id=video.id)


async def make_attempt(video: Video, number: int = 1, **values: Any) -> Attempt:
    """Create an open attempt of a live worker."""
    lease_end = datetime.now(UTC) + timedelta(minutes=1)
    row = {"stage": "transcoding", "worker": "w", "lease_expires_at": lease_end, "started_at": NOW}
    ids = {"video_id": video.id, "version_id": video.version_id}
    return await Attempt.create(**ids, number=number, **{**row, **values})


async def make_rendition(video: Video, name: str, **values: Any) -> Rendition:
    """Create a rendition of a video, complete by default."""
    row = {
        "kind": Kind.VIDEO,
        "position": int(name.removesuffix("p")),
        "state": RenditionState.COMPLETE,
        "attempt_number": 1,
        "width": 640,
        "height": 360,
        "average_bandwidth_bps": 1_234_567,
        "size_bytes": 7_654_321,
    }
    return await Rendition.create(version_id=video.version_id, name=name, **{**row, **values})


async def make_segment(video: Video, rendition: str, number: int, **values: Any) -> MadeSegment:
    """Create the record of a segment of a rendition that is being made."""
    row = {
        "folder": 1,
        "made_by": 1,
        "uri": f"{number:05}.m4s",
        "size_bytes": 1,
        "duration_s": 4.0,
        "key_size_bytes": 1,
        "sample_count": 1,
        "from_ticks": number,
        "last_ticks": number,
        "until_ticks": number + 1,
    }
    return await MadeSegment.create(
        version_id=video.version_id, rendition=rendition, number=number, **{**row, **values}
    )
