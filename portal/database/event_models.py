"""Tables of events and of webhooks."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tortoise import fields
from tortoise.contrib.postgres.fields import ArrayField
from tortoise.fields.db_defaults import Now, SqlDefault
from tortoise.models import Model

from portal.database.account_models import MAX_EMAIL_LENGTH, MAX_NAME_LENGTH

# Prefix of an event's id; its number follows.
EVENT_ID_PREFIX = "evt_"


class Event(Model):
    """Line of the audit log: an action of a person or a program, or an outcome of processing.

    Names and addresses are those of that time. An action without account and token is one of an
    anonymous visitor, a command, or the portal itself. Events with a `type` are public: `number`
    orders all of them and `sequence` those of one video, and `data` is the video's record. `was` is
    the previous audience of the video, if the event changed the audience.
    """

    id = fields.BigIntField(primary_key=True)
    # The clock's time. The transaction's time is older if the transaction had to wait for locks.
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


# The API documents the values of this enum, and the database stores them.
class DisabledReason(StrEnum):
    """Reason why a webhook is disabled: by a person, its address is gone, or it keeps failing."""

    PERSON = "person"
    GONE = "gone"
    FAILING = "failing"


class Webhook(Model):
    """Address that receives events of some types, if its account may see their videos.

    Deliveries are signed with `secret`, and with each of `old_secrets` until it expires
    (`features.webhooks.endpoints`). `failing_since` is the first failure after the last success.
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
        """Return whether the webhook receives events."""
        return self.disabled_reason is None


class WebhookDelivery(Model):
    """Delivery of an event to a webhook, with the receiver's last response.

    `next_at` is the time of the next try; None if the delivery has arrived or was given up. The
    transaction that sets `next_at` enqueues a job. A delivery without `event_number` is a test.
    """

    id = fields.BigIntField(primary_key=True)
    webhook: fields.ForeignKeyRelation[Webhook] = fields.ForeignKeyField("portal.Webhook")
    event_number: int | None = fields.BigIntField(null=True)
    type = fields.CharField(max_length=30)
    # Deliveries of one lane are sent one after the other.
    lane = fields.SmallIntField(db_default=SqlDefault("floor(random() * 4)"))
    created_at: datetime = fields.DatetimeField(db_default=Now())
    tries = fields.SmallIntField(default=0)
    next_at: datetime | None = fields.DatetimeField(null=True, db_default=Now())
    sent_at: datetime | None = fields.DatetimeField(null=True)
    duration_ms: int | None = fields.IntField(null=True)
    status: int | None = fields.SmallIntField(null=True)
    # Headers of the request, one a line.
    headers = fields.TextField(default="")
    answer = fields.TextField(default="")
    error = fields.TextField(default="")

    webhook_id: UUID

    class Meta:
        table = "webhook_deliveries"

    @property
    def event_id(self) -> str:
        """Return the event's id, by which receivers recognise repetitions."""
        return f"{EVENT_ID_PREFIX}{self.event_number or f'test_{self.id}'}"

    @property
    def state(self) -> str:
        """Return the state: waiting, delivered, or failed."""
        if self.next_at is not None:
            return "waiting"
        return "delivered" if 200 <= (self.status or 0) < 300 else "failed"
