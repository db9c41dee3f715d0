"""The tables of what happened, and of whom is told."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tortoise import fields
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.fields.db_defaults import Now, SqlDefault
from tortoise.models import Model

from portal.database.account_models import MAX_EMAIL_LENGTH, MAX_NAME_LENGTH

# Of events' ids, before the number.
EVENT_ID_PREFIX = "evt_"


class Event(Model):
    """Who (`actor_…`, `token_…`) did what to which object, from where; or what became of a video.

    Names and addresses are those of that time. Without account and token it was anyone, a command,
    or the portal itself. One with a `type` is a public event of a video, with its place among all
    (`number`) and among the video's (`sequence`), and the video's record (`data`).
    `was` is who could see the video before, if the event changed that.
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
    was: dict[str, Any] | None = fields.JSONField(null=True)

    class Meta:
        table = "events"


class DisabledReason(StrEnum):
    """Why a webhook is sent nothing. Values are stored and documented."""

    PERSON = "person"
    GONE = "gone"
    FAILING = "failing"


class Webhook(Model):
    """An address that is sent events of some types, as far as its account would find their video.

    Each of `old_secrets` signs beside `secret` until its own end (`webhooks.endpoints`).
    `failing_since` is the first failure after the last success.
    """

    id = fields.UUIDField(primary_key=True)
    account_id: UUID | None = fields.UUIDField(null=True)
    url = fields.TextField()
    events: list[str] = ArrayField("text")
    secret = fields.TextField()
    old_secrets: list[dict[str, str]] = fields.JSONField(default=list)
    created_at: datetime = fields.DatetimeField(auto_now_add=True)
    failing_since: datetime | None = fields.DatetimeField(null=True)
    disabled_reason: str | None = fields.TextField(null=True)

    class Meta:
        table = "webhooks"

    @property
    def enabled(self) -> bool:
        """Whether it is sent anything."""
        return self.disabled_reason is None


class WebhookDelivery(Model):
    """An event that a webhook is sent; what its receiver answered last, and when it is sent next.

    Without `next_at` it is done: it arrived, or was tried often enough. A job is queued in the
    transaction that sets `next_at`. Without `event_number` it is a test.
    """

    id = fields.BigIntField(primary_key=True)
    webhook: fields.ForeignKeyRelation[Webhook] = fields.ForeignKeyField("portal.Webhook")
    event_number: int | None = fields.BigIntField(null=True)
    type = fields.CharField(max_length=30)
    # Each is sent one at a time.
    lane = fields.SmallIntField(db_default=SqlDefault("floor(random() * 4)"))
    created_at: datetime = fields.DatetimeField(db_default=Now())
    tries = fields.SmallIntField(default=0)
    next_at: datetime | None = fields.DatetimeField(null=True, db_default=Now())
    sent_at: datetime | None = fields.DatetimeField(null=True)
    duration_ms: int | None = fields.IntField(null=True)
    status: int | None = fields.SmallIntField(null=True)
    # Of the request, a line each.
    headers = fields.TextField(default="")
    answer = fields.TextField(default="")
    error = fields.TextField(default="")

    webhook_id: UUID

    class Meta:
        table = "webhook_deliveries"

    @property
    def event_id(self) -> str:
        """What receivers tell repetitions by."""
        return f"{EVENT_ID_PREFIX}{self.event_number or f'test_{self.id}'}"

    @property
    def state(self) -> str:
        """Whether it waits to be sent, was received, or has failed for good."""
        if self.next_at is not None:
            return "waiting"
        return "delivered" if 200 <= (self.status or 0) < 300 else "failed"
