"""The page of the audit log says in sentences what was done, and finds what is asked for."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import psutil
import pytest
from account_pages import page
from api_client import run_sql
from audit_lines import add_lines, lines, video_of
from front_end import STATIC, install_tools, run_node
from page_rows import READY, make_row
from quart import Quart
from running_portal import LivePortal, fresh_portal
from signed_in import (
    ADDRESS,
    OWN_PAGE,
    PASSWORD,
    Sender,
    make_account,
    program,
    quick_hash,
    signed_in,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import api_tokens, people
from portal.accounts.audit import AuditAction, note
from portal.config import Config
from portal.database.account_models import Account
from portal.database.connection import open_database
from portal.database.states import Role, Scope
from portal.web.pages.audit import PAGE_SIZE
from portal.web.pages.audit_views import WORDS

EVIL = "<script>alert(1)</script>\"'\u202e"
RULES = STATIC / "htmlvalidate.json"
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


async def test_every_line_has_words_and_times(owner: Sender) -> None:
    """Also what is noted by a later version, and details that nobody has words for."""
    assert set(WORDS) == set(AuditAction)
    for action in AuditAction:
        await note(action, "5d0e3b8a-2c41-4f6b-9a57-0c1d2e3f4a5b", name="a name")
    url = owner.app.extensions["portal"].config.database_url
    await run_sql(
        url,
        "INSERT INTO audit_events (action, actor_kind, actor_email, token_name, address, "
        "object_name, detail) VALUES ('moon.moved', 'martian', '', '', '', 'Io', '{\"a\": \"b\"}')",
    )
    text = await page(owner, "/audit")
    assert len(sentences(text)) == len(AuditAction) + 2
    assert sentences(text)[0] == "Someone moon.moved Io"
    assert "{}" not in text
    assert text.count("data-local") == len(AuditAction) + 2


async def test_videos_are_linked_while_they_exist(owner: Sender, olga: Account) -> None:
    video = await make_row(**READY, title="Harbour", owner_id=olga.id)
    form = {"title": "Moon", "description": "", "categoryIds": "1", "tags": ""}
    form |= {f"base.{name}": value for name, value in form.items()} | {"base.title": "Harbour"}
    assert (await owner.post(f"/videos/{video.id}/edit", form=form)).status_code == 303
    text = await page(owner, "/audit")
    assert address_of(text, "<bdi>Moon") == f"/videos/{video.id}"
    assert "edited Moon" in sentences(text)[0]
    assert "changed: title" in sentences(text)[0]
    assert "Harbour" not in text
    await owner.post(f"/videos/{video.id}/delete")
    text = await page(owner, "/audit")
    assert address_of(text, "<bdi>Moon") == ""
    assert [it.split(" from ")[0] for it in sentences(text)[:2]] == [
        "olga@example.org deleted Moon",
        "olga@example.org edited Moon",
    ]
    history = address_of(text, "all about this video")
    assert len(sentences(await page(owner, history))) == 2


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


@pytest.mark.parametrize(
    "query",
    [
        "action=no.such",
        "action=%00",
        "before=x",
        "before=-1",
        "before=" + 30 * "9",
        "before=%D9%A3",
        "person=%00&object=%00",
        "a=b",
    ],
)
async def test_mistyped_filter_is_ignored(owner: Sender, query: str) -> None:
    assert len(await found_by(owner, query)) == 1


@pytest.mark.parametrize("text", [EVIL, "a" * 5000, "%' OR 1=1 --", "\ud800", "\u0661", "a\0b"])
async def test_any_text_may_be_looked_for(owner: Sender, text: str) -> None:
    sent = quote(text, errors="surrogatepass")
    for path in ("/audit", "/audit.jsonl"):
        answer = await page(owner, f"{path}?person={sent}&object={sent}")
        assert "<script>alert" not in answer


async def test_what_others_wrote_stays_text(owner: Sender, olga: Account) -> None:
    await api_tokens.create(olga.id, name=EVIL, scopes=["admin"])
    await make_row(title="Fine")
    await note(AuditAction.VIDEO_DELETED, video_of(1), detail={"title": EVIL})
    text = await page(owner, "/audit")
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2


async def test_pages_go_on_while_lines_are_added(owner: Sender) -> None:
    """Every line is seen once, by following the links."""
    await add_lines(owner.app.extensions["portal"].config.database_url, 2 * PAGE_SIZE)
    text, seen = await page(owner, "/audit"), list[str]()
    assert "Newest</a>" not in text
    while True:
        seen += re.findall(r"object=([\w-]{36})", text)
        older = address_of(text, "Older")
        if not older:
            break
        await note(AuditAction.SIGNED_IN)
        text = await page(owner, older)
        assert address_of(text, "Newest") == "/audit"
    assert sorted(seen) == sorted(map(video_of, range(1, 2 * PAGE_SIZE + 1)))
    assert len(await found_by(owner, "person=person3@example.org")) == 14
    more = await page(owner, "/audit?action=video.edited")
    assert "action=video.edited" in address_of(more, "Older")
    assert len(await found_by(owner, "before=1")) == 0


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


async def test_page_offers_what_it_shows_as_an_export(owner: Sender) -> None:
    await add_lines(owner.app.extensions["portal"].config.database_url, 10)
    text = await page(owner, "/audit?person=person3@example.org")
    export = address_of(text, "Download as JSON lines")
    assert len((await page(owner, export)).splitlines()) == 2


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


async def test_log_of_an_open_portal_waits_for_its_owner(app: Quart) -> None:
    nobody = Sender(app, OWN_PAGE)
    video = await make_row(**READY)
    await nobody.post(f"/videos/{video.id}/delete")
    assert (await nobody.get("/audit")).status_code == 303
    owner = await signed_in(app, await make_account("olga"))
    assert f"Someone deleted Video 1 from {ADDRESS}" in sentences(await page(owner, "/audit"))[1]


async def test_markup_is_valid(owner: Sender, tmp_path: Path) -> None:
    video = await make_row(**READY)
    await owner.post(f"/videos/{video.id}/poster", form={"time": "1"})
    await add_lines(owner.app.extensions["portal"].config.database_url, 60)
    first = await page(owner, "/audit")
    pages = {"first": first, "older": await page(owner, address_of(first, "Older"))}
    pages["none"] = await page(owner, "/audit?person=x@y.z&action=token.made")
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    script = install_tools() / "html-validate" / "bin" / "html-validate.mjs"
    run_node(str(script), "--config", str(RULES), *map(str, tmp_path.glob("*.html")))


@pytest.fixture
async def web_with_owner(
    services: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LivePortal]:
    """A web process of its own, whose owner is olga."""
    async with fresh_portal(services) as portal:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, portal.environ[name])
        async with open_database(Config.from_env(portal.environ)):
            await people.add("olga@example.org", Role.OWNER, password_hash=quick_hash())
        yield portal


@pytest.mark.slow
async def test_large_log_is_exported_whole_without_being_held(web_with_owner: LivePortal) -> None:
    """Sixty thousand lines; the process holds some hundred of them at a time."""
    await add_lines(web_with_owner.environ["DATABASE_URL"], 20_000)
    base_url, web = web_with_owner.base_url, psutil.Process(web_with_owner.web_pid)
    async with aiohttp.ClientSession(
        base_url, cookie_jar=aiohttp.CookieJar(unsafe=True), headers=OWN_PAGE
    ) as browser:
        form = {"email": "olga@example.org", "password": PASSWORD}
        async with browser.post("/sign-in", data=form, allow_redirects=False) as response:
            assert response.status == 303
        assert await exported(browser) == 20_002
        await add_lines(web_with_owner.environ["DATABASE_URL"], 40_000)
        before, highest = web.memory_info().rss, 0

        async def watch() -> None:
            nonlocal highest
            while True:
                highest = max(highest, web.memory_info().rss)
                await asyncio.sleep(0.02)

        watching = asyncio.create_task(watch())
        assert await exported(browser) == 60_002
        watching.cancel()
    assert highest - before < 8_000_000


async def exported(browser: aiohttp.ClientSession) -> int:
    """How many lines an export has; each is read, and comes after the one before."""
    count, last = 0, 0
    async with browser.get("/audit.jsonl") as response:
        assert response.status == 200
        async for text in response.content:
            assert text.endswith(b"\n")
            found = json.loads(text)
            assert found["id"] > last
            last, count = found["id"], count + 1
    return count
