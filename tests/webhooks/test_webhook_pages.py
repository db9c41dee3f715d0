"""The pages of webhooks: made, tested, looked at and sent again by people."""

import html
import json
import re
from typing import Any

import pytest
from api_client import Client, answered
from page_rows import READY, make_row
from quart import Quart
from signed_in import Sender, send_fields, text_of
from webhook_receiver import SETTINGS, receiving, send_due

from portal.database.connection import transaction
from portal.events.log import EventType, record_outcome
from portal.features.webhooks import endpoints
from portal.features.webhooks.pages import EVENT_WORDS


def shape(value: Any) -> Any:
    """The members of a JSON value with their types."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    return type(value)


pytestmark = pytest.mark.shared_app(**SETTINGS)


async def test_webhook_is_made_tested_and_sent_again(app: Quart, anyone: Sender) -> None:
    config = app.extensions["portal"].config
    async with receiving() as receiver:
        receiver.status = 503
        receiver.body = b"<b>Not now</b>"
        form = {"url": receiver.url, "events": ["video.ready", "video.failed"]}
        text = await text_of(await send_fields(anyone, "/webhooks", **form))
        assert re.search("whsec_[A-Za-z0-9+/=]{44}", text)
        [address] = set(re.findall("/webhooks/[0-9a-f-]{36}", text))
        assert "whsec_" not in await text_of(await anyone.get(address))
        assert (await anyone.post(f"{address}/test")).status_code == 303
        await send_due(config)
        page = await text_of(await anyone.get(address))
        expected = ("Failing since", "Status 503", "&lt;b&gt;Not now&lt;/b&gt;", "webhook.test")
        for words in (*expected, "webhook-signature: v1,"):
            assert words in page
        receiver.status = 204
        [again] = re.findall('action="(/webhooks/[^"]+/redeliver)"', page)
        assert (await anyone.post(again)).status_code == 303
        await send_due(config)
    assert "Delivered" in await text_of(await anyone.get(address))
    changed = {"url": "https://example.org/other", "events": ["video.deleted"]}
    assert (await send_fields(anyone, address, **changed)).status_code == 303
    page = await text_of(await anyone.get(address))
    assert re.search("https://example.org/other</bdi></strong>\\s*<span>video.deleted</span>", page)
    assert (await anyone.post(f"{address}/disable")).status_code == 303
    assert "Someone disabled this webhook." in await text_of(await anyone.get(address))
    assert (await anyone.post(f"{address}/test")).status_code == 409
    assert (await anyone.post(f"{address}/remove")).headers["Location"] == "/webhooks?done=remove"
    assert (await anyone.get(address)).status_code == 404


async def test_example_has_the_members_of_an_event_and_each_type_is_explained(
    client: Client,
) -> None:
    video = await make_row(**READY)
    async with transaction():
        await record_outcome(EventType.READY, video.id)
    [event] = (await answered(await client.get("/api/events")))["events"]
    text = await text_of(await client.get("/webhooks"))
    example = json.loads(
        html.unescape(text.partition("<pre")[2].partition("<code>")[2].partition("</code>")[0])
    )
    assert shape(example) == shape(event)
    assert set(EVENT_WORDS) == set(EventType)
    for words in EVENT_WORDS.values():
        assert words in html.unescape(text)


async def test_forms_show_faults_and_keep_typed_values(anyone: Sender) -> None:
    webhook = await endpoints.make("https://example.org/", ["video.ready"], account_id=None)
    for path in ("/webhooks", f"/webhooks/{webhook.id}"):
        response = await send_fields(anyone, path, url="https://10.0.0.1/", events=[])
        page = await text_of(response)
        assert response.status_code == 422
        for words in ('value="https://10.0.0.1/"', "OUTGOING_NETWORKS", "Choose at least one."):
            assert words in page
    assert (await endpoints.get(webhook.id)).url == "https://example.org/"
