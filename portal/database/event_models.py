"""The table of what happened."""

from datetime import datetime
from typing import Any
from uuid import UUID

from tortoise import fields
from tortoise.fields.db_defaults import SqlDefault
from tortoise.models import Model

from portal.database.account_models import MAX_EMAIL_LENGTH, MAX_NAME_LENGTH


class Event(Model):
    """Who (`actor_…`, `token_…`) did what to which object, from where; or what became of a video.

    Names and addresses are those of that time. Without account and token it was anyone, a command,
    or the portal itself. One with a `type` is a public event of a video: the database gives it its
    place among all (`number`) and among the video's (`sequence`), and the video's record (`data`).
    """

    id = fields.BigIntField(primary_key=True)
    # The clock's time: the transaction may have waited for others since its own.
    at: datetime = fields.DatetimeField(db_default=SqlDefault("clock_timestamp()"))
    action = fields.CharField(max_length=60)
    actor_kind = fields.CharField(max_length=20)
    actor_id: UUID | None = fields.UUIDField(null=True)
    actor_email = fields.CharField(max_length=MAX_EMAIL_LENGTH)
    token_id: UUID | None = fields.UUIDField(null=True)
    token_name = fields.CharField(max_length=MAX_NAME_LENGTH)
    address = fields.CharField(max_length=64)
    object_id: str | None = fields.TextField(null=True)
    object_name = fields.CharField(max_length=MAX_EMAIL_LENGTH)
    detail: dict[str, str] = fields.JSONField()
    type: str | None = fields.CharField(max_length=30, null=True)  # type: ignore[assignment]
    video_id: UUID | None = fields.UUIDField(null=True)
    number: int | None = fields.BigIntField(null=True)
    sequence: int | None = fields.BigIntField(null=True)
    data: dict[str, Any] | None = fields.JSONField(null=True)

    class Meta:
        table = "events"
