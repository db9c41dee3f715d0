"""Sends a delivery: what the request says, how it is signed, and when it is tried again."""

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
from portal.accounts.permissions import EVERYONES, Principal
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
from portal.queue.enqueue import defer_delivery
from portal.text import rfc3339, whole_number
from portal.videos.events import read_event, record_in, shown_event
from portal.videos.reading import audience_of, master_url
from portal.webhooks.endpoints import disable, signing_secrets

TIMEOUT_S = 15
MAX_PAYLOAD_BYTES = 20_000
MAX_ANSWER_BYTES = 65_536
# What is kept of an answer, to be shown.
MAX_ANSWER_LENGTH = 2_000
# After the first failure, the second, and so on; three days in all.
PAUSES_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
FAILING_FOR = timedelta(days=5)
GONE = 410
# Of what takes longer, recovery thinks that it was lost.
LONGEST_JOB_S = 60


async def send(webhook_id: UUID, lane: int, *, config: Config) -> None:
    """Send what is due in one of a webhook's lanes, and what becomes due meanwhile."""
    ends_at = monotonic() + LONGEST_JOB_S
    due = WebhookDelivery.filter(webhook_id=webhook_id, lane=lane, next_at__lte=NOW)
    while delivery := await due.order_by("id").select_related("webhook").first():
        if monotonic() > ends_at:
            async with transaction():
                await defer_delivery(webhook_id, lane)
            return
        await _send(delivery, config)


async def _send(delivery: WebhookDelivery, config: Config) -> None:
    """Send a delivery and record the answer, with the time of the next try if it failed.

    A repetition after a crash sends the same event with the same id.
    """
    webhook, found = delivery.webhook, WebhookDelivery.filter(id=delivery.id)
    if not webhook.enabled:
        await found.update(next_at=None, error="The webhook was disabled.")
        return
    seen_by: Principal | None = EVERYONES
    if webhook.account_id is not None:
        # Without those that may do nothing any more.
        seen_by = (await fetch_principals([webhook.account_id])).get(webhook.account_id)
    payload = await read_payload(delivery, seen_by=seen_by, config=config) if seen_by else None
    if payload is None:
        # Not theirs to hear of any more.
        await found.delete()
        return
    await _record_answer(delivery, await _post(webhook, payload, config))


async def read_payload(
    delivery: WebhookDelivery, *, seen_by: Principal, config: Config
) -> dict[str, Any] | None:
    """What a delivery says; None if the event is not for this principal, or is kept no more."""
    if delivery.event_number is None:
        test = {"type": delivery.type, "timestamp": rfc3339(delivery.created_at), "sequence": 0}
        return {"id": delivery.event_id, **test, "data": {}, "details": None}
    event = await read_event(delivery.event_number, seen_by=seen_by)
    if event is None:
        return None
    record = record_in(event)
    address = ""
    # Anyone who reads the request could watch a private video by its address.
    if record and not audience_of(record).is_private:
        address = master_url(config, record.id, record.published_attempt, is_private=False)
    return shown_event(event, config, playback_url=address).model_dump(mode="json")


def body_of(payload: dict[str, Any]) -> str:
    """The JSON of a payload, with the description shortened to what `MAX_PAYLOAD_BYTES` allow."""
    body = json.dumps(payload, ensure_ascii=False)
    excess = len(body.encode()) - MAX_PAYLOAD_BYTES
    if excess <= 0:
        return body
    # In JSON no character takes fewer bytes than in UTF-8.
    kept = payload["data"]["description"].encode()[: -excess - len("…".encode())]
    data = {**payload["data"], "description": kept.decode(errors="ignore") + "…"}
    return json.dumps({**payload, "data": data}, ensure_ascii=False)


def next_try(tries: int, retry_after: str = "", *, now: datetime) -> datetime | None:
    """When to try again after so many failed tries; None when they were enough.

    `retry_after` is the answer's Retry-After (RFC 9110, section 10.2.3): it may ask for a day.
    """
    if tries > len(PAUSES_S):
        return None
    wanted_s = float(whole_number(retry_after, max_digits=9) or 0)
    if retry_after and not wanted_s:
        with suppress(TypeError, ValueError):
            wanted_s = (parsedate_to_datetime(retry_after) - now).total_seconds()
    # The jitter keeps those that failed together from coming back together.
    own_s = PAUSES_S[tries - 1] * uniform(1, 1.2)  # noqa: S311  # no secret
    return now + timedelta(seconds=max(own_s, min(wanted_s, PAUSES_S[-1])))


async def _post(webhook: Webhook, payload: dict[str, Any], config: Config) -> dict[str, Any]:
    """Send a payload; answers the columns that say what came of it, and `retry_after`."""
    begun, now, body = monotonic(), datetime.now(UTC), body_of(payload)
    secrets = signing_secrets(webhook, now)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"portal/{__version__}",
        "webhook-id": payload["id"],
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Signer(it).sign(payload["id"], now, body) for it in secrets),
    }
    lines = "\n".join(f"{name}: {it}" for name, it in headers.items())
    told: dict[str, Any] = {"status": None, "answer": "", "error": "", "retry_after": ""}
    try:
        # The settings may have changed since the address was taken.
        if fault := address_fault(webhook.url, config):
            raise RequestFailed(fault)
        async with (
            open_session(networks=config.outgoing_networks, timeout_s=TIMEOUT_S) as session,
            session.post(
                webhook.url, data=body.encode(), headers=headers, allow_redirects=False
            ) as response,
        ):
            start = await read_start(response, max_bytes=MAX_ANSWER_BYTES)
            text = start.decode(errors="replace").replace("\0", "")[:MAX_ANSWER_LENGTH]
            retry_after = response.headers.get("Retry-After", "")
            told |= {"status": response.status, "answer": text, "retry_after": retry_after}
    except TimeoutError:
        told["error"] = f"There was no answer within {TIMEOUT_S} s."
    except (RequestFailed, aiohttp.ClientError, OSError, ValueError) as exc:
        told["error"] = failure_words(exc)
    return {**told, "headers": lines, "duration_ms": round((monotonic() - begun) * 1000)}


async def _record_answer(delivery: WebhookDelivery, answer: dict[str, Any]) -> None:
    """Record the answer to a request, queue the next try, and disable a webhook that is gone."""
    async with transaction():
        # Locked first, as by whoever removes it.
        webhook = await Webhook.filter(id=delivery.webhook_id).select_for_update().get_or_none()
        if webhook is None:
            return
        now, tries, status = await server_time(), delivery.tries + 1, answer["status"] or 0
        is_success, retry_after = 200 <= status < 300, answer.pop("retry_after")
        is_over = is_success or status == GONE
        next_at = None if is_over else next_try(tries, retry_after, now=now)
        columns = {**answer, "tries": tries, "sent_at": now, "next_at": next_at}
        await WebhookDelivery.filter(id=delivery.id).update(**columns)
        if next_at is not None:
            await defer_delivery(webhook.id, delivery.lane, at=next_at)
        since = None if is_success else webhook.failing_since or now
        if since != webhook.failing_since:
            await Webhook.filter(id=webhook.id).update(failing_since=since)
        has_failed_for_long = since is not None and now - since > FAILING_FOR
        if webhook.enabled and (status == GONE or has_failed_for_long):
            act_as(PORTAL)
            reason = DisabledReason.GONE if status == GONE else DisabledReason.FAILING
            await disable(webhook.id, reason)
