"""The tables of runs: which worker makes which part of a film, and the segments that are made."""

from datetime import datetime
from uuid import UUID

from tortoise import fields
from tortoise.models import Model

from portal.database.models import Video


class MadeSegment(Model):
    """A segment in storage of a rendition that is being made.

    `number` counts a rendition's segments, `folder` is the number of the attempt that began them,
    in whose folder they lie, `made_by` that of the attempt that made this one. Times are in the
    ticks of the rendition; `duration_s` is 0 where a portal before it made the segment.
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
