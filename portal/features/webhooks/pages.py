"""Pages of webhooks: their addresses, and the deliveries of events."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from markupsafe import Markup
from quart import Blueprint, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.database.event_models import Webhook
from portal.errors import InvalidRequest, NotFound
from portal.events.log import EventType
from portal.features.webhooks import endpoints
from portal.features.webhooks.sending import read_payload
from portal.http.auth import Policy, account_id, policy, principal
from portal.http.composition import web_context
from portal.http.languages import gettext
from portal.http.schemas.validation import validated
from portal.http.schemas.webhooks import WebhookRequest
from portal.locale.messages import Message
from portal.videos.events import shown_event
from portal.videos.reading import stream_below

blueprint = Blueprint("webhooks", __name__, url_prefix="/webhooks")

PAGE_SIZE = 20
ACTIONS: dict[str, Callable[[UUID], Awaitable[object]]] = {
    "test": endpoints.send_test,
    "enable": endpoints.enable,
    "disable": endpoints.disable,
    "remove": endpoints.remove,
}
# Meanings of events, in the order of the form.
EVENT_WORDS = {
    EventType.CREATED: Message("A video was published. It is not ready to watch yet."),
    EventType.READY: Message("A video is ready to watch, at least in its first quality."),
    EventType.RENDITION_ADDED: Message("Another quality can be watched."),
    EventType.COMPLETED: Message("All qualities of a video are done."),
    EventType.FAILED: Message("A video couldn't be processed."),
    EventType.REPLACED: Message("Another file of a video is played from now on."),
    EventType.REPLACEMENT_FAILED: Message(
        "A file that should replace another one couldn't be processed."
    ),
    EventType.CUTS_CHANGED: Message("A video is cut, or whole again, from now on."),
    EventType.CUTS_FAILED: Message("A cut of a video couldn't be made."),
    EventType.UPDATED: Message("The title, description, categories, tags or visibility changed."),
    EventType.CAPTIONS_CHANGED: Message("Captions were added, changed or removed."),
    EventType.CHAPTERS_CHANGED: Message("Chapters were added, changed or removed."),
    EventType.SUBMITTED: Message("A contributor's video waits for approval."),
    EventType.APPROVED: Message("A video was approved."),
    EventType.REFUSED: Message("A video was refused."),
    EventType.DELETION_DUE: Message("A video will be deleted for good within a week."),
    EventType.DELETED: Message("A video was deleted, or hidden from you."),
    EventType.IMPORT_FAILED: Message("A file couldn't be imported from its address."),
}
# Notices of completed actions, by the `done` parameter of the address.
DONE = {
    "edit": Message("Webhook saved."),
    "enable": Message("Webhook enabled. It receives events from now on."),
    "remove": Message("Webhook removed."),
    "test": Message("Sending… Reload this page to see the response."),
}


@blueprint.get("")
@policy(Policy.WEBHOOKS)
async def index() -> str:
    """Show all webhooks."""
    return await _render_webhooks()


@blueprint.post("")
@blueprint.post("/<uuid:webhook_id>")
@policy(Policy.WEBHOOKS)
async def save(webhook_id: UUID | None = None) -> ResponseReturnValue:
    """Create a webhook and show its secret once, or change one; or show the form's faults."""
    webhook = webhook_id and await endpoints.get(webhook_id)
    form = await request.form
    typed = {"url": form.get("url", "").strip(), "events": form.getlist("events")}
    try:
        requested = validated(WebhookRequest, typed)
    except InvalidRequest as exc:
        values = {"typed": typed, "faults": exc.by_field}
        return await (
            _render_webhook(webhook, **values) if webhook else _render_webhooks(**values)
        ), 422
    if webhook:
        await endpoints.change(webhook.id, "edited", url=requested.url, events=requested.events)
        return redirect(url_for("webhooks.page", webhook_id=webhook.id, done="edit"), 303)
    webhook = await endpoints.make(requested.url, requested.events, account_id=await account_id())
    return await _render_webhook(webhook, secret=webhook.secret)


@blueprint.get("/<uuid:webhook_id>")
@policy(Policy.WEBHOOKS)
async def page(webhook_id: UUID) -> str:
    """Show a webhook with its deliveries."""
    return await _render_webhook(await endpoints.get(webhook_id))


@blueprint.post("/<uuid:webhook_id>/rotate-secret")
@policy(Policy.WEBHOOKS)
async def rotate_secret(webhook_id: UUID) -> str:
    """Replace the secret, and show the new one once."""
    webhook = await endpoints.rotate_secret(webhook_id)
    return await _render_webhook(webhook, secret=webhook.secret)


@blueprint.post("/<uuid:webhook_id>/<action>")
@policy(Policy.WEBHOOKS)
async def act(webhook_id: UUID, action: str) -> ResponseReturnValue:
    """Test, enable, disable or remove a webhook."""
    if action not in ACTIONS:
        raise NotFound
    await ACTIONS[action](webhook_id)
    if action == "remove":
        return redirect(url_for("webhooks.index", done=action), 303)
    return redirect(url_for("webhooks.page", webhook_id=webhook_id, done=action), 303)


@blueprint.post("/<uuid:webhook_id>/deliveries/<int:delivery_id>/redeliver")
@policy(Policy.WEBHOOKS)
async def redeliver(webhook_id: UUID, delivery_id: int) -> ResponseReturnValue:
    """Send an event again."""
    await endpoints.redeliver(webhook_id, delivery_id)
    return redirect(url_for("webhooks.page", webhook_id=webhook_id, done="test"), 303)


async def _render_webhooks(**more: object) -> str:
    values = {"typed": {"url": "", "events": list(EventType)}, "faults": {}, **more}
    return await _render_with_form("index", webhooks=await endpoints.list_webhooks(), **values)


async def _render_webhook(webhook: Webhook, **more: object) -> str:
    """Render a webhook with a page of deliveries, and its `secret` if that is new."""
    before = request.args.get("before", type=int)
    rows, older = await endpoints.read_deliveries(webhook.id, limit=PAGE_SIZE, before=before)
    viewer = await principal()
    config = web_context().config
    deliveries = []
    for row in rows:
        payload = await read_payload(row, seen_by=viewer, config=config)
        deliveries.append((row, payload and json.dumps(payload, ensure_ascii=False, indent=2)))
    values = {"typed": webhook, "faults": {}, "older": older, **more}
    return await _render_with_form("page", webhook=webhook, deliveries=deliveries, **values)


async def _render_with_form(name: str, **values: object) -> str:
    done = DONE.get(request.args.get("done", ""), "")
    types = {
        event: Markup('<code>{}</code> <span class="field__hint">{}</span>').format(
            event, gettext(words)
        )
        for event, words in EVENT_WORDS.items()
    }
    return await render_template(
        f"webhooks/{name}.html", done=done, types=types, example=_example_request(), **values
    )


def _example_request() -> str:
    """Return the JSON of a request that reports a new video as ready."""
    config = web_context().config
    video_id = "0198f3c2-6b1a-7c55-9d0e-3f6a1b2c4d5e"
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    record = {
        "id": video_id,
        "title": "Harbour at dawn",
        "description": "",
        "category_ids": [13],
        "tags": "sea, harbour",
        "passthrough": "",
        "file_name": "harbour.mp4",
        "storage_key": "videos/5f0d6c1e9a7b4c3d8e2f1a0b9c8d7e6f.mp4",
        "transcode_job_id": "42",
        "status": "ready",
        "size_bytes": 104857600,
        "created_at": moment,
        "updated_at": moment,
        "published_attempt": 1,
        "visibility": "public",
        "signed_in_only": False,
        "owner_id": None,
    }
    columns = {
        "visibility": "public",
        "approval": None,
        "duration_s": 61.5,
        "has_poster": True,
        "failure_code": None,
        "failure_message": None,
    }
    event = {
        "number": 128,
        "type": EventType.READY,
        "at": moment,
        "sequence": 128,
        "data": record,
        "present": columns,
    }
    address = stream_below(config.public_url, video_id, 1)
    return shown_event(event, config, playback_url=address).model_dump_json(indent=2)
