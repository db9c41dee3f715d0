"""Attacks on the audit log: secrets that it might keep, lines that might be forged or drowned."""

import json
import re

from api_client import rows
from audit_lines import lines, noted
from quart import Quart
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    make_video,
    person,
    program,
    send_fields,
    session_in,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import links
from portal.accounts.audit import AuditAction
from portal.accounts.secrets import digest
from portal.accounts.signing_in import FREE_TRIES_OF_ACCOUNT, FREE_TRIES_OF_ADDRESS
from portal.database.account_models import Account
from portal.database.states import Role

WRONG, NEW = "wrong-password-5ec7e7", "new-password-5ec7e7"
SECRET = re.compile(r"/welcome/([\w-]{43})")
TOKEN = re.compile(r"portal_[\w-]{43}")
# Of tries that had waited long enough: each waits twice as long as the one before.
SLOWED = 9


async def whole_log(app: Quart) -> str:
    """Every column of every line."""
    url = app.extensions["portal"].config.database_url
    return str(await rows(url, "SELECT to_jsonb(audit_events) FROM audit_events"))


async def test_no_secret_is_ever_in_the_log(app: Quart, olga: Account, edith: Account) -> None:
    """Eleven kinds of secrets, in their places and typed in the place of an e-mail address."""
    nobody, secrets = Sender(app, OWN_PAGE), {PASSWORD, WRONG, NEW, "P@ssw0rd!5ec7e7"}
    for email in (olga.email, PASSWORD, WRONG, "P@ssw0rd!5ec7e7"):
        await try_to_sign_in(nobody, email, WRONG)
    entered = session_in(await try_to_sign_in(nobody, olga.email))
    owner = browser(app, entered)
    made = await send_fields(owner, "/account/tokens", name="a", scopes=["videos:delete"])
    token = TOKEN.findall(await text_of(made))[0]
    invited = await owner.post("/people/invitations", form={"role": "viewer"})
    offered = await owner.post(f"/people/{edith.id}/reset")
    found = [SECRET.findall(await text_of(it))[0] for it in (invited, offered)]
    # Sent back where they don't belong, too.
    secrets |= {entered, token, *found}
    for secret in (entered, token, *found):
        await try_to_sign_in(nobody, secret, secret)
        await program(app, secret).post(f"/api/videos/{edith.id}/deletion")
    for secret, email in zip(found, ("vi@example.org", ""), strict=True):
        form = {"email": email, "password": NEW}
        assert (await nobody.post(f"/welcome/{secret}", form=form)).status_code == 303
        assert (await nobody.post(f"/welcome/{secret}", form=form)).status_code == 404
    video = await make_video(olga)
    deletion = f"/api/videos/{video.id}/deletion?secret={token}"
    headers = {"User-Agent": token, "Referer": f"http://a/welcome/{found[0]}"}
    assert (await program(app, token).post(deletion, headers=headers)).status_code == 202
    form = {"current": PASSWORD, "password": NEW}
    changed = await owner.post("/account/password", form=form)
    secrets.add(session_in(changed))
    await browser(app, session_in(changed)).post("/sign-out")
    log, hidden = await whole_log(app), {*secrets, *map(digest, secrets)}
    assert olga.email in log
    assert len(hidden) == 2 * len(secrets) == 18
    assert [it for it in hidden if it in log] == []
    actions = {it["action"] for it in await lines()}
    assert {AuditAction.TOKEN_MADE, AuditAction.VIDEO_DELETED} < actions
    assert {AuditAction.INVITATION_ACCEPTED, AuditAction.PASSWORD_CHANGED} < actions


async def test_text_of_videos_is_not_in_the_log(app: Quart, olga: Account) -> None:
    """What was taken out of a description is not to be found elsewhere for a year."""
    video = await make_video(olga)
    sender = program(app, await token_of(olga))
    for text in ("a-private-name-5ecret7", "plain"):
        body = {"title": text, "description": text, "categoryIds": [1], "tags": text}
        path = f"/api/videos/{video.id}/metadata"
        answer = await sender.ask("PUT", path, json=body, headers={"If-Match": "*"})
        assert answer.status_code == 200
    await sender.post(f"/api/videos/{video.id}/deletion")
    assert "5ecret7" not in await whole_log(app)
    assert (await lines())[-1]["detail"] == {"title": "plain"}


async def test_nobody_acts_in_the_name_of_others(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """Twelve headers, fields and queries that could be taken for the sender, at four places."""
    sender = await signed_in(app, mallory)
    token = program(app, await token_of(mallory))
    headers = {
        "X-Forwarded-For": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
        "X-Real-IP": "203.0.113.9",
        "X-Remote-User": olga.email,
        "From": olga.email,
        "X-Request-Id": olga.email,
    }
    fields = {"by": str(olga.id), "actor": olga.email, "email": olga.email, "name": "a"}
    query = f"?by={olga.id}&actor={olga.email}"
    videos = [await make_video(mallory) for _ in range(2)]
    async with noted() as found:
        await sender.post(f"/videos/{videos[0].id}/delete{query}", form=fields, headers=headers)
        await token.post(f"/api/videos/{videos[1].id}/deletion{query}", headers=headers)
        form = {**fields, "scopes": "videos:read"}
        await sender.post(f"/account/tokens{query}", form=form, headers=headers)
        await sender.post(f"/sign-out{query}", form=fields, headers=headers)
    assert len(found) == 4
    assert {it["actorEmail"] for it in found} == {mallory.email}
    assert {it["actorId"] for it in found} == {str(mallory.id)}
    assert "203.0.113.9" not in json.dumps(found)
    assert olga.email not in json.dumps(found)


async def test_both_credentials_at_once_are_the_tokens(
    app: Quart, olga: Account, mallory: Account
) -> None:
    """A cookie of the owner beside a token of an editor lends it neither power nor name."""
    cookie = (await signed_in(app, olga)).headers
    mixed = Sender(app, {**cookie, **program(app, await token_of(mallory)).headers})
    own, others = await make_video(mallory), await make_video(olga)
    async with noted() as found:
        assert (await mixed.post(f"/api/videos/{others.id}/deletion")).status_code == 403
        assert (await mixed.post(f"/api/videos/{own.id}/deletion")).status_code == 202
    [line] = found
    assert (line["actorEmail"], line["actorKind"]) == (mallory.email, "token")


async def test_no_request_removes_or_changes_a_line(app: Quart, olga: Account) -> None:
    """Every method at both addresses, and an account that is removed with all that it has."""
    owner = await signed_in(app, olga)
    adam = await make_account("adam", Role.ADMIN)
    admin = await signed_in(app, adam)
    video = await make_video(adam)
    await admin.post(f"/videos/{video.id}/delete")
    before = await lines()
    for path in ("/audit", "/audit.jsonl", "/audit/1", "/audit?id=1"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for sender in (owner, admin):
                answer = await sender.ask(method, path, form={"id": "1"})
                assert answer.status_code in (404, 405), (method, path)
    assert await lines() == before
    assert (await owner.post(f"/people/{adam.id}/remove")).status_code == 303
    assert (await lines())[: len(before)] == before
    assert "adam@example.org" in await text_of(await owner.get("/audit"))


async def test_lines_of_a_guesser_are_few_whatever_is_tried(app: Quart, olga: Account) -> None:
    """Three hundred tries from one address, and sixty at one account from sixty addresses."""
    async with noted() as found:
        for number in range(300):
            await try_to_sign_in(Sender(app, OWN_PAGE), f"{number}@example.org", WRONG)
    assert len(found) - FREE_TRIES_OF_ADDRESS in range(SLOWED)
    async with noted() as found:
        for number in range(60):
            elsewhere = Sender(app, OWN_PAGE, f"192.0.2.{number}")
            await try_to_sign_in(elsewhere, olga.email, WRONG)
    assert len(found) - FREE_TRIES_OF_ACCOUNT in range(SLOWED)
    assert {it["objectName"] for it in found} == {olga.email}


async def test_control_characters_don_t_break_out_of_a_line(app: Quart, olga: Account) -> None:
    """Names that end lines, close strings or turn text around, in the page and the export."""
    owner = await signed_in(app, olga)
    evil = 'a\r\n{"id": 1}\u2028\x1b[2J\u202e"<b>'
    await send_fields(owner, "/account/tokens", name=evil, scopes=["videos:read"])
    await try_to_sign_in(Sender(app, OWN_PAGE), 'a"<b>\u202e@example.org', WRONG)
    text = await text_of(await owner.get("/audit.jsonl"))
    assert [json.loads(line) for line in text.splitlines()] == await lines()
    page = await text_of(await owner.get("/audit"))
    for sign in ("\x1b", "\u202e", "<b>"):
        assert sign not in page
    secret = await links.invite(Role.VIEWER, by=person(olga))
    form = {"email": "a\r\nb@example.org", "password": NEW}
    assert (await Sender(app, OWN_PAGE).post(f"/welcome/{secret}", form=form)).status_code == 422
