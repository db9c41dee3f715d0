"""The page of the audit log says in sentences what was done, and finds what is asked for."""

import html
import json
import re

import pytest
from account_pages import page
from audit_lines import lines, video_of
from page_rows import READY, make_row
from quart import Quart
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    Sender,
    make_account,
    program,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import tokens
from portal.accounts.audit import AuditAction, note
from portal.database.account_models import Account
from portal.database.states import Role, Scope

EVIL = "<script>alert(1)</script>\"'\u202e"
pytestmark = pytest.mark.shared_app


def sentences(text: str) -> list[str]:
    """What the entries of a page say, without their times."""
    text = re.sub(r"<time.*?</time>", "", text, flags=re.DOTALL)
    entries = re.findall(r'<li class="entry">(.*?)</li>', text, flags=re.DOTALL)
    plain = (re.sub(r"<[^>]+>", " ", entry) for entry in entries)
    return [html.unescape(" ".join(entry.split())) for entry in plain]


def address_of(text: str, words: str) -> str:
    """Where a link with these words leads; empty if there is none."""
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>\s*{words}', text)
    return html.unescape(found[1]) if found else ""


async def found_by(owner: Sender, query: str) -> list[str]:
    return sentences(await page(owner, f"/audit?{query}"))


async def test_page_says_what_was_done_the_newest_first(app: Quart, owner: Sender) -> None:
    for email in ("nobody@example.org", "four calm boats"):
        await try_to_sign_in(Sender(app, OWN_PAGE), email, "wrong")
    edith = await make_account("edith", Role.EDITOR)
    await owner.post(f"/people/{edith.id}/role", form={"role": "admin"})
    video = await make_row(**READY, title="Harbour at dawn")
    token = program(app, await token_of(edith))
    assert (await token.post(f"/api/videos/{video.id}/deletion")).status_code == 202
    assert sentences(await page(owner, "/audit")) == [
        f"edith@example.org deleted Harbour at dawn from {ADDRESS} by the API token “a test” "
        "all about this video",
        "A command made the API token a test of edith@example.org "
        "for videos:read, videos:write, videos:delete, admin",
        f"olga@example.org changed the role of edith@example.org from {ADDRESS} it was editor "
        "role: admin",
        "A command added the account edith@example.org role: editor",
        f"Someone failed to sign in as what is no e-mail address from {ADDRESS}",
        f"Someone failed to sign in as nobody@example.org from {ADDRESS}",
        "A command added the account olga@example.org role: owner",
    ]


async def test_end_of_a_playback_link_is_told_as_times_are(owner: Sender) -> None:
    video = await make_row(**READY)
    path = f"/api/videos/{video.id}/playback-links"
    assert (await owner.post(path, json={"expiresInSeconds": 86_400})).status_code == 201
    text = await page(owner, "/audit")
    assert "made a playback link to" in text
    # Both are elements that a script shows in the reader's own time zone.
    time = r'<time datetime="[^"]+"\s+data-local=""\s*>\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC</time>'
    assert re.search(rf"<span>until {time}</span>", text)
    assert re.search(rf"<span>{time}</span>", text)


async def test_lines_are_found_by_the_form(app: Quart, owner: Sender, olga: Account) -> None:
    await try_to_sign_in(Sender(app, OWN_PAGE), "nobody@example.org", "wrong")
    await try_to_sign_in(Sender(app, OWN_PAGE), olga.email)
    assert len(await found_by(owner, "")) == 3
    [refused] = await found_by(owner, "action=account.sign_in_refused&person=&object=")
    assert "nobody@example.org" in refused
    [signed_in] = await found_by(owner, "person=Olga@example.org+")
    assert "olga@example.org signed in" in signed_in
    assert await found_by(owner, "object=nobody@example.org") == [refused]
    assert len(await found_by(owner, f"object={olga.id}")) == 2
    assert await found_by(owner, f"object={olga.id}&action=account.signed_in") == [signed_in]
    assert await found_by(owner, "person=nobody@example.org") == []
    text = await page(owner, "/audit?person=nobody@example.org")
    assert "Nothing of this kind" in text
    assert 'value="nobody@example.org"' in text
    # The links on the page ask for the same.
    text = await page(owner, "/audit")
    assert await found_by(owner, address_of(text, "<bdi>nobody").partition("?")[2]) == [refused]
    assert await found_by(owner, address_of(text, "<bdi>olga").partition("?")[2]) == [signed_in]


async def test_what_others_wrote_stays_text(owner: Sender, olga: Account) -> None:
    await tokens.create(olga.id, name=EVIL, scopes=["admin"])
    await make_row(title="Fine")
    await note(AuditAction.VIDEO_DELETED, video_of(1), detail={"title": EVIL})
    text = await page(owner, "/audit")
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2


async def test_export_is_all_of_it_for_programs(app: Quart, owner: Sender) -> None:
    edith = await make_account("edith\u00e9", Role.EDITOR)
    detail = {"title": "Hafen\u2028\u0085\n\u00e9"}
    await note(AuditAction.VIDEO_DELETED, video_of(1), detail=detail)
    answer = await owner.get("/audit.jsonl")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/jsonl"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    assert answer.headers["Cache-Control"] == "private, no-store"
    text = (await answer.get_data()).decode()
    found = [json.loads(line) for line in text.split("\n")[:-1]]
    assert found == await lines()
    assert len(found) == 3
    # A line is one wherever lines are told apart.
    assert len(text.splitlines()) == 3
    some = await page(owner, f"/audit.jsonl?object={edith.id}")
    assert [json.loads(line)["objectName"] for line in some.splitlines()] == [edith.email]
    assert await page(owner, "/audit.jsonl?person=nobody@example.org") == ""


@pytest.mark.parametrize("path", ["/audit", "/audit.jsonl"])
async def test_log_is_for_admins_and_owners(app: Quart, owner: Sender, path: str) -> None:
    nobody = Sender(app, OWN_PAGE)
    answer = await nobody.get(path)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/sign-in?next={path}")
    for role, status in ((Role.VIEWER, 403), (Role.EDITOR, 403), (Role.ADMIN, 200)):
        account = await make_account(role.value, role)
        text = await page(await signed_in(app, account), path, status)
        assert ("owner@example.org" in text or "olga@example.org" in text) is (status == 200)
    people_page = await page(owner, "/people")
    assert address_of(people_page, "Audit log") == "/audit"


@pytest.mark.parametrize("role", Role)
async def test_export_takes_admins_and_owners_tokens_with_the_scope(app: Quart, role: Role) -> None:
    """The page is for people alone. Of a token the role is looked at first."""
    await make_account("olga")
    account = await make_account("ann", role)
    token = program(app, await token_of(account, [Scope.ADMIN]))
    others = program(app, await token_of(account, set(Scope) - {Scope.ADMIN}))
    is_theirs = role in (Role.OWNER, Role.ADMIN)
    answer, refusal = await token.get("/audit.jsonl"), await others.get("/audit.jsonl")
    assert (answer.status_code, refusal.status_code) == (200 if is_theirs else 403, 403)
    assert ("olga@example.org" in await text_of(answer)) is is_theirs
    assert 'scope="admin"' in refusal.headers.get("WWW-Authenticate", "") or not is_theirs
    assert ("lacks the scope admin" in await text_of(refusal)) is is_theirs
    assert (await token.get("/audit")).status_code == 303
