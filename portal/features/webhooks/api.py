"""Webhooks for programs: addresses that are sent events, and their deliveries."""

from uuid import UUID

from pydantic import Field, StrictBool
from quart import Blueprint, Response, request, url_for
from quart_schema import document_querystring, document_request, document_response, tag_blueprint

from portal.database.event_models import DisabledReason, Webhook, WebhookDelivery
from portal.events.log import EventType
from portal.events.records import Shape
from portal.features.webhooks import endpoints
from portal.http import json_bodies
from portal.http.auth import Policy, account_id, policy
from portal.http.schemas.base import ClosedShape, Problem, Timestamp
from portal.http.schemas.validation import validated, validated_query
from portal.http.schemas.webhooks import Address, Events, WebhookRequest

blueprint = Blueprint("api_webhooks", __name__, url_prefix="/api/webhooks")
tag_blueprint(blueprint, ["Webhooks"])

MAX_LIMIT = 200


class WebhookChange(ClosedShape):
    """A change of a webhook; members that are left out stay."""

    url: Address | None = None
    events: Events | None = None
    enabled: StrictBool | None = Field(None, description="Whether events are sent.")


class WebhookRecord(Shape, from_attributes=True):
    """An address that events are sent to."""

    id: UUID = Field(description="Unique identifier.")
    url: str = Field(description="Address that events are sent to.")
    events: list[EventType] = Field(description="Types of the events that are sent.")
    enabled: bool = Field(description="Whether events are sent.")
    disabled_reason: DisabledReason | None = Field(
        description="`person`; `gone`: it answered 410; `failing`: it had failed for five days."
    )
    failing_since: Timestamp | None = Field(description="The first failure after the last success.")
    created_at: Timestamp = Field(description="Time of the webhook's creation.")


class CreatedWebhook(WebhookRecord):
    """A new webhook, or one with a new secret, which is not shown again."""

    secret: str = Field(description="Signs requests according to Standard Webhooks.")


class WebhookList(Shape):
    """All webhooks, the newest first."""

    webhooks: list[WebhookRecord] = Field(description="The webhooks.")


class DeliveriesQuery(ClosedShape):
    """A page of deliveries."""

    limit: int = Field(50, ge=1, le=MAX_LIMIT, description="Most records of a page.")
    cursor: int | None = Field(None, description="`nextCursor` of the previous page.")


class DeliveryRecord(Shape, from_attributes=True):
    """Delivery of an event to a webhook, with the last response."""

    id: int = Field(description="Identifier, to send the event again.")
    event_id: str = Field(description="Identifier of the event.")
    type: str = Field(description="Type of the event.")
    state: str = Field(description="`waiting`, `delivered` or `failed`.")
    tries: int = Field(description="Number of tries so far.")
    created_at: Timestamp = Field(description="Time of the event.")
    sent_at: Timestamp | None = Field(description="Time of the last try; null before the first.")
    next_at: Timestamp | None = Field(description="Time of the next try.")
    duration_ms: int | None = Field(description="Duration of the last try; null before the first.")
    status: int | None = Field(description="Status of the response; null if there was none.")
    answer: str = Field(description="Beginning of the response.")
    error: str = Field(description="Reason why there was no response.")


class DeliveryList(Shape):
    """A page of deliveries, the newest first."""

    deliveries: list[DeliveryRecord] = Field(description="The deliveries.")
    next_cursor: int | None = Field(description="Where the next page begins; null after the last.")


@blueprint.get("")
@policy(Policy.WEBHOOKS)
@document_response(WebhookList)
async def list_webhooks() -> Response:
    """List all webhooks of the portal, the newest first."""
    return json_bodies.json_response(WebhookList(webhooks=await endpoints.list_webhooks()))


@blueprint.post("")
@policy(Policy.WEBHOOKS, headers=("Location",))
@document_request(WebhookRequest)
@document_response(CreatedWebhook, 201)
@document_response(Problem, 409)
async def create_webhook() -> Response:
    """Create a webhook, which is sent events as `webhooks` of the OpenAPI document describes them.

    It is sent the events of videos that your account finds in the library. Only a 2xx within 15 s
    counts as success. Failed deliveries are repeated nine times in three days. 410, or five days
    without success, disables the webhook.
    """
    body = validated(WebhookRequest, await json_bodies.read_json())
    webhook = await endpoints.make(body.url, body.events, account_id=await account_id())
    response = _with_secret(webhook, 201)
    response.headers["Location"] = url_for("api_webhooks.get_webhook", id=webhook.id)
    return response


@blueprint.get("/<uuid:id>")
@policy(Policy.WEBHOOKS)
@document_response(WebhookRecord)
async def get_webhook(id: UUID) -> Response:
    """Read a webhook."""
    return json_bodies.json_response(WebhookRecord.model_validate(await endpoints.get(id)))


@blueprint.patch("/<uuid:id>")
@policy(Policy.WEBHOOKS)
@document_request(WebhookChange)
@document_response(WebhookRecord)
async def change_webhook(id: UUID) -> Response:
    """Change the address or the types of a webhook, disable or enable it.

    Events while it is disabled are not sent later.
    """
    webhook = await endpoints.get(id)
    body = validated(WebhookChange, await json_bodies.read_json())
    columns = {"url": body.url, "events": body.events}
    if columns := {name: value for name, value in columns.items() if value is not None}:
        webhook = await endpoints.change(webhook.id, "edited", **columns)
    if body.enabled not in (None, webhook.enabled):
        webhook = await (endpoints.enable if body.enabled else endpoints.disable)(webhook.id)
    return json_bodies.json_response(WebhookRecord.model_validate(webhook))


@blueprint.delete("/<uuid:id>")
@policy(Policy.WEBHOOKS)
async def delete_webhook(id: UUID) -> Response:
    """Remove a webhook and its deliveries. Waiting deliveries are not sent."""
    await endpoints.remove(id)
    return Response(status=204)


@blueprint.post("/<uuid:id>/rotate-secret")
@policy(Policy.WEBHOOKS)
@document_response(CreatedWebhook)
@document_response(Problem, 409)
async def rotate_webhook_secret(id: UUID) -> Response:
    """Create a new secret.

    For 24 hours requests are also signed with the former secret. Secrets can be replaced four times
    in that time.
    """
    return _with_secret(await endpoints.rotate_secret(id), 200)


@blueprint.post("/<uuid:id>/test")
@policy(Policy.WEBHOOKS)
@document_response(DeliveryRecord, 202)
@document_response(Problem, 409)
async def test_webhook(id: UUID) -> Response:
    """Send an event of the type `webhook.test`, without data."""
    return _queued(await endpoints.send_test(id))


@blueprint.get("/<uuid:id>/deliveries")
@policy(Policy.WEBHOOKS)
@document_querystring(DeliveriesQuery)
@document_response(DeliveryList)
async def list_deliveries(id: UUID) -> Response:
    """List the deliveries of a webhook in the last 30 days, the newest first."""
    webhook = await endpoints.get(id)
    query = validated_query(DeliveriesQuery, request.args)
    page, next_cursor = await endpoints.read_deliveries(
        webhook.id, limit=query.limit, before=query.cursor
    )
    return json_bodies.json_response(DeliveryList(deliveries=page, next_cursor=next_cursor))


@blueprint.post("/<uuid:id>/deliveries/<int:delivery_id>/redeliver")
@policy(Policy.WEBHOOKS)
@document_response(DeliveryRecord, 202)
@document_response(Problem, 409)
async def redeliver(id: UUID, delivery_id: int) -> Response:
    """Queue an event again, with the same id."""
    return _queued(await endpoints.redeliver(id, delivery_id))


def _with_secret(webhook: Webhook, status: int) -> Response:
    created = CreatedWebhook.model_validate(webhook)
    return json_bodies.json_response(created, status, cache_control="no-store")


def _queued(delivery: WebhookDelivery) -> Response:
    return json_bodies.json_response(DeliveryRecord.model_validate(delivery), 202)
