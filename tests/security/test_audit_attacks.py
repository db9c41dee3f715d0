"""Attacks on the audit log: secrets that it might keep, lines that might be forged or drowned."""

import json
import re

from api_client import rows
from audit_lines import lines
from quart import Quart
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_video,
    person,
    program,
    send_fields,
    session_in,
    signed_in,
    text_of,
    try_to_sign_in,
)

from portal.accounts import invitations
from portal.accounts.audit import AuditAction
from portal.accounts.tokens import digest
from portal.database.account_models import Account
from portal.database.states import Role

WRONG, NEW = "wrong-password-5ec7e7", "new-password-5ec7e7"
SECRET = re.compile(r"/welcome/([\w-]{43})")
TOKEN = re.compile(r"portal_[\w-]{43}")


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
    secret = await invitations.invite(Role.VIEWER, by=person(olga))
    form = {"email": "a\r\nb@example.org", "password": NEW}
    assert (await Sender(app, OWN_PAGE).post(f"/welcome/{secret}", form=form)).status_code == 422
