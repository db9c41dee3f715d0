"""Webhooks are sent each event, signed, until it is received or was tried often enough."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from api_client import Client, answered, metadata, problem, published, rows, uploaded
from http_server import make_certificate
from page_rows import READY, make_row
from quart import Quart
from running_portal import until
from signed_in import make_account, make_video, program, token_of
from standardwebhooks import Webhook
from webhook_receiver import SETTINGS, add_webhook, deliveries, receiving, send_due, sending_worker

from portal.database.account_models import Account, Role
from portal.database.connection import execute, transaction
from portal.database.event_models import WebhookDelivery
from portal.database.models import Visibility
from portal.events.log import EventType, record_outcome
from portal.features.deletion import service as deletion
from portal.features.webhooks import sending
from portal.features.webhooks.endpoints import TEST, forget_old
from portal.http.composition import WebContext
from portal.queue.deliveries import DELIVERY, enqueue_delivery

pytestmark = pytest.mark.shared_app(**SETTINGS)

WAITING = "SELECT lock FROM procrastinate_jobs WHERE status = 'todo' AND queue_name = 'webhooks'"


async def test_events_arrive_signed_and_as_they_are_listed(
    client: Client, resources: WebContext
) -> None:
    async with receiving() as receiver, receiving() as other:
        webhook = await add_webhook(client, receiver.url, *EventType)
        await add_webhook(client, other.url, "video.deleted")
        video = await make_row(**READY)
        async with transaction():
            await record_outcome(EventType.READY, video.id)
        await send_due(resources.config)
        listed = (await answered(await client.get("/api/events")))["events"]
        await deletion.delete_undoably(video.id)
        await send_due(resources.config)
        listed += (await answered(await client.get("/api/events")))["events"]
        [deleted] = other.events
        received = sorted(receiver.events, key=lambda event: int(event["sequence"]))
    assert received == listed
    assert received[0]["data"]["playbackUrl"].startswith(resources.config.public_url)
    assert deleted == listed[1]
    for headers, body in receiver.requests:
        assert Webhook(webhook["secret"]).verify(body, dict(headers))["id"] == headers["webhook-id"]
    newest, oldest = await deliveries(client, webhook)
    assert {newest["eventId"], oldest["eventId"]} == {event["id"] for event in listed}
    assert (newest["state"], newest["status"], newest["tries"]) == ("delivered", 200, 1)


async def test_private_videos_and_long_descriptions(client: Client, resources: WebContext) -> None:
    async with receiving() as receiver:
        await add_webhook(client, receiver.url)
        private = await make_row(**READY, visibility=Visibility.PRIVATE)
        async with transaction():
            await record_outcome(EventType.CREATED, private.id)
        body = metadata(await uploaded(client), description='"' + "😀" * 4999)
        long = await answered(await client.post("/api/videos", json=body), 201)
        await send_due(resources.config)
    by_id = {event["data"]["id"]: event["data"] for event in receiver.events}
    assert by_id[str(private.id)]["playbackUrl"] == ""
    assert by_id[long["id"]]["tags"] == long["tags"]
    shortened = by_id[long["id"]]["description"].removesuffix("…")
    assert 1000 < len(shortened) < 5000
    assert long["description"].startswith(shortened)
    assert all(len(text.encode()) < 20_001 for _, text in receiver.requests)


@pytest.mark.parametrize("status", [301, 404, 500])
async def test_failure_is_tried_again_nine_times(
    status: int, client: Client, resources: WebContext
) -> None:
    async with receiving() as receiver:
        receiver.status = status
        receiver.body = b"No.\0" * 50_000
        receiver.headers = {"Location": receiver.url}
        webhook = await add_webhook(client, receiver.url)
        await published(client)
        await send_due(resources.config)
        [first] = await deliveries(client, webhook)
        for _ in range(9):
            await execute("UPDATE webhook_deliveries SET next_at = now()")
            await execute(
                "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'"
            )
            await send_due(resources.config)
        [ended] = await deliveries(client, webhook)
    assert (first["state"], first["status"]) == ("waiting", status)
    assert first["answer"] == "No." * 666 + "No"
    sent_at, next_at = (datetime.fromisoformat(first[name]) for name in ("sentAt", "nextAt"))
    assert 5 <= (next_at - sent_at).total_seconds() <= 6
    assert (ended["state"], ended["tries"], ended["nextAt"]) == ("failed", 10, None)
    assert {headers["webhook-id"] for headers, _ in receiver.requests} == {first["eventId"]}


async def test_without_an_answer_it_says_why(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_S", 3)
    certificate = make_certificate(tmp_path)
    async with receiving(is_open=False) as silent, receiving(certificate=certificate) as unknown:
        urls = (silent.url, "http://127.0.0.1:1/hook", unknown.url)
        webhooks = [await add_webhook(client, url) for url in urls]
        await published(client)
        await send_due(resources.config)
    expected = (
        "within 3 s",
        "could not be reached",
        "The server's certificate is not valid: self-signed certificate.",
    )
    for webhook, words in zip(webhooks, expected, strict=True):
        [delivery] = await deliveries(client, webhook)
        assert delivery["status"] is None
        assert words in delivery["error"], delivery["error"]
    assert unknown.requests == []


def test_pauses_grow_to_a_day_and_heed_the_receiver() -> None:
    now = datetime(2026, 5, 4, tzinfo=UTC)

    def pause_s(tries: int, retry_after: str = "") -> float:
        at = sending.next_try(tries, retry_after, now=now)
        assert at is not None
        return (at - now).total_seconds()

    for tries, least in enumerate(sending.PAUSES_S, start=1):
        assert least <= pause_s(tries) <= 1.2 * least
    assert sending.next_try(10, now=now) is None
    impossible = "Mon, 01 Jan 2024 00:00:00 +99999999999999999"
    assert sending.PAUSES_S[0] <= pause_s(1, impossible) <= 1.2 * sending.PAUSES_S[0]
    assert pause_s(1, "120") == 120
    assert pause_s(1, "Mon, 04 May 2026 00:10:00 GMT") == 600
    assert pause_s(1, "99999999") == 86_400
    for nothing in ("-1", "soon", "Mon, 04 May 2020 00:10:00 GMT", "9" * 5000):
        assert 5 <= pause_s(1, nothing) <= 6


async def test_webhook_that_is_gone_or_fails_for_five_days_is_disabled(
    client: Client, resources: WebContext
) -> None:
    async with receiving() as deleted, receiving() as failing:
        deleted.status = 410
        failing.status = 503
        webhooks = [await add_webhook(client, receiver.url) for receiver in (deleted, failing)]
        for _ in range(2):
            await published(client)
            await send_due(resources.config)
            await execute("UPDATE webhooks SET failing_since = failing_since - interval '6 days'")
        paths = [f"/api/webhooks/{webhook['id']}" for webhook in webhooks]
        records = [await answered(await client.get(path)) for path in paths]
    assert [record["enabled"] for record in records] == [False, False]
    assert [record["disabledReason"] for record in records] == ["gone", "failing"]
    assert [delivery["state"] for delivery in await deliveries(client, webhooks[0])] == ["failed"]
    again = await client.patch(f"/api/webhooks/{webhooks[1]['id']}", json={"enabled": True})
    assert (await answered(again))["failingSince"] is None


async def test_each_replaced_secret_signs_until_its_own_end(
    client: Client, resources: WebContext
) -> None:
    """A secret may be replaced several times within a day, but not too often."""
    async with receiving() as receiver:
        webhook = await add_webhook(client, receiver.url)
        rotation = f"/api/webhooks/{webhook['id']}/rotate-secret"
        secrets = [webhook["secret"]]
        for _ in range(4):
            secrets.append((await answered(await client.post(rotation)))["secret"])
        assert len(set(secrets)) == 5
        await problem(await client.post(rotation), 409, "too_many_secrets")
        await published(client)
        await send_due(resources.config)
        # The two oldest end.
        await execute(
            "UPDATE webhooks SET old_secrets = jsonb_set("
            "jsonb_set(old_secrets, '{0,until}', to_jsonb(now())), '{1,until}', to_jsonb(now()))"
        )
        await published(client)
        await send_due(resources.config)
        secrets.append((await answered(await client.post(rotation)))["secret"])
        await published(client)
        await send_due(resources.config)
    signing = [secrets[:5], secrets[2:5], secrets[2:]]
    for (headers, body), expected in zip(receiver.requests, signing, strict=True):
        signatures = headers["webhook-signature"].split()
        assert len(signatures) == len(expected)
        for secret in expected:
            assert Webhook(secret).verify(body, dict(headers))


async def test_slow_receiver_delays_no_other(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver never has more than four waiting jobs, however long they last."""
    monkeypatch.setattr(sending, "DELIVERY", replace(DELIVERY, longest_s=0.1))
    async with receiving(is_open=False) as slow, receiving() as quick:
        await add_webhook(client, slow.url)
        await add_webhook(client, quick.url)
        for number in range(20):
            video = await make_row(number)
            async with transaction():
                await record_outcome(EventType.CREATED, video.id)
        waiting = await rows(resources.config.database_url, WAITING)
        assert 0 < len(waiting) == len(set(waiting))
        async with sending_worker(resources.config):
            await until(lambda: len(quick.requests) == 20, timeout_s=10)
            assert 1 <= len(slow.requests) <= 4
            slow.gate.set()
            await until(lambda: len(slow.requests) == 20, timeout_s=10)


async def test_delivery_that_waits_for_a_day_holds_up_none_that_is_due_before(
    client: Client, resources: WebContext
) -> None:
    async with receiving() as receiver:
        webhook = await add_webhook(client, receiver.url)
        for pause_s in (86_400, 0.5):
            next_at = datetime.now(UTC) + timedelta(seconds=pause_s)
            columns = {"webhook_id": webhook["id"], "type": TEST, "lane": 0, "next_at": next_at}
            async with transaction():
                delivery = await WebhookDelivery.create(**columns)
                await enqueue_delivery(delivery.webhook_id, 0, at=next_at)
        async with sending_worker(resources.config):
            await until(lambda: receiver.requests, timeout_s=10)


async def test_account_is_told_of_what_it_would_find_in_the_library(
    app: Quart, olga: Account, resources: WebContext
) -> None:
    """Asked when it is sent: its role may have changed."""
    adam = await make_account("adam", Role.ADMIN)
    admin = program(app, await token_of(adam))
    owner = program(app, await token_of(olga))
    async with receiving() as receiver:
        webhook = await add_webhook(app.test_client(), receiver.url, sender=admin)
        public = await make_video(olga)
        private = await make_video(olga, visibility=Visibility.PRIVATE)
        for video in (public, private):
            async with transaction():
                await record_outcome(EventType.CREATED, video.id)
        await Account.filter(id=adam.id).update(role=Role.EDITOR)
        await send_due(resources.config)
        assert [event["data"]["id"] for event in receiver.events] == [str(public.id)]
        assert len(await deliveries(owner, webhook)) == 1
        await Account.filter(id=adam.id).update(is_disabled=True)
        async with transaction():
            await record_outcome(EventType.CREATED, public.id)
        await send_due(resources.config)
    assert len(receiver.requests) == 1


async def test_deliveries_are_kept_for_thirty_days(client: Client) -> None:
    webhook = await add_webhook(client, "https://example.org/hook")
    await published(client)
    for days, count in ((29, 1), (2, 0)):
        await execute(
            f"UPDATE webhook_deliveries SET created_at = created_at - interval '{days} d'"
        )
        await forget_old()
        assert len(await deliveries(client, webhook)) == count
