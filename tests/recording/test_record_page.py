"""Page that records: its headers, the links to it, and its settings."""

import pytest
from api_client import Client
from page_texts import page
from quart import Quart
from signed_in import Sender, make_account, signed_in

from portal.database.account_models import Account, Role

pytestmark = pytest.mark.shared_app


async def test_devices_and_the_encoder_of_sound_are_for_this_page_alone(client: Client) -> None:
    permissions, policy = await headers_of(client, "/record")
    assert permissions == (
        "camera=(self), microphone=(self), display-capture=(self), geolocation=()"
    )
    assert "script-src 'self' 'wasm-unsafe-eval';" in policy
    assert policy.endswith("worker-src 'self' blob:")
    permissions, policy = await headers_of(client, "/upload")
    assert permissions == "camera=(), microphone=(), display-capture=(), geolocation=()"
    assert "wasm" not in policy
    assert "worker-src" not in policy


async def headers_of(client: Client, path: str) -> tuple[str, str]:
    headers = (await client.get(path)).headers
    return headers["Permissions-Policy"], headers["Content-Security-Policy"]


async def test_people_who_may_publish_find_the_page(
    app: Quart, anyone: Sender, olga: Account
) -> None:
    for role, may_record in ((Role.CONTRIBUTOR, True), (Role.VIEWER, False)):
        sender = await signed_in(app, await make_account(role.value, role))
        assert ('href="/record"' in await page(sender, "/")) is may_record
        assert (await sender.get("/record")).status_code == (200 if may_record else 403)
    assert 'href="/record"' not in await page(anyone, "/")


async def test_recording_is_private_until_it_is_published(app: Quart, anyone: Sender) -> None:
    # On a portal without accounts, a private video has no viewers.
    assert 'data-first-visibility="unlisted"' in await page(anyone, "/record")
    olga = await signed_in(app, await make_account("olga"))
    assert 'data-first-visibility="private"' in await page(olga, "/record")


async def test_contributors_are_told_that_their_videos_wait(app: Quart, olga: Account) -> None:
    contributor = await signed_in(app, await make_account("connie", Role.CONTRIBUTOR))
    assert "Your videos wait until someone approves them." in await page(contributor, "/record")
