"""Webhooks with their secrets and deliveries, as administrators manage them.

Every administrator manages all webhooks. A webhook is sent the events that its own account sees.
"""

import secrets
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from portal.database.connection import NOW, server_time, transaction
from portal.database.event_models import DisabledReason, Webhook, WebhookDelivery
from portal.errors import TooManySecrets, TooManyWebhooks, WebhookDisabled, WebhookNotFound
from portal.events.log import AuditAction, record_action
from portal.queue.deliveries import enqueue_delivery

MAX_WEBHOOKS = 50
# Receivers and scanners recognize secrets by it.
SECRET_PREFIX = "whsec_"  # noqa: S105  # no secret
SECRET_BYTES = 32
OLD_SECRET_LIFE = timedelta(hours=24)
# Each old secret makes the header with the signatures 48 bytes longer.
MAX_OLD_SECRETS = 4
TEST = "webhook.test"
KEPT_FOR = timedelta(days=30)


async def list_webhooks() -> list[Webhook]:
    """Return all webhooks of the portal, the newest first."""
    return await Webhook.all().order_by("-created_at")


async def get(webhook_id: UUID) -> Webhook:
    """Return the webhook with this id. Raises `WebhookNotFound`."""
    webhook = await Webhook.get_or_none(id=webhook_id)
    if webhook is None:
        raise WebhookNotFound
    return webhook


async def make(url: str, events: Sequence[str], *, account_id: UUID | None) -> Webhook:
    """Create a webhook for events of these types. Raises `TooManyWebhooks`."""
    if await Webhook.all().count() >= MAX_WEBHOOKS:
        raise TooManyWebhooks
    async with transaction():
        webhook = await Webhook.create(
            id=uuid4(),
            account_id=account_id,
            url=url,
            events=list(events),
            secret=_new_secret(),
            created_at=await server_time(),
        )
        await _note_webhook(AuditAction.WEBHOOK_MADE, webhook)
    return webhook


async def change(webhook_id: UUID, summary: str, **columns: Any) -> Webhook:
    """Change columns of a webhook, with a summary for the audit log. Raises `WebhookNotFound`."""
    async with transaction():
        await Webhook.filter(id=webhook_id).update(**columns)
        webhook = await get(webhook_id)
        await _note_webhook(AuditAction.WEBHOOK_CHANGED, webhook, what=summary)
    return webhook


async def enable(webhook_id: UUID) -> Webhook:
    """Enable a webhook. It is sent events from the next one on."""
    return await change(webhook_id, "enabled", disabled_reason=None, failing_since=None)


async def disable(webhook_id: UUID, reason: DisabledReason = DisabledReason.PERSON) -> Webhook:
    """Disable a webhook. Nothing more is sent to it."""
    return await change(webhook_id, f"disabled: {reason}", disabled_reason=reason.value)


async def rotate_secret(webhook_id: UUID) -> Webhook:
    """Give a webhook a new secret. The former one also signs requests for `OLD_SECRET_LIFE`.

    Secrets that were replaced earlier keep their own ends. Raises `TooManySecrets` or
    `WebhookNotFound`.
    """
    async with transaction():
        webhook = await Webhook.filter(id=webhook_id).select_for_update().get_or_none()
        if webhook is None:
            raise WebhookNotFound
        now = await server_time()
        old = [entry for entry in webhook.old_secrets if _end_of(entry) > now]
        if len(old) >= MAX_OLD_SECRETS:
            raise TooManySecrets
        old.append({"secret": webhook.secret, "until": (now + OLD_SECRET_LIFE).isoformat()})
        columns = {"secret": _new_secret(), "old_secrets": old}
        return await change(webhook_id, "secret rotated", **columns)


def signing_secrets(webhook: Webhook, now: datetime) -> list[str]:
    """Return the secrets that sign requests now, the newest first."""
    old = [entry["secret"] for entry in webhook.old_secrets if _end_of(entry) > now]
    return [webhook.secret, *reversed(old)]


def _end_of(old_secret: dict[str, str]) -> datetime:
    return datetime.fromisoformat(old_secret["until"])


async def remove(webhook_id: UUID) -> None:
    """Remove a webhook with its deliveries. Waiting deliveries are not sent."""
    async with transaction():
        webhook = await get(webhook_id)
        await webhook.delete()
        await _note_webhook(AuditAction.WEBHOOK_REMOVED, webhook)


async def read_deliveries(
    webhook_id: UUID, *, limit: int, before: int | None = None
) -> tuple[list[WebhookDelivery], int | None]:
    """Return a page of a webhook's deliveries, the newest first, and the `before` of the next page.

    With `before` the page has deliveries with smaller ids. The last page has no next one.
    """
    rows = WebhookDelivery.filter(webhook_id=webhook_id).order_by("-id").limit(limit + 1)
    page = await (rows if before is None else rows.filter(id__lt=before))
    return page[:limit], page[limit - 1].id if len(page) > limit else None


async def send_test(webhook_id: UUID) -> WebhookDelivery:
    """Queue an event of the type `TEST`. Raises `WebhookNotFound` or `WebhookDisabled`."""
    async with transaction():
        await _require_enabled(webhook_id)
        created = await WebhookDelivery.create(webhook_id=webhook_id, type=TEST)
        delivery = await WebhookDelivery.get(id=created.id)
        await enqueue_delivery(webhook_id, delivery.lane)
    return delivery


async def redeliver(webhook_id: UUID, delivery_id: int) -> WebhookDelivery:
    """Queue a delivery again, with as many tries as a new one.

    Raises `WebhookDisabled`, or `WebhookNotFound` for an unknown webhook or delivery.
    """
    rows = WebhookDelivery.filter(id=delivery_id, webhook_id=webhook_id)
    async with transaction():
        await _require_enabled(webhook_id)
        if not await rows.update(tries=0, next_at=NOW):
            raise WebhookNotFound
        delivery = await rows.get()
        await enqueue_delivery(webhook_id, delivery.lane)
    return delivery


async def forget_old() -> None:
    """Delete deliveries that are older than `KEPT_FOR`."""
    await WebhookDelivery.filter(created_at__lt=await server_time() - KEPT_FOR).delete()


async def _require_enabled(webhook_id: UUID) -> None:
    if not (await get(webhook_id)).enabled:
        raise WebhookDisabled


def _new_secret() -> str:
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


async def _note_webhook(action: AuditAction, webhook: Webhook, **detail: str) -> None:
    # The path or query of the address may contain a secret.
    await record_action(
        action, webhook.id, name=urlsplit(webhook.url).hostname or "", detail=detail
    )
