"""No secret of an account is told: not by logs, error pages, addresses, commands or other pages.

A life of a portal with secrets that can be recognised, while everything is collected that others
could read.
"""

import re

from api_client import rows, run_sql
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
    signed_in,
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


class Life:
    """What was done, what is secret, and what was told."""

    def __init__(self, app: Quart) -> None:
        self.app = app
        self.secrets = {PASSWORD, WRONG, NEW}
        self.told: dict[str, str] = {}

    async def note(self, words: str, answer: Response, *own: str) -> str:
        """Collect an answer, but for the secrets that it is there to tell; returns its body."""
        body = await text_of(answer)
        headers = [it for it in answer.headers if it[0].lower() != "set-cookie"]
        text = f"{body}{headers}"
        for secret in own:
            assert secret in text, words
            text = text.replace(secret, "")
        self.told[words] = text
        if session := session_in(answer):
            self.secrets.add(session)
        return body

    def search(self) -> list[tuple[str, str]]:
        """Where a secret was told, or its digest."""
        hidden = {*self.secrets, *map(digest, self.secrets)}
        return [(words, it) for words, text in self.told.items() for it in hidden if it in text]


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
    token = TOKEN.findall(await text_of(made))[0]
    await life.note("token made", made, token)
    life.secrets.add(token)
    await life.note("account with token", await owner.get("/account"))
    await life.note("token used", await program(app, token).get("/api/videos/none"))
    wrong = token[:-5] + "wrong"
    life.secrets.add(wrong)
    await life.note("token refused", await program(app, wrong).get("/api/videos/none"))
    await life.note("token lacks", await program(app, token).post("/api/videos/x/deletion"))
    await live_with_links(life, owner, olga)
    form = {"current": WRONG, "password": NEW}
    await life.note("not changed", await owner.post("/account/password", form=form))
    form = {"current": PASSWORD, "password": NEW}
    changed = await owner.post("/account/password", form=form)
    await life.note("changed", changed)
    owner = browser(app, session_in(changed))
    await life.note("signed out", await owner.post("/sign-out"))
    await life.note("ended", await owner.get("/account"))


async def live_with_links(life: Life, owner: Sender, olga: Account) -> None:
    """Invitations and links for passwords, made, looked at, mistyped, used and used again."""
    app = life.app
    edith = await make_account("edith", Role.EDITOR)
    for number, path in enumerate(("/people/invitations", f"/people/{edith.id}/reset")):
        offered = await owner.post(path, form={"role": "editor"})
        secret = SECRET.findall(await text_of(offered))[0]
        await life.note(f"{path} made", offered, secret)
        life.secrets.add(secret)
        await life.note(f"{path} listed", await owner.get("/people"))
        guest, address = Sender(app, OWN_PAGE), f"/welcome/{secret}"
        for words, answer in (
            ("looked at", await guest.get(address)),
            ("looked at by an owner", await owner.get(address)),
            ("mistyped", await guest.post(address, form={"email": "", "password": "short"})),
        ):
            # The form is sent to its own address; nothing else of the page leads there.
            page = await text_of(answer)
            assert page.count(secret) == 1, words
            assert f'action="{address}"' in page
            await life.note(f"{path} {words}", answer, secret)
        form = {"email": f"{number}@example.org", "password": NEW}
        await life.note(f"{path} used", await guest.post(address, form=form))
        await life.note(f"{path} used again", await guest.post(address, form=form))
        await life.note(f"{path} gone", await guest.get(address))
        await life.note(f"{path} headed", await guest.ask("HEAD", address))
        await life.note(f"{path} put", await guest.ask("PUT", address))
        await life.note(f"{path} beyond", await guest.get(f"{address}/more"))


async def fail(life: Life, olga: Account) -> None:
    """Faults of our own, while there are secrets in the request."""
    app = life.app
    database_url = app.extensions["portal"].config.database_url
    session, token = await session_of(olga), await token_of(olga)
    link = await invitations.invite(Role.EDITOR, by=person(olga))
    life.secrets |= {session, token, link}
    for table in ("accounts", "sessions", "api_tokens", "one_time_links", "sign_in_failures"):
        await run_sql(database_url, f"ALTER TABLE {table} RENAME TO away")
        requests = {
            "page": browser(app, session).get("/account"),
            "call": program(app, token).get("/api/uploads/none"),
            "link": Sender(app).get(f"/welcome/{link}"),
            "used": Sender(app).post(f"/welcome/{link}", form={"email": "x@y", "password": NEW}),
            "form": try_to_sign_in(Sender(app, OWN_PAGE), olga.email, WRONG),
        }
        statuses = set()
        for words, request in requests.items():
            answer = await request
            statuses.add(answer.status_code)
            own = [link] if words == "link" and answer.status_code == 200 else []
            await life.note(f"{table} away, {words}", answer, *own)
        await run_sql(database_url, f"ALTER TABLE away RENAME TO {table}")
        assert 500 in statuses, table


async def test_no_secret_is_logged_or_shown_elsewhere(
    app: Quart, olga: Account, lines: list[str]
) -> None:
    """Some seventy requests, a third of them failing, at the most talkative level of logging."""
    life = Life(app)
    await live(life, olga)
    await fail(life, olga)
    assert len(life.told) > 50
    life.told["the log"] = "\n".join(lines)
    assert len(lines) > 60
    assert "/welcome/…" in life.told["the log"]
    assert "sign_in_refused" in life.told["the log"]
    assert life.search() == []


async def test_database_holds_no_secret(app: Quart, olga: Account) -> None:
    """Every row of every table, after the same life."""
    life = Life(app)
    await live(life, olga)
    database_url = app.extensions["portal"].config.database_url
    tables = await rows(database_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert len(tables) > 10
    for (table,) in tables:
        life.told[table] = str(await rows(database_url, f'SELECT * FROM "{table}"'))
    kept = "".join(life.told[table] for (table,) in tables)
    assert olga.email in kept
    assert [it for it in life.secrets if it in kept] == []


async def test_what_shows_a_secret_is_kept_by_nobody(app: Quart, olga: Account) -> None:
    """Four answers with a secret: no cache on their way keeps them, nor does the browser."""
    sender = await signed_in(app, olga)
    link = await invitations.invite(Role.EDITOR, by=person(olga))
    for answer in (
        await sender.post("/account/tokens", form={"name": "a", "scopes": "admin"}),
        await sender.post("/people/invitations", form={"role": "editor"}),
        await sender.post(f"/people/{olga.id}/reset"),
        await Sender(app).get(f"/welcome/{link}"),
    ):
        assert answer.status_code == 200
        assert "no-store" in answer.headers.get("Cache-Control", "")
