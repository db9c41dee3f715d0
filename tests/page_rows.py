"""Database rows of videos without files, for tests of pages."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal.database.models import Attempt, Rendition, RenditionState, Upload, Video, VideoStatus
from portal.database.work_models import MadeSegment
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
    return await Video.create(**{**row, **values})


async def make_attempt(video: Video, number: int = 1, **values: Any) -> Attempt:
    """Create an open attempt of a live worker."""
    lease_end = datetime.now(UTC) + timedelta(minutes=1)
    row = {"stage": "transcoding", "worker": "w", "lease_expires_at": lease_end, "started_at": NOW}
    return await Attempt.create(video=video, number=number, **{**row, **values})


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
    return await Rendition.create(video=video, name=name, **{**row, **values})


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
        video_id=video.id, rendition=rendition, number=number, **{**row, **values}
    )
