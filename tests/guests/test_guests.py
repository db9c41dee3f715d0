"""Guests: a personal link, confirmed by a code, shows what is shared with an address."""

import asyncio
import re
from typing import Any

import pytest
from api_client import answered
from page_texts import page, words_of
from playable_videos import ready_video
from quart import Quart, Response
from signed_in import OWN_PAGE, Sender, make_account, pass_time, send_fields, signed_in, text_of

from portal.accounts import groups, guests
from portal.database.account_models import Account, Guest, Role
from portal.database.connection import execute, fetch_rows
from portal.database.models import Video
from portal.http.cookies import GUESTS

pytestmark = pytest.mark.shared_app
EMAIL = "gina@example.org"


async def share(sender: Sender, video: Video, *shares: dict[str, Any]) -> dict[str, Any]:
    body = {"visibility": "private", "signedInOnly": False, "embedOrigins": [], "shares": shares}
    address = f"/api/videos/{video.id}/access"
    saved = await sender.ask("PUT", address, json=body, headers={"If-Match": "*"})
    access: dict[str, Any] = await answered(saved)
    return access


async def invite(sender: Sender, video: Video) -> dict[str, Any]:
    access = await share(sender, video, {"kind": "guest", "name": EMAIL, "right": "watch"})
    [invitation] = access["invitations"]
    assert [access_share["kind"] for access_share in access["shares"]] == ["guest"]
    path = re.sub("^https?://[^/]+", "", invitation["url"])
    return {**invitation, "path": path}


async def confirm(sender: Sender, invitation: dict[str, Any], code: str = "") -> Response:
    return await send_fields(sender, invitation["path"], code=code or invitation["code"])


def browser_of(response: Response, sender: Sender) -> Sender:
    [cookie] = response.headers.getlist("Set-Cookie")
    assert "HttpOnly" in cookie
    return Sender(sender.app, {**OWN_PAGE, "Cookie": cookie.partition(";")[0]})


async def test_first_browser_that_confirms_the_link_is_the_guests(
    editor: Sender, edith: Account, anyone: Sender
) -> None:
    video = await ready_video(edith, visibility="private")
    other = await ready_video(edith, visibility="private")
    invitation = await invite(editor, video)
    assert EMAIL in words_of(await page(anyone, invitation["path"]))
    # Spaces and signs between the digits are typed by people.
    code = " ".join(invitation["code"])
    response = await confirm(anyone, invitation, code)
    assert (response.status_code, response.location) == (303, "/?whose=shared")
    guest = browser_of(response, anyone)
    assert f"/videos/{video.id}" in await page(guest, "/?whose=shared")
    opened = await guest.get(f"/videos/{video.id}")
    assert opened.status_code == 200
    assert opened.headers["Cache-Control"] == "private, no-store"
    assert (await guest.get(f"/videos/{other.id}")).status_code == 404
    assert (await guest.get(f"/videos/{video.id}/edit")).status_code in (303, 401)
    assert (await guest.get(invitation["path"])).location == "/?whose=shared"
    # The link is of no use to anyone else, and nothing of it is stored.
    for answer in (await anyone.get(invitation["path"]), await confirm(anyone, invitation)):
        assert answer.status_code == 404
    [row] = await fetch_rows("SELECT guests::text AS stored FROM guests")
    assert invitation["id"] in row["stored"]
    assert invitation["code"] not in row["stored"]
    assert invitation["path"].rpartition("/")[2] not in row["stored"]
    # Taken off the list, the guest sees nothing from the next request on.
    await share(editor, video)
    assert (await guest.get(f"/videos/{video.id}")).status_code == 404


async def test_two_browsers_can_not_both_confirm(
    editor: Sender, edith: Account, anyone: Sender
) -> None:
    invitation = await invite(editor, await ready_video(edith, visibility="private"))
    answers = await asyncio.gather(*(confirm(anyone, invitation) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [303, 404, 404, 404, 404]


async def test_codes_can_not_be_guessed(editor: Sender, edith: Account, anyone: Sender) -> None:
    invitation = await invite(editor, await ready_video(edith, visibility="private"))
    for _ in range(guests.FREE_TRIES):
        response = await confirm(anyone, invitation, "1")
        assert response.status_code == 422
        assert "This code is wrong" in words_of(await text_of(response))
    assert (await confirm(anyone, invitation)).status_code == 429
    await pass_time(2)
    assert (await confirm(anyone, invitation)).status_code == 303


async def test_new_link_replaces_the_browser(
    app: Quart, editor: Sender, edith: Account, anyone: Sender
) -> None:
    video = await ready_video(edith, visibility="private")
    invitation = await invite(editor, video)
    guest = browser_of(await confirm(anyone, invitation), anyone)
    path = f"/videos/{video.id}/access/guests/{invitation['id']}"
    text = await text_of(await editor.post(path))
    [url] = re.findall(r'value="[^"]*(/welcome/guest/[^"]+)"', text)
    [code] = re.findall(r'value="(\d{8})"', text)
    assert (await guest.get(f"/videos/{video.id}")).status_code == 404
    assert (await confirm(anyone, invitation)).status_code == 404
    guest = browser_of(await send_fields(anyone, url, code=code), anyone)
    assert (await guest.get(f"/videos/{video.id}")).status_code == 200
    # Somebody who can edit only one of the guest's videos would see the others by a new link.
    eve = await make_account("eve", Role.EDITOR)
    own = await ready_video(eve, visibility="private")
    eves = await signed_in(app, eve)
    await share(eves, own, {"id": invitation["id"], "right": "watch"})
    refused = await eves.post(f"/videos/{own.id}/access/guests/{invitation['id']}")
    assert "also watches videos that you can't edit" in words_of(await text_of(refused))
    assert (await guest.get(f"/videos/{video.id}")).status_code == 200


async def test_account_with_the_verified_address_is_the_guest(
    app: Quart, editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, visibility="private")
    await invite(editor, video)
    gina = await make_account("gina", Role.VIEWER)
    sender = await signed_in(app, gina)
    assert (await sender.get(f"/videos/{video.id}")).status_code == 200
    # An account whose address was never verified may belong to somebody else.
    await Account.filter(id=gina.id).update(email_unverified=True)
    assert (await sender.get(f"/videos/{video.id}")).status_code == 404


async def test_form_invites_addresses_without_an_account(owner: Sender, edith: Account) -> None:
    video = await ready_video(edith, visibility="private")
    await groups.create("Choir")
    fields = {"base.visibility": "private", "visibility": "private", "addedRight": "watch"}
    path = f"/videos/{video.id}/access"
    added = {"added": f"choir, {EMAIL}"}
    refused = await send_fields(owner, f"{path}/panel", **fields, **added)
    assert refused.status_code == 422
    text = await text_of(await send_fields(owner, path, **fields, **added, invite="on"))
    assert "Personal link for gina@example.org" in words_of(text)
    assert re.search(r'value="[^"]*/welcome/guest/[^"]+"', text)
    assert len((await Video.get(id=video.id)).admitted_ids) == 2
    assert "/welcome/guest/" not in await page(owner, f"{path}/panel")


async def test_guest_without_videos_is_deleted(editor: Sender, edith: Account) -> None:
    shared, unused = [await ready_video(edith, visibility="private") for _ in range(2)]
    for video in (shared, unused):
        await invite(editor, video)
    await share(editor, unused)
    await execute("UPDATE guests SET created_at = now() - interval '2 days'")
    await guests.delete_unused()
    [guest] = await Guest.all()
    assert guest.id in (await Video.get(id=shared.id)).admitted_ids


async def test_browser_keeps_several_guests_and_ignores_rubbish(
    editor: Sender, edith: Account, anyone: Sender
) -> None:
    videos = [await ready_video(edith, visibility="private") for _ in range(2)]
    guest = anyone
    for video in videos:
        guest = browser_of(await confirm(guest, await invite(editor, video)), guest)
    for video in videos:
        assert (await guest.get(f"/videos/{video.id}")).status_code == 200
    rubbish = Sender(anyone.app, {"Cookie": f"{GUESTS.plain_name}=..x.{'y' * 500}"})
    assert (await rubbish.get("/")).status_code == 200
