"""Whatever changes something leaves one line in the audit log: who, what, to what, and from where.

What is refused, and what changes nothing, leaves none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, metadata, put, rows, run_sql
from audit_lines import about, line, noted, told
from page_rows import READY, make_row
from quart import Quart, Response
from running_portal import LivePortal, create, final_status
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    make_video,
    person,
    program,
    renew_failures,
    send_fields,
    session_of,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import identities, invitations, people, tokens
from portal.accounts.audit import AuditAction
from portal.accounts.identities import Person
from portal.accounts.sessions import FREE_TRIES_OF_ACCOUNT
from portal.database.account_models import Account, ApiToken, OneTimeLink, Session
from portal.database.models import PosterRequest, Video
from portal.database.states import Role, VideoStatus
from portal.videos import playback_tokens

NEW = "five brown little geese"
pytestmark = pytest.mark.shared_app


async def the_line(change: Awaitable[Response], status: int) -> dict[str, Any]:
    """The one line that a request leaves which is answered with this status."""
    async with noted() as found:
        response = await change
        assert response.status_code == status, await text_of(response)
    assert len(found) == 1, found
    return told(found[0])


async def leaves_nothing(change: Awaitable[Response], status: int) -> None:
    async with noted() as found:
        response = await change
        assert response.status_code == status, await text_of(response)
    assert found == []


def stranger(app: Quart) -> Sender:
    """A browser in which nobody has signed in."""
    return Sender(app, OWN_PAGE)


async def test_signing_in_and_out(app: Quart, olga: Account) -> None:
    nobody = stranger(app)
    signing_in = try_to_sign_in(nobody, " Olga@Example.org ")
    assert await the_line(signing_in, 303) == line("account.signed_in", olga, **about(olga))
    sender = await signed_in(app, olga)
    out = await the_line(sender.post("/sign-out"), 303)
    assert out == line("account.signed_out", olga, **about(olga))
    await leaves_nothing(sender.post("/sign-out"), 303)
    await leaves_nothing(nobody.post("/sign-out"), 303)


async def test_failed_try_tells_what_was_tried_and_from_where(app: Quart, olga: Account) -> None:
    await people.disable((await make_account("dora", Role.VIEWER)).id, by=person(olga))
    for email in (olga.email, "dora@example.org", "nobody@example.org"):
        refused = await the_line(try_to_sign_in(stranger(app), email, "wrong"), 422)
        assert refused == line("account.sign_in_refused", None, objectName=email)


async def test_failed_try_of_who_is_slowed_down_leaves_nothing(app: Quart, olga: Account) -> None:
    """It is not looked at: only those that are can fail, and they are few."""
    nobody = stranger(app)
    for _ in range(FREE_TRIES_OF_ACCOUNT):
        await the_line(try_to_sign_in(nobody, olga.email, "wrong"), 422)
    await renew_failures()
    await leaves_nothing(try_to_sign_in(nobody, olga.email, "wrong"), 429)


async def test_new_password(owner: Sender, olga: Account) -> None:
    form = {"current": "wrong", "password": NEW}
    refused = await the_line(owner.post("/account/password", form=form), 422)
    assert refused == line("account.sign_in_refused", olga, objectName=olga.email)
    await leaves_nothing(owner.post("/account/password", form={"current": PASSWORD}), 422)
    form = {"current": PASSWORD, "password": NEW}
    changed = await the_line(owner.post("/account/password", form=form), 303)
    assert changed == line("account.password_changed", olga, **about(olga))


async def test_sessions_ended(owner: Sender, olga: Account) -> None:
    await leaves_nothing(owner.post("/account/sessions/end-others"), 303)
    for _ in range(3):
        await session_of(olga)
    own, *others = await Session.filter(account_id=olga.id).order_by("created_at")
    path = f"/account/sessions/{others[0].id}/end"
    ended = await the_line(owner.post(path), 303)
    assert ended == line(
        "session.ended", olga, objectId=str(others[0].id), objectName="olga@example.org"
    )
    await leaves_nothing(owner.post(path), 303)
    ended = await the_line(owner.post("/account/sessions/end-others"), 303)
    assert ended == line(
        "account.other_sessions_ended", olga, **about(olga), detail={"sessions": "2"}
    )
    ended = await the_line(owner.post(f"/account/sessions/{own.id}/end"), 303)
    assert ended["action"] == "session.ended"


async def test_invitations(app: Quart, owner: Sender, olga: Account) -> None:
    made = await the_line(owner.post("/people/invitations", form={"role": "editor"}), 200)
    link = await OneTimeLink.get()
    told_of = {"objectId": str(link.id), "objectName": "editor"}
    assert made == line("invitation.made", olga, **told_of)
    await leaves_nothing(owner.post("/people/invitations", form={"role": "king"}), 422)
    path = f"/people/invitations/{link.id}/revoke"
    assert await the_line(owner.post(path), 303) == line("invitation.revoked", olga, **told_of)
    await leaves_nothing(owner.post(path), 303)

    secret = await invitations.invite(Role.VIEWER, by=person(olga))
    link = await OneTimeLink.get()
    form = {"email": "vi@example.org", "password": "short"}
    await leaves_nothing(stranger(app).post(f"/welcome/{secret}", form=form), 422)
    form["password"] = NEW
    accepted = await the_line(stranger(app).post(f"/welcome/{secret}", form=form), 303)
    vi = await people.get("vi@example.org")
    assert accepted == line("invitation.accepted", vi, objectId=str(link.id), objectName="viewer")
    await leaves_nothing(stranger(app).post(f"/welcome/{secret}", form=form), 404)


async def test_link_for_a_password(
    app: Quart, owner: Sender, olga: Account, edith: Account
) -> None:
    """Who uses it acts, whoever is signed in in the browser."""
    made = await the_line(owner.post(f"/people/{edith.id}/reset"), 200)
    assert made == line("account.link_made", olga, **about(edith))
    secret = await invitations.offer_password(edith.id, by=person(olga))
    used = owner.post(f"/welcome/{secret}", form={"password": NEW})
    assert await the_line(used, 303) == line(
        "account.password_changed", edith, **about(edith), detail={"way": "link"}
    )


async def test_first_account(app: Quart) -> None:
    here = Sender(app, {**OWN_PAGE, "Host": "localhost"}, "127.0.0.1")
    form = {"email": "olga@example.org", "password": PASSWORD}
    added = await the_line(here.post("/set-up", form=form), 303)
    olga = await people.get("olga@example.org")
    assert added == line(
        "account.added", olga, **about(olga), address="127.0.0.1", detail={"role": "owner"}
    )


async def test_accounts_changed(owner: Sender, olga: Account, edith: Account) -> None:
    for path, form, action, detail in (
        ("role", {"role": "admin"}, "account.role_changed", {"was": "editor", "role": "admin"}),
        ("disable", {}, "account.disabled", {}),
        ("enable", {}, "account.enabled", {}),
    ):
        address = f"/people/{edith.id}/{path}"
        changed = await the_line(owner.post(address, form=form), 303)
        assert changed == line(action, olga, **about(edith), detail=detail)
        # As it is already.
        await leaves_nothing(owner.post(address, form=form), 303)
    for path in ("role", "disable", "remove"):
        await leaves_nothing(owner.post(f"/people/{olga.id}/{path}", form={"role": "editor"}), 409)
        await leaves_nothing(owner.post(f"/people/{uuid4()}/{path}", form={"role": "editor"}), 404)
    removed = await the_line(owner.post(f"/people/{edith.id}/remove"), 303)
    assert removed == line(
        "account.removed", olga, **about(edith), detail={"heir": "olga@example.org"}
    )


async def test_name(owner: Sender, olga: Account) -> None:
    renamed = await the_line(owner.post("/account/name", form={"name": "Olga"}), 303)
    assert renamed == line("account.name_changed", olga, **about(olga))
    await leaves_nothing(owner.post("/account/name", form={"name": " Olga "}), 303)
    await leaves_nothing(owner.post("/account/name", form={"name": "o" * 101}), 422)


async def test_api_tokens(owner: Sender, olga: Account) -> None:
    making = send_fields(
        owner, "/account/tokens", name="Nightly", scopes=["videos:write", "videos:read"]
    )
    made = await the_line(making, 200)
    token = await ApiToken.get()
    told_of = {"objectId": str(token.id), "objectName": "Nightly"}
    scopes = {"account": olga.email, "scopes": "videos:read, videos:write"}
    assert made == line("token.made", olga, **told_of, detail=scopes)
    await leaves_nothing(send_fields(owner, "/account/tokens", name="Nightly"), 422)
    path = f"/account/tokens/{token.id}/revoke"
    assert await the_line(owner.post(path), 303) == line(
        "token.revoked", olga, **told_of, detail={"account": olga.email}
    )
    await leaves_nothing(owner.post(path), 303)


async def uploaded(sender: Sender) -> str:
    """The key of a file that is in storage."""
    body = {"fileName": "a.mp4", "contentType": "video/mp4"}
    upload = await answered(await sender.post("/api/videos/presign", json=body))
    assert await put(upload["uploadUrl"], b"a video") == 200
    return str(upload["key"])


async def test_life_of_a_video_by_a_program(app: Quart, edith: Account) -> None:
    sender = program(app, await token_of(edith))
    token = await ApiToken.get()
    own = {"actorKind": "token", "tokenId": str(token.id), "tokenName": "a test"}
    key = await uploaded(sender)
    body = metadata(key)
    published = await the_line(sender.post("/api/videos", json=body), 201)
    video_id = str((await Video.get()).id)
    own["objectId"] = video_id
    assert published == line("video.published", edith, **own)
    # A creation that is sent again makes nothing.
    await leaves_nothing(sender.post("/api/videos", json=body), 200)

    path = f"/api/videos/{video_id}/metadata"
    described = {name: body[name] for name in ("title", "description", "categoryIds", "tags")}
    for changes, fields in (
        ({"title": "Anders"}, "title"),
        (
            {"description": "Kurz", "categoryIds": [1], "tags": ""},
            "description, category_ids, tags",
        ),
    ):
        described |= changes
        editing = sender.ask("PUT", path, json=described, headers={"If-Match": "*"})
        edited = await the_line(editing, 200)
        assert edited == line("video.edited", edith, **own, detail={"fields": fields})
        again = sender.ask("PUT", path, json=described, headers={"If-Match": "*"})
        await leaves_nothing(again, 200)

    deletion = f"/api/videos/{video_id}/deletion"
    deleted = await the_line(sender.post(deletion), 202)
    assert deleted == line("video.deleted", edith, **own, detail={"title": "Anders"})
    await leaves_nothing(sender.post(deletion), 404)


async def test_video_changed_in_a_browser(owner: Sender, olga: Account) -> None:
    failed = await make_row(status=VideoStatus.FAILED, failure_code="transcode_failed")
    retried = await the_line(owner.post(f"/videos/{failed.id}/retry"), 303)
    assert retried == line("video.retried", olga, objectId=str(failed.id))
    ready = await make_row(2, **READY)
    await leaves_nothing(owner.post(f"/videos/{ready.id}/retry"), 303)
    path = f"/videos/{ready.id}/poster"
    asked = await the_line(owner.post(path, form={"time": "3"}), 303)
    assert asked == line("video.poster_replaced", olga, objectId=str(ready.id))
    await leaves_nothing(owner.post(path, form={"time": "x"}), 422)
    deleted = await the_line(owner.post(f"/videos/{ready.id}/delete"), 303)
    assert deleted["action"] == "video.deleted"
    undo = {"action": "undo", "id": str(ready.id)}
    undone = await the_line(owner.post("/videos/selected", form=undo), 303)
    assert undone == line("video.restored", olga, objectId=str(ready.id))
    await leaves_nothing(owner.post("/videos/selected", form=undo), 303)
    await owner.post(f"/videos/{ready.id}/delete")
    await leaves_nothing(owner.post(f"/videos/{ready.id}/delete"), 303)


async def test_who_sees_a_video(owner: Sender, olga: Account) -> None:
    video = await make_row(**READY)
    own = {"objectId": str(video.id)}
    path = f"/api/videos/{video.id}/access"

    async def change(**changes: Any) -> Response:
        body = {"visibility": "private", "signedInOnly": False, "embedOrigins": [], **changes}
        return await owner.ask("PUT", path, json=body, headers={"If-Match": "*"})

    told = {"was": "public", "visibility": "private"}
    changed = await the_line(change(), 200)
    assert changed == line("video.access_changed", olga, **own, detail=told)
    changed = await the_line(change(signedInOnly=True, embedOrigins=["https://a.example"]), 200)
    told = {"fields": "signed_in_only, embed_origins"}
    assert changed == line("video.access_changed", olga, **own, detail=told)
    await leaves_nothing(change(signedInOnly=True, embedOrigins=["https://a.example"]), 200)
    await leaves_nothing(change(visibility="hidden"), 422)


async def test_playback_links(owner: Sender, olga: Account) -> None:
    video = await make_row(**READY)
    own = {"objectId": str(video.id)}
    path = f"/api/videos/{video.id}/playback-links"
    made = await the_line(owner.post(path, json={"expiresInSeconds": 60}), 201)
    expires = made["detail"]["expires"]
    assert made == line("video.link_made", olga, **own, detail={"expires": expires})
    [link] = (await answered(await owner.get(path)))["links"]
    assert datetime.fromisoformat(expires) == datetime.fromisoformat(link["expiresAt"])
    revoked = await the_line(owner.ask("DELETE", f"{path}/{link['id']}"), 204)
    assert revoked == line("video.link_revoked", olga, **own)
    await leaves_nothing(owner.ask("DELETE", f"{path}/{link['id']}"), 404)


async def test_keys_are_rotated_by_a_command(app: Quart) -> None:
    async with noted() as found:
        kid = await playback_tokens.rotate(revoke=True)
    [rotated] = found
    assert (rotated["action"], rotated["actorKind"]) == ("keys.rotated", "command")
    assert (rotated["objectId"], rotated["detail"]) == (kid, {"revoked": "yes"})


async def test_single_sign_on(app: Quart, olga: Account) -> None:
    issuer = "https://id.example"
    anna = Person(
        issuer=issuer,
        subject="1",
        email="anna@example.org",
        name="",
        role=Role.VIEWER,
        has_mapped_role=True,
    )
    here = {"device": "a test", "address": ADDRESS}
    async with noted() as found:
        await identities.sign_in(anna, **here)
    assert [it["action"] for it in found] == ["account.added", "account.bound", "account.signed_in"]
    assert {(it["actorEmail"], it["detail"]["provider"]) for it in found} == {(anna.email, issuer)}
    async with noted() as found:
        await identities.sign_in(replace(anna, role=Role.EDITOR), **here)
    assert [it["action"] for it in found] == ["account.role_changed", "account.signed_in"]
    assert found[0]["detail"] == {"was": "viewer", "role": "editor", "provider": issuer}
    account = await Account.get(email=anna.email)
    async with noted() as found:
        for _ in range(2):
            await identities.unbind(account.id)
    assert [(it["action"], it["objectName"]) for it in found] == [("account.unbound", anna.email)]


async def test_everyone_on_an_open_portal_is_anyone_from_an_address(app: Quart) -> None:
    """Whatever credentials are sent: nobody looks at them."""
    for sender in (Sender(app), program(app, "portal_wrong"), browser(app, "wrong")):
        body = metadata(await uploaded(sender))
        published = await the_line(sender.post("/api/videos", json=body), 201)
        video = await Video.all().order_by("-created_at").first()
        assert video is not None
        assert published == line("video.published", None, objectId=str(video.id))
        deleted = await the_line(sender.post(f"/api/videos/{video.id}/deletion"), 202)
        assert deleted["actorKind"] == "anyone"


async def test_client_address_is_that_of_the_limits(app: Quart, olga: Account) -> None:
    """As sessions have it: of IPv6 the network, and no header that a client could write."""
    sender = Sender(app, {**OWN_PAGE, "X-Forwarded-For": "203.0.113.9"}, "2001:db8::1:2:3:4")
    refused = await the_line(try_to_sign_in(sender, olga.email, "wrong"), 422)
    assert refused["address"] == "2001:db8::/64"


async def test_refused_requests_leave_nothing(app: Quart, olga: Account, edith: Account) -> None:
    video = await make_video(olga)
    for sender, status in ((await signed_in(app, edith), 403), (Sender(app, OWN_PAGE), 401)):
        for path in (f"/videos/{video.id}/delete", f"/people/{edith.id}/remove"):
            await leaves_nothing(sender.post(path), status)
    # From another site, with the cookie of the owner.
    foreign = await signed_in(app, olga)
    hostile = {"Sec-Fetch-Site": "cross-site"}
    await leaves_nothing(foreign.post(f"/videos/{video.id}/delete", headers=hostile), 403)


CHANGES: dict[str, Callable[[Account], Awaitable[Any]]] = {
    "/people/{edith}/role": lambda edith: Account.get(id=edith.id).values("role"),
    "/people/{edith}/disable": lambda edith: Account.get(id=edith.id).values("is_disabled"),
    "/people/{edith}/remove": lambda edith: Account.filter(id=edith.id).count(),
    "/people/{edith}/reset": lambda _: OneTimeLink.all().count(),
    "/people/invitations": lambda _: OneTimeLink.all().count(),
    "/account/tokens": lambda _: ApiToken.all().count(),
    "/account/name": lambda _: Account.all().order_by("email").values("name"),
    "/account/password": lambda _: Account.all().order_by("email").values("password_hash"),
    "/account/sessions/end-others": lambda _: Session.all().count(),
    "/sign-out": lambda _: Session.all().count(),
    "/videos/{video}/delete": lambda _: Video.present().count(),
    "/videos/{video}/poster": lambda _: PosterRequest.all().values("number"),
}
FORM = {
    "role": "viewer",
    "name": "a",
    "scopes": "admin",
    "time": "1",
    "current": PASSWORD,
    "password": NEW,
}


@pytest.mark.parametrize("path", CHANGES)
async def test_change_that_can_not_be_noted_is_not_made(
    app: Quart, owner: Sender, olga: Account, edith: Account, path: str
) -> None:
    await session_of(olga)
    video = await make_row(**READY, owner_id=olga.id)
    address = path.format(edith=edith.id, video=video.id)
    before = str(await CHANGES[path](edith))
    database_url = app.extensions["portal"].config.database_url
    await run_sql(database_url, "ALTER TABLE audit_events RENAME TO away")
    try:
        refused = await owner.post(address, form=FORM)
    finally:
        await run_sql(database_url, "ALTER TABLE away RENAME TO audit_events")
    assert refused.status_code == 500
    assert str(await CHANGES[path](edith)) == before
    # The same form changes something when it can be noted.
    assert (await owner.post(address, form=FORM)).status_code in (200, 303)
    assert str(await CHANGES[path](edith)) != before


async def test_nothing_begins_that_can_not_be_noted(app: Quart, olga: Account) -> None:
    """Neither a video with its job, nor a session, nor an account by an invitation."""
    sender = program(app, await token_of(olga))
    body, link = (
        metadata(await uploaded(sender)),
        await invitations.invite(Role.VIEWER, by=person(olga)),
    )
    form = {"email": "vi@example.org", "password": NEW}
    changes = (
        lambda: sender.post("/api/videos", json=body),
        lambda: try_to_sign_in(stranger(app), olga.email),
        lambda: stranger(app).post(f"/welcome/{link}", form=form),
    )
    database_url = app.extensions["portal"].config.database_url
    await run_sql(database_url, "ALTER TABLE audit_events RENAME TO away")
    try:
        assert [(await change()).status_code for change in changes] == [500] * 3
    finally:
        await run_sql(database_url, "ALTER TABLE away RENAME TO audit_events")
    state = await Video.all().count(), await Session.all().count(), await Account.all().count()
    assert state == (0, 0, 1)
    # Nothing of it is half done: all can be tried again.
    assert [(await change()).status_code for change in changes] == [201, 303, 303]


BROKEN = {
    "/people/{edith}/remove": "accounts",
    "/people/{edith}/disable": "accounts",
    "/account/tokens": "api_tokens",
    "/people/invitations": "one_time_links",
    "/videos/{video}/delete": "videos",
    "/videos/{video}/edit": "videos",
}
# Fails when the transaction is about to be committed, after all that was written in it.
LATE_FAULT = """
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a late fault'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON {table}
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()
"""


@pytest.mark.parametrize("path", BROKEN)
async def test_change_that_is_rolled_back_leaves_no_line(
    app: Quart, owner: Sender, olga: Account, edith: Account, path: str
) -> None:
    video = await make_row(**READY, owner_id=olga.id)
    address = path.format(edith=edith.id, video=video.id)
    form = {**FORM, "title": "Neu", "description": "", "categoryIds": "1"}
    form |= {"base.title": video.title, "base.categoryIds": "1"}
    database_url = app.extensions["portal"].config.database_url
    await run_sql(database_url, LATE_FAULT.format(table=BROKEN[path]))
    try:
        await leaves_nothing(owner.post(address, form=form), 500)
    finally:
        await run_sql(database_url, "DROP FUNCTION late CASCADE")
    async with noted() as found:
        assert (await owner.post(address, form=form)).status_code in (200, 303)
    assert len(found) == 1


async def test_of_many_who_do_the_same_at_once_one_leaves_a_line(
    app: Quart, owner: Sender, olga: Account, edith: Account
) -> None:
    await tokens.create(olga.id, name="a", scopes=["admin"])
    token, video = await ApiToken.get(), await make_video(olga)
    for path in (
        f"/account/tokens/{token.id}/revoke",
        f"/videos/{video.id}/delete",
        f"/people/{edith.id}/disable",
        f"/people/{edith.id}/remove",
    ):
        async with noted() as found:
            await asyncio.gather(*(owner.post(path) for _ in range(8)))
        assert len(found) == 1, path


async def test_workers_leave_no_lines(live_portal: LivePortal, short_video: Path) -> None:
    """A video that is published and transcoded: one line, of who published it."""
    created = await create(live_portal.base_url, short_video)
    assert await final_status(live_portal.base_url, created["id"]) == "ready"
    query = "SELECT action, actor_kind, address FROM audit_events WHERE object_id = %s"
    found = await rows(live_portal.environ["DATABASE_URL"], query, created["id"])
    assert found == [("video.published", "anyone", "127.0.0.1")]
    query = "SELECT count(*) FROM audit_events WHERE actor_kind = 'command'"
    assert await rows(live_portal.environ["DATABASE_URL"], query) == [(0,)]


def test_every_action_that_can_be_noted_is_met_by_a_test() -> None:
    """So that one which nobody tests is not forgotten."""
    files = Path(__file__).parents[1].rglob("*.py")
    text = "".join(it.read_text(encoding="utf-8") for it in files)
    assert [it for it in AuditAction if f'"{it}"' not in text] == []
