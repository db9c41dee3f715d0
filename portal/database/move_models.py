"""The table of videos whose files are to be moved."""

from datetime import datetime
from uuid import UUID

from tortoise import fields
from tortoise.models import Model

from portal.database.models import Video


class Move(Model):
    """What was made of a video is to be moved, since the video has become private.

    The attempt of `attempt_number` stands for the folder it goes to; None until that is chosen, and
    again once the video has become private anew. The lease is renewed while files are copied.
    """

    id = fields.BigIntField(primary_key=True)
    video: fields.OneToOneRelation[Video] = fields.OneToOneField(
        "portal.Video", related_name="move", on_delete=fields.CASCADE
    )
    attempt_number: int | None = fields.BigIntField(null=True)
    job_id = fields.BigIntField()
    lease_expires_at: datetime = fields.DatetimeField()

    video_id: UUID

    class Meta:
        table = "moves"
