"""The database tables.

Models hold data only; transactions and use cases live in `publishing.py` and `jobs.py`.
The tables themselves are made by `migrations/`, never generated from here outside of tests.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tortoise import fields
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.models import Model

from portal.transcoding import Kind

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class VideoStatus(StrEnum):
    """What became of a video's transcoding."""

    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Outcome(StrEnum):
    """How an attempt ended. An attempt without an outcome is running, or was abandoned."""

    PUBLISHED = "published"
    FAILED = "failed"
    HANDED_BACK = "handed_back"


class RenditionState(StrEnum):
    """What became of a rendition. One that is being made is still planned."""

    PLANNED = "planned"
    COMPLETE = "complete"
    FAILED = "failed"


class Category(Model):
    """A row of the fixed category table; laid by a migration, never edited by the portal."""

    id = fields.SmallIntField(primary_key=True, generated=False)
    name = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "categories"
        ordering = ("id",)


class Upload(Model):
    """A storage key issued by the portal, whether or not a file has arrived under it."""

    key = fields.CharField(max_length=400, primary_key=True)
    file_name = fields.CharField(max_length=255)
    content_type = fields.CharField(max_length=40)
    created_at = fields.DatetimeField(auto_now_add=True)

    class Meta:
        table = "uploads"


class Video(Model):
    """A published video: what was submitted, and what became of its transcoding.

    `upload_id` is the storage key of the raw file. `published_attempt` is the number of the
    attempt that made the video ready and whose master playlist is played; it is set exactly when
    the status is ready. `complete_job_id` is set while a ready video's ladder is being completed.
    Attempts up to `forgiven_attempts` do not count: the editor asked for new ones after them.
    """

    id = fields.UUIDField(primary_key=True)
    title = fields.TextField()
    description = fields.TextField()
    category_ids: list[int] = ArrayField("smallint")
    tags = fields.TextField()
    file_name = fields.CharField(max_length=255)
    upload: fields.OneToOneRelation[Upload] = fields.OneToOneField(
        "portal.Upload",
        related_name="video",
        source_field="storage_key",
        on_delete=fields.RESTRICT,
    )
    transcode_job_id = fields.BigIntField(unique=True)
    status = fields.CharEnumField(VideoStatus, max_length=10, default=VideoStatus.PROCESSING)
    size_bytes = fields.BigIntField()
    source_etag = fields.CharField(max_length=200)
    duration_s: float | None = fields.FloatField(null=True)
    width: int | None = fields.IntField(null=True)
    height: int | None = fields.IntField(null=True)
    published_attempt: int | None = fields.IntField(null=True)
    failure_code = fields.CharField(max_length=60, null=True)
    failure_message: str | None = fields.TextField(null=True)
    notes: list[str] = ArrayField("text", default=list)
    has_poster = fields.BooleanField(default=False)
    has_storyboard = fields.BooleanField(default=False)
    complete_job_id: int | None = fields.BigIntField(null=True)
    forgiven_attempts = fields.IntField(default=0)
    created_at: datetime = fields.DatetimeField()
    updated_at: datetime = fields.DatetimeField()

    if TYPE_CHECKING:
        upload_id: str

    class Meta:
        table = "videos"
        # The library is read newest first, a page at a time.
        indexes = (("created_at", "id"),)

    @property
    def storage_key(self) -> str:
        """Storage key of the uploaded raw file."""
        return self.upload_id


class Attempt(Model):
    """One pass over a video's source; its output lives under `hls/<video id>/<number>/`.

    The lease is the portal's own proof of life: a worker renews it while it works, and an
    attempt whose lease ran out is abandoned and may be taken over (see `recovery.py`). The error
    is the operator's; what editors are told is the video's failure.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="attempts", on_delete=fields.CASCADE
    )
    number = fields.IntField()
    worker = fields.CharField(max_length=200)
    lease_expires_at: datetime = fields.DatetimeField()
    stage = fields.CharField(max_length=20)
    percent = fields.FloatField(default=0.0)
    eta_s: float | None = fields.FloatField(null=True)
    started_at: datetime = fields.DatetimeField()
    finished_at: datetime | None = fields.DatetimeField(null=True)
    outcome: Outcome | None = fields.CharEnumField(  # type: ignore[assignment]  # null is untyped
        Outcome, max_length=12, null=True
    )
    error_code = fields.CharField(max_length=60, null=True)
    error_detail: str | None = fields.TextField(null=True)

    if TYPE_CHECKING:
        video_id: UUID

    class Meta:
        table = "attempts"
        unique_together = (("video", "number"),)


class Rendition(Model):
    """One rendition of a video: planned after the first look at the source, measured when made.

    It lies in the folder of the attempt `attempt_number`, the last one that began to make it. An
    attempt that is open and bears that number is making it now. `tries` counts those attempts,
    handed-back ones aside; `error_detail` is for the operator.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="renditions", on_delete=fields.CASCADE
    )
    kind = fields.CharEnumField(Kind, max_length=10)
    name = fields.CharField(max_length=40)
    position = fields.IntField()
    state = fields.CharEnumField(RenditionState, max_length=10, default=RenditionState.PLANNED)
    attempt_number: int | None = fields.IntField(null=True)
    tries = fields.IntField(default=0)
    error_code = fields.CharField(max_length=60, null=True)
    error_detail: str | None = fields.TextField(null=True)
    copied = fields.BooleanField(default=False)
    width: int | None = fields.IntField(null=True)
    height: int | None = fields.IntField(null=True)
    frame_rate = fields.CharField(max_length=30, null=True)
    codecs = fields.CharField(max_length=100, null=True)
    bandwidth_bps: int | None = fields.BigIntField(null=True)
    average_bandwidth_bps: int | None = fields.BigIntField(null=True)
    iframe_bandwidth_bps: int | None = fields.BigIntField(null=True)
    size_bytes: int | None = fields.BigIntField(null=True)
    segment_count: int | None = fields.IntField(null=True)
    channels: int | None = fields.IntField(null=True)
    language = fields.CharField(max_length=60, null=True)
    label: str | None = fields.TextField(null=True)
    is_default = fields.BooleanField(default=False)

    if TYPE_CHECKING:
        video_id: UUID

    class Meta:
        table = "renditions"
        unique_together = (("video", "name"),)
        ordering = ("position",)
