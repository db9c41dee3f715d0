"""The addresses that are told of events: made, changed, disabled and removed; their secrets.

And what they are sent, and have answered: listed, tested, sent again. Whoever administers the
portal manages all of them. What one is sent depends on whose it is.
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
from portal.events.log import AuditAction, note
from portal.queue.enqueue import defer_delivery

MAX_WEBHOOKS = 50
SECRET_PREFIX = "whsec_"  # noqa: S105  # so that receivers and scanners know what it is
SECRET_BYTES = 32
OLD_SECRET_LIFE = timedelta(hours=24)
# Each makes the header of a request's signatures 48 bytes longer.
MAX_OLD_SECRETS = 4
TEST = "webhook.test"
KEPT_FOR = timedelta(days=30)


async def list_webhooks() -> list[Webhook]:
    """All of the portal, the newest first."""
    return await Webhook.all().order_by("-created_at")


async def get(webhook_id: UUID) -> Webhook:
    """The webhook with this id. Raises `WebhookNotFound`."""
    found = await Webhook.get_or_none(id=webhook_id)
    if found is None:
        raise WebhookNotFound
    return found


async def make(url: str, events: Sequence[str], *, account_id: UUID | None) -> Webhook:
    """Have events of these types sent to an address. Raises `TooManyWebhooks`."""
    if await Webhook.all().count() >= MAX_WEBHOOKS:
        raise TooManyWebhooks
    async with transaction():
        webhook = await Webhook.create(
            id=uuid4(), account_id=account_id, url=url, events=list(events), secret=_new_secret()
        )
        await _note(AuditAction.WEBHOOK_MADE, webhook)
    return webhook


async def change(webhook_id: UUID, what: str, **columns: Any) -> Webhook:
    """Change a webhook; `what` is for the audit log. Raises `WebhookNotFound`."""
    async with transaction():
        await Webhook.filter(id=webhook_id).update(**columns)
        webhook = await get(webhook_id)
        await _note(AuditAction.WEBHOOK_CHANGED, webhook, what=what)
    return webhook


async def enable(webhook_id: UUID) -> Webhook:
    """Send to it again, from the next event on."""
    return await change(webhook_id, "enabled", disabled_reason=None, failing_since=None)


async def disable(webhook_id: UUID, reason: DisabledReason = DisabledReason.PERSON) -> Webhook:
    """Send nothing more to it."""
    return await change(webhook_id, f"disabled: {reason}", disabled_reason=reason.value)


async def rotate_secret(webhook_id: UUID) -> Webhook:
    """Give a webhook a new secret; the present one signs, too, for `OLD_SECRET_LIFE`.

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
    """Remove a webhook with its deliveries; what waits is not sent."""
    async with transaction():
        webhook = await get(webhook_id)
        await webhook.delete()
        await _note(AuditAction.WEBHOOK_REMOVED, webhook)


async def read_deliveries(
    webhook_id: UUID, *, limit: int, before: int | None = None
) -> tuple[list[WebhookDelivery], int | None]:
    """The newest deliveries of a webhook, of those with smaller ids than `before` if it is given.

    And the id before which older ones go on, if there are any.
    """
    found = WebhookDelivery.filter(webhook_id=webhook_id).order_by("-id").limit(limit + 1)
    page = await (found if before is None else found.filter(id__lt=before))
    return page[:limit], page[limit - 1].id if len(page) > limit else None


async def send_test(webhook_id: UUID) -> WebhookDelivery:
    """Send an event of the type `TEST`. Raises `WebhookNotFound` or `WebhookDisabled`."""
    async with transaction():
        await _require_enabled(webhook_id)
        created = await WebhookDelivery.create(webhook_id=webhook_id, type=TEST)
        delivery = await WebhookDelivery.get(id=created.id)
        await defer_delivery(webhook_id, delivery.lane)
    return delivery


async def redeliver(webhook_id: UUID, delivery_id: int) -> WebhookDelivery:
    """Send an event again now, and as often as a new one.

    Raises `WebhookDisabled`, or `WebhookNotFound` if there is no such webhook or delivery.
    """
    rows = WebhookDelivery.filter(id=delivery_id, webhook_id=webhook_id)
    async with transaction():
        await _require_enabled(webhook_id)
        if not await rows.update(tries=0, next_at=NOW):
            raise WebhookNotFound
        delivery = await rows.get()
        await defer_delivery(webhook_id, delivery.lane)
    return delivery


async def forget_old() -> None:
    """Delete what is older than `KEPT_FOR`."""
    await WebhookDelivery.filter(created_at__lt=await server_time() - KEPT_FOR).delete()


async def _require_enabled(webhook_id: UUID) -> None:
    if not (await get(webhook_id)).enabled:
        raise WebhookDisabled


def _new_secret() -> str:
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


async def _note(action: AuditAction, webhook: Webhook, **detail: str) -> None:
    # The rest of an address may be as good as a secret.
    await note(action, webhook.id, name=urlsplit(webhook.url).hostname or "", detail=detail)
