"""Tables of work in progress: passes with their parts and segments, imports, speech, downloads."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tortoise import fields
from tortoise.models import Model

from portal.database.models import Upload, Video


class MadeSegment(Model):
    """Segment in storage of a rendition in progress.

    `number` counts a rendition's segments. `folder` is the number of the attempt that began the
    rendition, in whose folder the segments are stored, and `made_by` that of the attempt that made
    this one. Times are in ticks of the rendition.
    """

    id = fields.BigIntField(primary_key=True)
    version_id = fields.UUIDField()
    rendition = fields.CharField(max_length=40)
    number = fields.IntField()
    folder = fields.BigIntField()
    made_by = fields.BigIntField()
    uri = fields.CharField(max_length=40)
    size_bytes = fields.BigIntField()
    duration_s = fields.FloatField(default=0.0)
    key_size_bytes = fields.BigIntField()
    sample_count = fields.IntField()
    from_ticks = fields.BigIntField()
    last_ticks = fields.BigIntField()
    until_ticks = fields.BigIntField()

    class Meta:
        table = "made_segments"


class PassInProgress(Model):
    """Pass over a version that encodes `renditions` into the folder of the attempt number `folder`.

    All segments of the film begin at `starts_s`; without these times, the pass is a single part.
    `segment_s` is the expected time to encode a segment of all renditions. The row is deleted with
    the records of the segments.
    """

    version_id = fields.UUIDField(primary_key=True)
    folder = fields.BigIntField()
    renditions: list[str] = fields.JSONField()
    starts_s: list[float] | None = fields.JSONField(null=True)
    segment_count = fields.IntField()
    segment_s = fields.FloatField()

    class Meta:
        table = "passes"


class PassPart(Model):
    """Part of a pass: the segments from `start` up to `until`, without the latter.

    The row is created when a worker takes the part, and deleted if the worker leaves it unfinished.
    The figures about decoding are recorded when the part `is_done`. A part that `has_failed` at a
    helper stays, to be counted.
    """

    id = fields.BigIntField(primary_key=True)
    version_id = fields.UUIDField()
    start = fields.IntField()
    until = fields.IntField()
    worker = fields.CharField(max_length=200, null=True)
    lease_expires_at: datetime | None = fields.DatetimeField(null=True)
    is_done = fields.BooleanField(default=False)
    has_failed = fields.BooleanField(default=False)
    frames = fields.IntField(default=0)
    faults = fields.IntField(default=0)
    network_faults = fields.IntField(default=0)

    class Meta:
        table = "pass_parts"


class Import(Model):
    """File that the portal fetches from `url` into an upload, for the video `id`.

    `asked` has the metadata, visibility and passthrough of the video. The size `whole_bytes` is
    None until the server has sent it. Storage has `received_bytes` of the file, of the version that
    `validator` names: an ETag or a time, for If-Range. A run of the import sets `active_at` with
    each part, and ends when another run has set it. The row is deleted when the video is created;
    a row with an error is deleted with its upload.
    """

    id = fields.UUIDField(primary_key=True)
    upload: fields.OneToOneRelation[Upload] = fields.OneToOneField(
        "portal.Upload", related_name="fetched_by"
    )
    url = fields.TextField()
    asked: dict[str, Any] = fields.JSONField()
    validator = fields.TextField(default="")
    whole_bytes: int | None = fields.BigIntField(null=True)
    received_bytes = fields.BigIntField(default=0)
    started_at: datetime | None = fields.DatetimeField(null=True)
    active_at = fields.DatetimeField(auto_now_add=True)
    error_code: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    error_message: str | None = fields.TextField(null=True)

    upload_id: UUID

    class Meta:
        table = "imports"


class Transcription(Model):
    """Request for machine captions of a video.

    `text` is WebVTT of the speech up to `until_s`, in `language`: the requested one, or the one
    that was detected. A run sets `active_at` with each heartbeat, and ends when the row belongs to
    another job. The row is deleted when the captions are saved; a row with an error stays until
    captions are requested again.
    """

    video: fields.OneToOneRelation[Video] = fields.OneToOneField(
        "portal.Video", related_name="transcription", primary_key=True
    )
    language: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    job_id = fields.BigIntField()
    tries = fields.IntField(default=0)
    text = fields.TextField(default="")
    until_s = fields.FloatField(default=0.0)
    active_at: datetime | None = fields.DatetimeField(null=True)
    error_code: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]

    video_id: UUID

    class Meta:
        table = "transcriptions"

    @property
    def state(self) -> str:
        """Return the state: waiting, working or failed."""
        if self.error_code:
            return "failed"
        return "working" if self.active_at else "waiting"

    @property
    def percent(self) -> float:
        """Return the share of the video that is transcribed. `video` must have been fetched."""
        return min(100.0, 100 * self.until_s / (self.video.duration_s or 1))


class DownloadState(StrEnum):
    """State of a file for download. A file in storage is ready."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


class Download(Model):
    """File for download that a viewer asked for, such as `720p.mp4`.

    `key` is the file's key in storage, and `multipart_id` storage's id of its unfinished upload.
    `made_of` names the title and the renditions of the file; if the video has others by now, the
    file is outdated. A row without a video is abandoned: the janitor removes its file.
    `requester` is the id of the account that requested the file, or else the address; empty for the
    portal itself. `size_bytes` is an estimate until the file is ready. Feeds keep the file until
    `kept_until`.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyNullableRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="downloads", null=True, on_delete=fields.SET_NULL
    )
    name = fields.CharField(max_length=60)
    state = fields.CharEnumField(DownloadState, max_length=10, default=DownloadState.WAITING)
    job_id = fields.BigIntField(default=0)
    tries = fields.IntField(default=0)
    error_code: str | None = fields.CharField(max_length=60, null=True)  # type: ignore[assignment]
    key: str | None = fields.CharField(max_length=400, null=True)  # type: ignore[assignment]
    multipart_id: str | None = fields.TextField(null=True)
    made_of: str | None = fields.TextField(null=True)
    size_bytes: int | None = fields.BigIntField(null=True)
    requester = fields.TextField(default="")
    requested_at: datetime = fields.DatetimeField(auto_now_add=True)
    kept_until: datetime | None = fields.DatetimeField(null=True)

    video_id: UUID | None

    class Meta:
        table = "downloads"


class Schedule(Model):
    """Times at which a video becomes public or private, or is deleted.

    Times that were applied are None. `noticed_at` is when the notice of the deletion at `delete_at`
    was sent. A video without times has no row.
    """

    video_id = fields.UUIDField(primary_key=True)
    publish_at: datetime | None = fields.DatetimeField(null=True)
    unpublish_at: datetime | None = fields.DatetimeField(null=True)
    delete_at: datetime | None = fields.DatetimeField(null=True)
    noticed_at: datetime | None = fields.DatetimeField(null=True)

    class Meta:
        table = "schedules"
