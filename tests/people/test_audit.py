"""Each change leaves one line in the audit log, in its transaction; admins read and export it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from api_client import answered, faults, metadata, problem, run_sql, uploaded
from audit_lines import lines
from page_rows import READY, change_video, make_row
from page_texts import words_of
from quart import Quart, Response
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    make_video,
    person,
    program,
    send_fields,
    session_of,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import guests, identities, invitations, people, tokens
from portal.database.account_models import (
    Account,
    ApiToken,
    Group,
    OneTimeLink,
    Role,
    Scope,
    Session,
)
from portal.database.connection import fetch_rows
from portal.database.event_models import Webhook
from portal.database.models import Video, VideoStatus
from portal.events.log import AuditAction
from portal.videos import playback_links

NEW = "five brown little geese"
pytestmark = pytest.mark.shared_app(feeds=True)


@asynccontextmanager
async def noted() -> AsyncIterator[list[dict[str, Any]]]:
    """The lines that are written inside, once it is left."""
    before = len(await lines())
    noted_lines = list[dict[str, Any]]()
    yield noted_lines
    noted_lines += (await lines())[before:]


@dataclass
class Recorder:
    """Checks the line, or that there is none, of each change; `recorded` has their actions."""

    recorded: set[str] = field(default_factory=set)

    async def expect(
        self, change: Awaitable[Response], status: int, action: str = "", **members: Any
    ) -> None:
        """One line with this action and members, or none without an action."""
        async with noted() as noted_lines:
            response = await change
            assert response.status_code == status, await text_of(response)
        assert [line["action"] for line in noted_lines] == [action] * bool(action)
        if action:
            self.recorded.add(action)
            assert noted_lines[0]["address"] == ADDRESS
            assert noted_lines[0].items() >= members.items()


async def test_each_action_leaves_one_line_and_refusals_none(
    app: Quart, olga: Account, edith: Account
) -> None:
    recorder = Recorder()
    await signs_in_and_out(recorder, app, olga)
    await manages_people(recorder, await signed_in(app, olga), olga, edith)
    await uses_links(recorder, app, olga)
    await changes_own_account(recorder, await signed_in(app, olga), olga)
    await changes_videos(recorder, program(app, await token_of(olga)), olga)
    await manages_webhooks(recorder, program(app, await token_of(olga)))
    await manages_groups(recorder, program(app, await token_of(olga)), olga)
    await manages_series(recorder, program(app, await token_of(olga)))
    await manages_hand_ins(recorder, await signed_in(app, olga))
    async with noted() as noted_lines:
        await playback_links.rotate(revoke=True)
        person = identities.Person(
            issuer="https://id.example",
            subject="1",
            email="anna@example.org",
            name="",
            role=Role.VIEWER,
            has_mapped_role=True,
            groups=frozenset(),
        )
        await identities.sign_in(person, device="", address=ADDRESS)
        await identities.unbind((await people.get(person.email)).id)
        link = await guests.invite("gina@example.org")
        await guests.confirm(link.secret, link.code, address=ADDRESS)
    actions = ["keys.rotated", "account.added", "account.bound", "account.signed_in"]
    actions += ["account.unbound", "guest.invited", "guest.confirmed"]
    assert [line["action"] for line in noted_lines] == actions
    recorder.recorded |= {line["action"] for line in noted_lines}
    assert recorder.recorded == set(AuditAction)


async def manages_series(recorder: Recorder, token: Sender) -> None:
    expect = recorder.expect
    actions = token.post("/api/series", json={"title": "Birds"})
    await expect(actions, 201, "series.made")
    [series] = (await answered(await token.get("/api/series")))["series"]
    path = f"/api/series/{series['id']}"
    any_version = {"If-Match": "*"}
    title = {"json": {"title": "Waders"}, "headers": any_version}
    about = {"objectId": series["id"]}
    await expect(token.ask("PATCH", path, **title), 200, "series.changed", **about)
    await expect(token.ask("PATCH", path, **title), 200)
    video = await make_video(None)
    videos = {"json": {"videoIds": [str(video.id)]}, "headers": any_version}
    changing = token.ask("PUT", f"{path}/videos", **videos)
    await expect(changing, 200, "series.videos_changed", **about)
    await expect(token.ask("PUT", f"{path}/videos", **videos), 200)
    removing = token.ask("DELETE", path, headers=any_version)
    await expect(removing, 204, "series.removed", **about)


async def manages_hand_ins(recorder: Recorder, owner: Sender) -> None:
    expect = recorder.expect
    form = {"name": "Essays", "days": "7", "maxFiles": "9", "categoryId": "5"}
    await expect(owner.post("/hand-ins", form={**form, "days": "0"}), 422)
    await expect(owner.post("/hand-ins", form=form), 200, "hand_in.made", objectName="Essays")
    [link] = await fetch_rows("SELECT id FROM hand_ins")
    path = f"/hand-ins/{link['id']}/revoke"
    about = {"objectId": str(link["id"]), "objectName": "Essays"}
    await expect(owner.post(path), 303, "hand_in.revoked", **about)
    await expect(owner.post(path), 303)


async def signs_in_and_out(recorder: Recorder, app: Quart, olga: Account) -> None:
    nobody = Sender(app, OWN_PAGE)
    expect = recorder.expect
    own = {"actorKind": "person", "actorEmail": olga.email, "objectName": olga.email}
    await expect(try_to_sign_in(nobody, " Olga@Example.org "), 303, "account.signed_in", **own)
    tried = {"actorKind": "anyone", "objectName": "nobody@example.org"}
    refused = "account.sign_in_refused"
    await expect(try_to_sign_in(nobody, "nobody@example.org"), 422, refused, **tried)
    # A password that was typed in the wrong place is not kept.
    await expect(try_to_sign_in(nobody, PASSWORD), 422, refused, objectName=None)
    owner = await signed_in(app, olga)
    await expect(owner.post("/sign-out"), 303, "account.signed_out", **own)
    await expect(owner.post("/sign-out"), 303)


async def manages_people(recorder: Recorder, owner: Sender, olga: Account, edith: Account) -> None:
    expect = recorder.expect
    path = f"/people/{edith.id}"
    about = {"actorEmail": olga.email, "objectId": str(edith.id), "objectName": edith.email}
    changed = {"was": "editor", "role": "admin"}
    for name, form, action, detail in (
        ("role", {"role": "admin"}, "account.role_changed", changed),
        ("disable", {}, "account.disabled", {}),
        ("enable", {}, "account.enabled", {}),
    ):
        await expect(owner.post(f"{path}/{name}", form=form), 303, action, **about, detail=detail)
        # The role is unchanged.
        await expect(owner.post(f"{path}/{name}", form=form), 303)
    await expect(owner.post(f"{path}/reset"), 200, "account.link_made", **about)
    await expect(owner.post(f"/people/{olga.id}/disable"), 409)
    await expect(owner.post(f"/people/{uuid4()}/disable"), 404)
    detail = {"heir": olga.email}
    await expect(owner.post(f"{path}/remove"), 303, "account.removed", **about, detail=detail)
    await expect(
        owner.post("/people/invitations", form={"role": "editor"}),
        200,
        "invitation.made",
        objectName="editor",
    )
    revocation = f"/people/invitations/{(await OneTimeLink.get()).id}/revoke"
    await expect(owner.post(revocation), 303, "invitation.revoked", objectName="editor")
    await expect(owner.post(revocation), 303)


async def uses_links(recorder: Recorder, app: Quart, olga: Account) -> None:
    """The person who uses a link is the actor."""
    nobody = Sender(app, OWN_PAGE)
    expect = recorder.expect
    link = await invitations.invite(Role.VIEWER, by=person(olga))
    form = {"email": "vi@example.org", "password": NEW}
    accepted = {"actorEmail": "vi@example.org", "objectName": "viewer"}
    await expect(nobody.post(f"/welcome/{link}", form={**form, "password": "short"}), 422)
    accepting = nobody.post(f"/welcome/{link}", form=form)
    await expect(accepting, 303, "invitation.accepted", **accepted)
    vi = await people.get("vi@example.org")
    link = await invitations.offer_password(vi.id, by=person(olga))
    chosen = {"actorEmail": vi.email, "detail": {"way": "link"}}
    choosing = nobody.post(f"/welcome/{link}", form=form)
    await expect(choosing, 303, "account.password_changed", **chosen)


async def changes_own_account(recorder: Recorder, owner: Sender, olga: Account) -> None:
    expect = recorder.expect
    await expect(owner.post("/account/name", form={"name": "Olga"}), 303, "account.name_changed")
    await expect(owner.post("/account/name", form={"name": " Olga "}), 303)
    making = send_fields(owner, "/account/tokens", name="Nightly", scopes=["videos:read"])
    detail = {"account": olga.email, "scopes": "videos:read"}
    await expect(making, 200, "token.made", objectName="Nightly", detail=detail)
    path = f"/account/tokens/{(await ApiToken.get()).id}/revoke"
    await expect(owner.post(path), 303, "token.revoked", objectName="Nightly")
    await expect(owner.post(path), 303)
    await expect(owner.post("/account/feeds"), 200, "feed_key.made", objectName=olga.email)
    path = "/account/feeds/revoke"
    await expect(owner.post(path), 303, "feed_key.revoked", objectName=olga.email)
    await expect(owner.post(path), 303)
    for _ in range(3):
        await session_of(olga)
    session = await Session.filter(account_id=olga.id).order_by("-created_at").first()
    assert session is not None
    path = f"/account/sessions/{session.id}/end"
    await expect(owner.post(path), 303, "session.ended", objectId=str(session.id))
    path = "/account/sessions/end-others"
    await expect(owner.post(path), 303, "account.other_sessions_ended", detail={"sessions": "4"})
    await expect(owner.post(path), 303)


async def changes_videos(recorder: Recorder, sender: Sender, olga: Account) -> None:
    expect = recorder.expect
    own = {"actorKind": "token", "actorEmail": olga.email, "tokenName": "a test"}
    body = metadata(await uploaded(sender))
    await expect(sender.post("/api/videos", json=body), 201, "video.published", **own)
    # A creation that is sent again makes nothing.
    await expect(sender.post("/api/videos", json=body), 200)
    video_id = str((await Video.get()).id)
    own["objectId"] = video_id
    path = f"/api/videos/{video_id}"
    anyway = {"If-Match": "*"}

    def edit() -> Awaitable[Response]:
        return sender.ask("PATCH", path, json={"title": "Anders"})

    await expect(edit(), 200, "video.edited", **own, detail={"fields": "title"})
    await expect(edit(), 200)
    access = {"visibility": "private", "signedInOnly": False, "embedOrigins": []}
    changing = sender.ask("PUT", f"{path}/access", json=access, headers=anyway)
    detail = {"was": "public", "visibility": "private"}
    await expect(changing, 200, "video.access_changed", **own, detail=detail)
    times = {"publishAt": None, "unpublishAt": "2030-01-01T00:00:00Z", "deleteAt": None}
    planning = sender.ask("PUT", f"{path}/schedule", json=times, headers=anyway)
    detail = {"unpublish_at": "2030-01-01T00:00:00.000000Z"}
    await expect(planning, 200, "video.schedule_changed", **own, detail=detail)
    as_it_is = {"evenLoudness": False}
    switching = sender.ask("PUT", f"{path}/loudness", json=as_it_is, headers=anyway)
    detail = {"even_loudness": "off"}
    await expect(switching, 200, "video.loudness_changed", **own, detail=detail)
    for former, state in (("waiting", "refused"), ("refused", "waiting"), ("waiting", "approved")):
        await change_video(video_id, approval=former)
        body = {"state": state, "reason": "Too loud"}
        action = "video.submitted" if state == "waiting" else f"video.{state}"
        await expect(sender.ask("PUT", f"{path}/approval", json=body), 200, action, **own)
    await expect(sender.ask("DELETE", path), 202, "video.deleted", **own)
    await expect(sender.ask("DELETE", path), 204)

    owner = await signed_in(sender.app, olga)
    failed = await make_row(status=VideoStatus.FAILED, failure_code="transcode_failed")
    await expect(owner.post(f"/videos/{failed.id}/retry"), 303, "video.retried")
    ready = await make_row(2, **READY)
    links = f"/api/videos/{ready.id}/playback-links"
    linking = owner.post(f"{links}", json={"expiresInSeconds": 60})
    await expect(linking, 201, "video.link_made")
    [link] = (await answered(await owner.get(f"{links}")))["links"]
    revoking = owner.ask("DELETE", f"{links}/{link['id']}")
    await expect(revoking, 204, "video.link_revoked")
    poster = f"/videos/{ready.id}/poster"
    await expect(owner.post(poster, form={"time": "3"}), 303, "video.poster_replaced")
    await expect(owner.post(poster, form={"time": "x"}), 422)
    captions = f"/videos/{ready.id}/captions"
    language_detail = {"detail": {"language": "en"}}
    adding = owner.post(captions, form={"language": "English"})
    await expect(adding, 303, "video.captions_changed", **language_detail)
    await expect(owner.post(captions, form={"language": "English"}), 303)
    chapters = {"chapters": [{"title": "Dawn", "startSeconds": 0}]}
    saving = owner.ask("PUT", f"/api/videos/{ready.id}/chapters", json=chapters)
    await expect(saving, 200, "video.chapters_changed")
    cuts = f"/api/videos/{ready.id}/cuts"
    keep = {"keep": [{"startSeconds": 0, "endSeconds": 9}]}
    await expect(owner.ask("PUT", cuts, json=keep), 202, "video.cut")
    await expect(owner.ask("PUT", cuts, json=keep), 202)
    replacement = f"/api/videos/{ready.id}/replacement"
    new_file = {"key": await uploaded(sender), "fileName": "new.mp4"}
    await expect(owner.post(replacement, json=new_file), 202, "video.replacement_begun")
    await expect(owner.post(replacement, json=new_file), 202)
    await expect(owner.ask("DELETE", replacement), 204, "video.replacement_withdrawn")
    await expect(owner.ask("DELETE", replacement), 404)
    await owner.post(f"/videos/{ready.id}/delete")
    undo = {"action": "undo", "id": str(ready.id)}
    undoing = owner.post("/videos/selected", form=undo)
    await expect(undoing, 303, "video.restored", objectId=str(ready.id))
    foreign = {"Sec-Fetch-Site": "cross-site"}
    await expect(owner.post(f"/videos/{ready.id}/delete", headers=foreign), 403)


async def manages_webhooks(recorder: Recorder, sender: Sender) -> None:
    expect = recorder.expect
    path = "/api/webhooks"
    body = {"url": "https://hooks.example/a-secret", "events": ["video.ready"]}
    own = {"objectName": "hooks.example", "detail": {}}
    await expect(sender.post(path, json=body), 201, "webhook.made", **own)
    path += f"/{(await Webhook.get()).id}"
    changed = {**own, "detail": {"what": "disabled: person"}}
    disabling = {"enabled": False}
    await expect(sender.ask("PATCH", path, json=disabling), 200, "webhook.changed", **changed)
    await expect(sender.ask("PATCH", path, json=disabling), 200)
    await expect(sender.ask("DELETE", path), 204, "webhook.removed", **own)
    await expect(sender.ask("DELETE", path), 404)


async def manages_groups(recorder: Recorder, sender: Sender, olga: Account) -> None:
    expect = recorder.expect
    path = "/api/groups"
    own = {"objectName": "Staff", "detail": {}}
    await expect(sender.post(path, json={"name": "Staff"}), 201, "group.made", **own)
    await expect(sender.post(path, json={"name": "Staff"}), 409)
    path += f"/{(await Group.get()).id}"
    change = {"name": "Crew"}
    own["objectName"] = "Crew"
    await expect(sender.ask("PATCH", path, json=change), 200, "group.changed", **own)
    await expect(sender.ask("PATCH", path, json=change), 200)
    members = {"json": {"emails": [olga.email]}, "headers": {"If-Match": "*"}}
    changed = {**own, "detail": {"added": olga.email, "removed": ""}}
    replacing = sender.ask("PUT", f"{path}/members", **members)
    await expect(replacing, 200, "group.members_changed", **changed)
    await expect(sender.ask("PUT", f"{path}/members", **members), 200)
    await expect(sender.ask("DELETE", path), 204, "group.removed", **own)
    await expect(sender.ask("DELETE", path), 404)


CHANGES: dict[str, Callable[[Account], Awaitable[Any]]] = {
    "/people/{edith}/remove": lambda edith: Account.filter(id=edith.id).count(),
    "/account/tokens": lambda _: ApiToken.all().count(),
    "/videos/{video}/delete": lambda _: Video.present().count(),
}
# Fails when the transaction is about to be committed, after all that was written in it.
LATE_FAULT = """
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a late fault'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON events
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()
"""


@pytest.mark.parametrize("path", CHANGES)
async def test_change_and_line_are_committed_together_and_once(
    app: Quart, owner: Sender, olga: Account, edith: Account, path: str
) -> None:
    """Neither is there when the transaction fails; of eight at once one makes the change."""
    video = await make_video(olga)
    address = path.format(edith=edith.id, video=video.id)
    form = {"name": "a", "scopes": "admin"}
    before = await CHANGES[path](edith)
    database_url = app.extensions["portal"].config.database_url
    await run_sql(database_url, LATE_FAULT)
    try:
        async with noted() as noted_lines:
            assert (await owner.post(address, form=form)).status_code == 500
    finally:
        await run_sql(database_url, "DROP FUNCTION late CASCADE")
    assert noted_lines == []
    assert await CHANGES[path](edith) == before
    many = 1 if path == "/account/tokens" else 8
    async with noted() as noted_lines:
        await asyncio.gather(*(owner.post(address, form=form) for _ in range(many)))
    assert len(noted_lines) == 1
    assert await CHANGES[path](edith) != before


async def test_address_is_the_network_and_no_header_that_a_client_could_write(
    app: Quart, olga: Account
) -> None:
    sender = Sender(app, {**OWN_PAGE, "X-Forwarded-For": "203.0.113.9"}, "2001:db8::1:2:3:4")
    await try_to_sign_in(sender, olga.email, "wrong")
    assert (await lines())[-1]["address"] == "2001:db8::/64"


async def test_errors_of_the_export_are_problem_documents(app: Quart, olga: Account) -> None:
    export = "/audit.jsonl"
    await problem(await Sender(app).get(export), 401, "not_signed_in")
    reader = program(app, await token_of(olga, [Scope.READ]))
    await problem(await reader.get(export), 403, "insufficient_scope")
    admin = program(app, await token_of(olga))
    await problem(await admin.post(export), 405, "method_not_allowed")
    messages = await faults(await admin.get(f"{export}?actoin=token.made&action=token.lost"))
    assert "`action`" in messages["/actoin"]
    assert messages["/action"].startswith("Choose 'account.signed_in', ")


async def test_page_shows_lines_finds_some_and_exports_them_all(
    app: Quart, owner: Sender, olga: Account
) -> None:
    """Names may contain line ends, quotes or marks that reverse direction."""
    evil = 'a\r\n{"id": 1}\u2028\x1b[2J\u202e"<b>'
    await tokens.create(olga.id, name=evil, scopes=["videos:read"])
    video = await make_row(**READY, title="Harbour at dawn")
    await owner.post(f"/videos/{video.id}/retry")
    await owner.post(f"/videos/{video.id}/poster", form={"time": "3"})
    await make_account("zoe", Role.VIEWER)
    text = await text_of(await owner.get("/audit"))
    plain = words_of(text.partition("<tbody>")[2])
    assert "olga@example.org video.poster_replaced Harbour at dawn" in plain
    assert "command account.added zoe@example.org role= viewer" in plain
    assert plain.index("zoe@example.org") < plain.index("Harbour at dawn"), "the newest first"
    assert [value for value in ("\x1b", "\u202e", "<b>") if value in text] == []
    for query, count in (
        ("person=OLGA@example.org", 1),
        ("object=Zoe@example.org&action=account.added", 1),
        ("action=mistyped&before=x", len(await lines())),
    ):
        text = await text_of(await owner.get(f"/audit?{query}"))
        assert text.partition("<tbody>")[2].count("<tr>") == count, query
    admin = await make_account("ada", Role.ADMIN)
    by_token = await program(app, await token_of(admin, [Scope.ADMIN])).get("/audit.jsonl")
    export = await owner.get("/audit.jsonl")
    assert await text_of(by_token) == await text_of(export)
    assert export.headers["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    assert [json.loads(line) for line in (await text_of(export)).splitlines()] == await lines()
    filters = "object=Zoe@example.org&action=account.added"
    [added] = (await text_of(await owner.get(f"/audit.jsonl?{filters}"))).splitlines()
    assert json.loads(added)["objectName"] == "zoe@example.org"
    await owner.post(f"/api/videos/{video.id}/playback-links", json={"expiresInSeconds": 60})
    [line, *_] = (await text_of(await owner.get("/audit"))).split("<tbody>")[1].split("</tr>")
    # When it was made and when it ends are shown by the same script, in the reader's time zone.
    assert line.count("<time datetime=") == line.count("data-local=") == 2
