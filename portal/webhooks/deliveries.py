"""What webhooks are sent, and what their receivers answered: listed, tested, sent again."""

from datetime import timedelta
from uuid import UUID

from portal.database.connection import NOW, server_time
from portal.database.event_models import WebhookDelivery
from portal.errors import WebhookDisabled, WebhookNotFound
from portal.webhooks.endpoints import get

TEST = "webhook.test"
KEPT_FOR = timedelta(days=30)


async def read_page(
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
    await _require_enabled(webhook_id)
    delivery = await WebhookDelivery.create(webhook_id=webhook_id, type=TEST)
    return await WebhookDelivery.get(id=delivery.id)


async def redeliver(webhook_id: UUID, delivery_id: int) -> WebhookDelivery:
    """Send an event again now, and as often as a new one.

    Raises `WebhookDisabled`, or `WebhookNotFound` if there is no such webhook or delivery.
    """
    await _require_enabled(webhook_id)
    found = WebhookDelivery.filter(id=delivery_id, webhook_id=webhook_id)
    if not await found.update(tries=0, next_at=NOW):
        raise WebhookNotFound
    return await found.get()


async def forget_old() -> None:
    """Delete what is older than `KEPT_FOR`."""
    await WebhookDelivery.filter(created_at__lt=await server_time() - KEPT_FOR).delete()


async def _require_enabled(webhook_id: UUID) -> None:
    if not (await get(webhook_id)).enabled:
        raise WebhookDisabled
