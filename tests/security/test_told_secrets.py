"""No secret of an account is told: not by logs, error pages, addresses, the database or pages.

A life of a portal with secrets that can be recognised, while everything is collected that others
could read.
"""

import logging
import re
from collections.abc import Iterator

import pytest
from api_client import rows, run_sql
from pythonjsonlogger.json import JsonFormatter
from quart import Quart, Response
from signed_in import (
    OWN_PAGE,
    PASSWORD,
    Sender,
    browser,
    make_account,
    person,
    program,
    send_fields,
    session_in,
    session_of,
    text_of,
    token_of,
    try_to_sign_in,
)

from portal.accounts import invitations
from portal.accounts.tokens import digest
from portal.database.account_models import Account, Role

WRONG, NEW = "wrong-password-5ec7e7", "new-password-5ec7e7"
SECRET = re.compile(r"/welcome/([\w-]{43})")
TOKEN = re.compile(r"portal_[\w-]{43}")


@pytest.fixture
def lines(app: Quart) -> Iterator[list[str]]:
    """All that is logged from now on at any level, with all fields."""
    root, found = logging.getLogger(), list[str]()
    formatter = JsonFormatter(json_ensure_ascii=False)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(formatter.format(record))

    collector, level = Collector(), root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    yield found
    root.removeHandler(collector)
    root.setLevel(level)


class Life:
    """What was done, what is secret, and what was told."""

    def __init__(self, app: Quart) -> None:
        self.app = app
        self.database_url = app.extensions["portal"].config.database_url
        self.secrets = {PASSWORD, WRONG, NEW}
        self.told: dict[str, str] = {}

    async def note(self, words: str, answer: Response, own: str = "") -> str:
        """Collect an answer, but for the secret that it is there to tell; returns its body.

        Nor may a cache on its way, or the browser, keep one with a secret.
        """
        body = await text_of(answer)
        headers = [it for it in answer.headers if it[0].lower() != "set-cookie"]
        text = f"{body}{headers}"
        if own:
            assert own in text, words
            assert "no-store" in answer.headers["Cache-Control"]
            text = text.replace(own, "")
        self.told[words] = text
        if session := session_in(answer):
            self.secrets.add(session)
        return body


async def live(life: Life, olga: Account) -> None:
    """Everything that is done with secrets, with and without success."""
    app = life.app
    nobody = Sender(app, OWN_PAGE)
    await life.note("refused", await try_to_sign_in(nobody, olga.email, WRONG))
    entered = await try_to_sign_in(nobody, olga.email, next="/account")
    await life.note("signed in", entered)
    owner = browser(app, session_in(entered))
    await life.note("account", await owner.get("/account"))
    scopes = ["videos:read", "videos:write"]
    made = await send_fields(owner, "/account/tokens", name="a program", scopes=scopes)
    [token] = set(TOKEN.findall(await text_of(made)))
    await life.note("token made", made, token)
    wrong = token[:-5] + "wrong"
    life.secrets |= {token, wrong}
    await life.note("account with token", await owner.get("/account"))
    headers = {"User-Agent": token, "Referer": f"http://a/?{token}"}
    used = program(app, token).get(f"/api/videos/none?secret={token}", headers=headers)
    await life.note("token used", await used)
    await life.note("token refused", await program(app, wrong).get("/api/videos/none"))
    await life.note("token lacks", await program(app, token).ask("DELETE", "/api/videos/no-video"))
    await live_with_links(life, owner)
    for words, current in (("not changed", WRONG), ("changed", PASSWORD)):
        form = {"current": current, "password": NEW}
        answer = await owner.post("/account/password", form=form)
        await life.note(words, answer)
    owner = browser(app, session_in(answer))
    await life.note("signed out", await owner.post("/sign-out"))
    await life.note("ended", await owner.get("/account"))


async def live_with_links(life: Life, owner: Sender) -> None:
    """Invitations and links for passwords, made, looked at, mistyped, used and used again."""
    edith = await make_account("edith", Role.EDITOR)
    for number, path in enumerate(("/people/invitations", f"/people/{edith.id}/reset")):
        offered = await owner.post(path, form={"role": "editor"})
        secret = SECRET.findall(await text_of(offered))[0]
        await life.note(f"{path} made", offered, secret)
        life.secrets.add(secret)
        await life.note(f"{path} listed", await owner.get("/people"))
        guest, address = Sender(life.app, OWN_PAGE), f"/welcome/{secret}"
        for words, answer in (
            ("looked at", await guest.get(address)),
            ("looked at by an owner", await owner.get(address)),
            ("mistyped", await guest.post(address, form={"email": "", "password": "short"})),
        ):
            # The form is sent to its own address; nothing else of the page leads there.
            page = await life.note(f"{path} {words}", answer, secret)
            assert page.count(secret) == page.count(f'action="{address}"') == 1, words
        form = {"email": f"{number}@example.org", "password": NEW}
        await life.note(f"{path} used", await guest.post(address, form=form))
        await life.note(f"{path} used again", await guest.post(address, form=form))
        for method, where in (("GET", address), ("PUT", address), ("GET", f"{address}/more")):
            await life.note(f"{path} {method} {where}", await guest.ask(method, where))


async def fail(life: Life, olga: Account) -> None:
    """Faults of our own, while there are secrets in the request."""
    app = life.app
    session, token = await session_of(olga), await token_of(olga)
    link = await invitations.invite(Role.EDITOR, by=person(olga))
    life.secrets |= {session, token, link}
    for table in ("accounts", "sessions", "api_tokens", "one_time_links", "sign_in_failures"):
        await run_sql(life.database_url, f"ALTER TABLE {table} RENAME TO away")
        form = {"email": "x@y", "password": NEW}
        answers = {
            "page": await browser(app, session).get("/account"),
            "call": await program(app, token).get("/api/uploads/none"),
            "link": await Sender(app).get(f"/welcome/{link}"),
            "used": await Sender(app).post(f"/welcome/{link}", form=form),
            "form": await try_to_sign_in(Sender(app, OWN_PAGE), olga.email, WRONG),
        }
        await run_sql(life.database_url, f"ALTER TABLE away RENAME TO {table}")
        assert 500 in {it.status_code for it in answers.values()}, table
        for words, answer in answers.items():
            own = link if words == "link" and answer.status_code == 200 else ""
            await life.note(f"{table} away, {words}", answer, own)


async def test_no_secret_is_logged_kept_or_shown_elsewhere(
    app: Quart, olga: Account, lines: list[str]
) -> None:
    """At the most talkative level of logging, and in every row of every table."""
    life = Life(app)
    await live(life, olga)
    await fail(life, olga)
    log = life.told["the log"] = "\n".join(lines)
    assert "/welcome/…" in log
    assert "sign_in_refused" in log
    hidden = {*life.secrets, *map(digest, life.secrets)}
    found = [(words, it) for words, text in life.told.items() for it in hidden if it in text]
    assert found == []

    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    tables = [it for (it,) in await rows(life.database_url, query)]
    kept = str([await rows(life.database_url, f'SELECT * FROM "{it}"') for it in tables])
    assert olga.email in kept
    assert "account.sign_in_refused" in kept
    assert [it for it in life.secrets if it in kept] == []
