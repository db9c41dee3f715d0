"""Sending a delivery: its payload, its signatures, and the time of its next try."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from random import uniform
from time import monotonic
from typing import Any
from uuid import UUID

import aiohttp
from standardwebhooks import Webhook as Signer

from portal import __version__
from portal.accounts.people import fetch_principals
from portal.accounts.permissions import EVERYONES, Principal, is_private_in
from portal.config import Config
from portal.database.connection import NOW, server_time, transaction
from portal.database.event_models import DisabledReason, Webhook, WebhookDelivery
from portal.events.log import PORTAL, act_as
from portal.events.outgoing import (
    RequestFailed,
    address_fault,
    failure_words,
    open_session,
    read_start,
)
from portal.features.webhooks.endpoints import disable, signing_secrets
from portal.locale.messages import Message
from portal.queue.deliveries import DELIVERY, enqueue_delivery
from portal.queue.tools import Tools
from portal.text import rfc3339, whole_number
from portal.videos.events import read_event, record_in, shown_event
from portal.videos.reading import stream_below

TIMEOUT_S = 15
MAX_PAYLOAD_BYTES = 20_000
MAX_ANSWER_BYTES = 65_536
# Characters of a response that are stored, to be shown.
MAX_ANSWER_LENGTH = 2_000
# Pauses after the first failure, the second, and so on; three days in all.
PAUSES_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
FAILING_FOR = timedelta(days=5)
GONE = 410


async def send(webhook_id: UUID, lane: int, tools: Tools) -> None:
    """Send the due deliveries of one of a webhook's lanes, and those that become due meanwhile."""
    ends_at = monotonic() + DELIVERY.longest_s
    due = WebhookDelivery.filter(webhook_id=webhook_id, lane=lane, next_at__lte=NOW)
    while delivery := await due.order_by("id").select_related("webhook").first():
        if monotonic() > ends_at:
            async with transaction():
                await enqueue_delivery(webhook_id, lane)
            return
        await _send_delivery(delivery, tools.config)


async def _send_delivery(delivery: WebhookDelivery, config: Config) -> None:
    """Send a delivery and record the answer, with the time of the next try if it failed.

    A repetition after a crash sends the same event with the same id.
    """
    webhook = delivery.webhook
    row = WebhookDelivery.filter(id=delivery.id)
    if not webhook.enabled:
        await row.update(next_at=None, error=Message("The webhook was disabled."))
        return
    reader: Principal | None = EVERYONES
    if webhook.account_id is not None:
        # Disabled accounts have no principal.
        reader = (await fetch_principals([webhook.account_id])).get(webhook.account_id)
    payload = await read_payload(delivery, seen_by=reader, config=config) if reader else None
    if payload is None:
        # The account no longer sees the event.
        await row.delete()
        return
    await _record_answer(delivery, **await _post(webhook, payload, config))


async def read_payload(
    delivery: WebhookDelivery, *, seen_by: Principal, config: Config
) -> dict[str, Any] | None:
    """Return the body of a delivery; None for an event that is hidden from `seen_by` or expired."""
    if delivery.event_number is None:
        test = {"type": delivery.type, "timestamp": rfc3339(delivery.created_at), "sequence": 0}
        return {"id": delivery.event_id, **test, "data": {}, "details": None}
    event = await read_event(delivery.event_number, seen_by=seen_by)
    if event is None:
        return None
    record = record_in(event)
    address = ""
    # Anyone who reads the request could watch a private video by its address.
    if record and not is_private_in(record):
        address = stream_below(config.public_url, record["id"], record["published_attempt"])
    return shown_event(event, config, playback_url=address).model_dump(mode="json")


def body_of(payload: dict[str, Any]) -> str:
    """Return a payload as JSON, its description shortened to fit into `MAX_PAYLOAD_BYTES`."""
    body = json.dumps(payload, ensure_ascii=False)
    excess = len(body.encode()) - MAX_PAYLOAD_BYTES
    if excess <= 0:
        return body
    # A character takes at least as many bytes in JSON as in UTF-8.
    start = payload["data"]["description"].encode()[: -excess - len("…".encode())]
    data = {**payload["data"], "description": start.decode(errors="ignore") + "…"}
    return json.dumps({**payload, "data": data}, ensure_ascii=False)


def next_try(tries: int, retry_after: str = "", *, now: datetime) -> datetime | None:
    """Return the time of the next try after this many failed ones; None after the last.

    `retry_after` is the response's Retry-After (RFC 9110, section 10.2.3). It may ask for a day.
    """
    if tries > len(PAUSES_S):
        return None
    receivers_s = float(whole_number(retry_after, max_digits=9) or 0)
    if retry_after and not receivers_s:
        with suppress(TypeError, ValueError, OverflowError):
            receivers_s = (parsedate_to_datetime(retry_after) - now).total_seconds()
    # Jitter keeps deliveries that failed together from being repeated together.
    own_s = PAUSES_S[tries - 1] * uniform(1, 1.2)  # noqa: S311  # no secret
    return now + timedelta(seconds=max(own_s, min(receivers_s, PAUSES_S[-1])))


async def _post(webhook: Webhook, payload: dict[str, Any], config: Config) -> dict[str, Any]:
    """Send a payload. Return columns of the delivery, and the response's `retry_after`."""
    started_at = monotonic()
    now = datetime.now(UTC)
    body = body_of(payload)
    signatures = [
        Signer(secret).sign(payload["id"], now, body) for secret in signing_secrets(webhook, now)
    ]
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"portal/{__version__}",
        "webhook-id": payload["id"],
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    columns: dict[str, Any] = {
        "status": None,
        "answer": "",
        "error": "",
        "retry_after": "",
        "headers": "\n".join(f"{name}: {value}" for name, value in headers.items()),
    }
    try:
        # The settings may have changed since the webhook was created.
        if fault := address_fault(webhook.url, config):
            raise RequestFailed(fault)
        async with (
            open_session(networks=config.outgoing_networks, timeout_s=TIMEOUT_S) as session,
            session.post(
                webhook.url, data=body.encode(), headers=headers, allow_redirects=False
            ) as response,
        ):
            start = await read_start(response, max_bytes=MAX_ANSWER_BYTES)
            text = start.decode(errors="replace").replace("\0", "")
            columns["status"] = response.status
            columns["answer"] = text[:MAX_ANSWER_LENGTH]
            columns["retry_after"] = response.headers.get("Retry-After", "")
    except TimeoutError:
        columns["error"] = Message("There was no answer within %(seconds)s s.", seconds=TIMEOUT_S)
    except (RequestFailed, aiohttp.ClientError, OSError, ValueError) as exc:
        columns["error"] = failure_words(exc)
    columns["duration_ms"] = round((monotonic() - started_at) * 1000)
    return columns


async def _record_answer(
    delivery: WebhookDelivery, *, retry_after: str, status: int | None, **columns: Any
) -> None:
    """Record the answer to a request, queue the next try, and disable a webhook that is gone."""
    is_gone = status == GONE
    is_success = status is not None and 200 <= status < 300
    async with transaction():
        # The webhook is locked first, as in its removal.
        webhook = await Webhook.filter(id=delivery.webhook_id).select_for_update().get_or_none()
        if webhook is None:
            return
        now = await server_time()
        tries = delivery.tries + 1
        next_at = None if is_success or is_gone else next_try(tries, retry_after, now=now)
        await WebhookDelivery.filter(id=delivery.id).update(
            **columns, status=status, tries=tries, sent_at=now, next_at=next_at
        )
        if next_at is not None:
            await enqueue_delivery(webhook.id, delivery.lane, at=next_at)
        failing_since = None if is_success else webhook.failing_since or now
        if failing_since != webhook.failing_since:
            await Webhook.filter(id=webhook.id).update(failing_since=failing_since)
        has_failed_for_long = failing_since is not None and now - failing_since > FAILING_FOR
        if webhook.enabled and (is_gone or has_failed_for_long):
            act_as(PORTAL)
            reason = DisabledReason.GONE if is_gone else DisabledReason.FAILING
            await disable(webhook.id, reason)
