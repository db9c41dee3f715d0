"""The tables of what workers have under way: passes, files that are fetched, speech to text."""

from datetime import datetime
from typing import Any
from uuid import UUID

from tortoise import fields
from tortoise.models import Model

from portal.database.models import Upload, Video


class MadeSegment(Model):
    """A segment in storage of a rendition that is being made.

    `number` counts a rendition's segments, `folder` is the number of the attempt that began them,
    in whose folder they lie, `made_by` that of the attempt that made this one. Times are in the
    ticks of the rendition.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="made_segments", on_delete=fields.CASCADE
    )
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

    video_id: UUID

    class Meta:
        table = "made_segments"
        unique_together = (("video", "rendition", "number"),)


class PassRun(Model):
    """A part of a pass that workers may share: segments `start` to before `until` of a film.

    The rows of a video part the film; they go with what is recorded of its segments. All segments
    begin at `starts_s`, and lie in the folder of the attempt of the number `folder`. `made` is the
    number of the next one to make, `eta_s` what is left to do. A worker that holds the run renews
    its lease; `claims` counts those that held it, `failures` helpers that failed at it. Faults are
    those of a run that is done.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.ForeignKeyRelation[Video] = fields.ForeignKeyField(
        "portal.Video", related_name="runs", on_delete=fields.CASCADE
    )
    renditions: list[str] = fields.JSONField()
    folder = fields.BigIntField()
    starts_s: list[float] = fields.JSONField()
    start = fields.IntField()
    until = fields.IntField()
    made = fields.IntField()
    eta_s: float | None = fields.FloatField(null=True)
    worker = fields.CharField(max_length=200, null=True)
    lease_expires_at: datetime | None = fields.DatetimeField(null=True)
    claims = fields.IntField(default=0)
    failures = fields.IntField(default=0)
    is_done = fields.BooleanField(default=False)
    faults = fields.IntField(default=0)
    network_faults = fields.IntField(default=0)

    video_id: UUID

    class Meta:
        table = "pass_runs"


class Import(Model):
    """A file that the portal fetches from `url` into an upload, to make the video `id` of it.

    `asked` is what the video is created with. `whole_bytes` is None until the server has told it.
    `received_bytes` of them are in storage, of the version that `validator` names: an ETag or a
    time, for If-Range. Whoever fetches sets `active_at` with each part, and leaves off once someone
    else has done so. The row goes when the video comes; one with an error goes with its upload.
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
    """Captions that a machine is asked to write, or could not.

    `text` is WebVTT of what is said up to `until_s`, in `language`: the one that was asked for, or
    that it found. Whoever writes sets `active_at` with each beat, and leaves off once the row is of
    another job. It goes when the captions come; one with an error stays until it is asked again.
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
        """How it stands: waiting, working or failed."""
        if self.error_code:
            return "failed"
        return "working" if self.active_at else "waiting"

    @property
    def percent(self) -> float:
        """How much of its video is heard; that was fetched with it."""
        return min(100.0, 100 * self.until_s / (self.video.duration_s or 1))
