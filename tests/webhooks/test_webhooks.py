"""Webhooks over HTTP: who administers makes, changes, tests and removes them."""

import pytest
from api_client import Client, answered, faults, problem, published
from jsonschema import validate
from standardwebhooks import Webhook
from webhook_receiver import SETTINGS, add_webhook, deliveries, receiving, send_due

from portal.http.composition import WebContext

pytestmark = pytest.mark.shared_app(**SETTINGS)

URL = "https://example.org/hook"
UNKNOWN = "5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b"


async def test_webhook_is_made_read_changed_and_removed(client: Client) -> None:
    created = await add_webhook(client, URL, "video.deleted", "video.created")
    assert Webhook(created.pop("secret"))
    address = f"/api/webhooks/{created['id']}"
    assert await answered(await client.get(address)) == created
    assert created["events"] == ["video.created", "video.deleted"]
    changed = await client.patch(address, json={"events": ["video.ready"], "enabled": False})
    expected = {**created, "events": ["video.ready"], "enabled": False, "disabledReason": "person"}
    assert await answered(changed) == expected
    assert await answered(await client.get("/api/webhooks")) == {"webhooks": [expected]}
    # No deliveries are created while the webhook is disabled.
    await published(client)
    assert await deliveries(client, created) == []
    await problem(await client.post(f"{address}/test"), 409, "webhook_disabled")
    assert (await client.delete(address)).status_code == 204
    for path in (address, f"/api/webhooks/{UNKNOWN}"):
        await problem(await client.get(path), 404, "webhook_not_found")


async def test_faults_of_a_webhook_are_named(client: Client) -> None:
    async def refused(**body: object) -> dict[str, str]:
        return await faults(await client.post("/api/webhooks", json=body))

    messages = await refused(url="https://10.0.0.1/hook", events=[])
    assert "OUTGOING_NETWORKS" in messages["/url"]
    assert messages["/events"] == "Choose at least one."
    assert set(await refused(url="nowhere", events=["video.lost"])) == {"/url", "/events/0"}
    assert set(await refused()) == {"/url", "/events"}
    webhook = await add_webhook(client, URL)
    response = await client.patch(f"/api/webhooks/{webhook['id']}", json={"url": "", "enabled": 1})
    assert set(await faults(response)) == {"/url", "/enabled"}
    for _ in range(49):
        await add_webhook(client, URL)
    response = await client.post("/api/webhooks", json={"url": URL, "events": ["video.ready"]})
    await problem(response, 409, "too_many_webhooks")


async def test_test_and_redelivery_are_sent_at_once(client: Client, resources: WebContext) -> None:
    async with receiving() as receiver:
        webhook = await add_webhook(client, receiver.url)
        address = f"/api/webhooks/{webhook['id']}"
        queued = await answered(await client.post(f"{address}/test"), 202)
        assert queued["state"] == "waiting"
        await send_due(resources.config)
        [event] = receiver.events
        assert event["id"] == queued["eventId"]
        operation = (await answered(await client.get("/api/openapi.json")))["webhooks"][
            "webhook.test"
        ]
        validate(event, operation["post"]["requestBody"]["content"]["application/json"]["schema"])
        again = f"{address}/deliveries/{queued['id']}/redeliver"
        assert (await answered(await client.post(again), 202))["tries"] == 0
        await send_due(resources.config)
        assert receiver.events == [event, event]
    assert (await client.post(f"{address}/test")).status_code == 202
    newest = await answered(await client.get(f"{address}/deliveries?limit=1"))
    cursor = f"cursor={newest['nextCursor']}"
    oldest = await answered(await client.get(f"{address}/deliveries?limit=1&{cursor}"))
    assert newest["deliveries"] + oldest["deliveries"] == await deliveries(client, webhook)
    assert oldest["nextCursor"] is None
    other = await add_webhook(client, URL)
    for path in (f"{other['id']}/deliveries/{queued['id']}", f"{webhook['id']}/deliveries/999"):
        response = await client.post(f"/api/webhooks/{path}/redeliver")
        await problem(response, 404, "webhook_not_found")
