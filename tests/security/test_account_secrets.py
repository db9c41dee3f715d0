"""No log, error page, address, table or page contains a secret of an account.

The test uses the accounts of a portal with recognizable secrets, and collects all output that
others could read.
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

WRONG = "wrong-password-5ec7e7"
NEW = "new-password-5ec7e7"
SECRET = re.compile(r"/welcome/([\w-]{43})")
TOKEN = re.compile(r"portal_[\w-]{43}")


@pytest.fixture
def lines(app: Quart) -> Iterator[list[str]]:
    """Collect all log records of any level, with all fields."""
    root = logging.getLogger()
    lines: list[str] = []
    formatter = JsonFormatter(json_ensure_ascii=False)

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(formatter.format(record))

    collector = Collector()
    level = root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(collector)
    root.setLevel(level)


class Life:
    """The secrets of a portal's accounts, and its output by step."""

    def __init__(self, app: Quart) -> None:
        self.app = app
        self.database_url = app.extensions["portal"].config.database_url
        self.secrets = {PASSWORD, WRONG, NEW}
        self.outputs: dict[str, str] = {}

    async def note(self, step: str, answer: Response, expected_secret: str = "") -> str:
        """Collect a response without the secret that it has to contain. Return its body.

        Check that no cache may keep a response with a secret.
        """
        body = await text_of(answer)
        headers = [pair for pair in answer.headers if pair[0].lower() != "set-cookie"]
        text = f"{body}{headers}"
        if expected_secret:
            assert expected_secret in text, step
            assert "no-store" in answer.headers["Cache-Control"]
            text = text.replace(expected_secret, "")
        self.outputs[step] = text
        if session := session_in(answer):
            self.secrets.add(session)
        return body


async def live(life: Life, olga: Account) -> None:
    """Use every kind of secret, with and without success."""
    app = life.app
    nobody = Sender(app, OWN_PAGE)
    await life.note("refused", await try_to_sign_in(nobody, olga.email, WRONG))
    entered = await try_to_sign_in(nobody, olga.email, next="/account")
    await life.note("signed in", entered)
    owner = browser(app, session_in(entered))
    await life.note("account", await owner.get("/account"))
    scopes = ["videos:read", "videos:write"]
    created = await send_fields(owner, "/account/tokens", name="a program", scopes=scopes)
    [token] = set(TOKEN.findall(await text_of(created)))
    await life.note("token created", created, token)
    wrong = token[:-5] + "wrong"
    life.secrets |= {token, wrong}
    await life.note("account with token", await owner.get("/account"))
    headers = {"User-Agent": token, "Referer": f"http://a/?{token}"}
    use = program(app, token).get(f"/api/videos/none?secret={token}", headers=headers)
    await life.note("token used", await use)
    await life.note("token refused", await program(app, wrong).get("/api/videos/none"))
    await life.note("token lacks", await program(app, token).ask("DELETE", "/api/videos/no-video"))
    await live_with_links(life, owner)
    for step, current in (("not changed", WRONG), ("changed", PASSWORD)):
        form = {"current": current, "password": NEW}
        answer = await owner.post("/account/password", form=form)
        await life.note(step, answer)
    owner = browser(app, session_in(answer))
    await life.note("signed out", await owner.post("/sign-out"))
    await life.note("ended", await owner.get("/account"))


async def live_with_links(life: Life, owner: Sender) -> None:
    """Create, open, mistype, use and reuse invitations and links for passwords."""
    edith = await make_account("edith", Role.EDITOR)
    for number, path in enumerate(("/people/invitations", f"/people/{edith.id}/reset")):
        offered = await owner.post(path, form={"role": "editor"})
        secret = SECRET.findall(await text_of(offered))[0]
        await life.note(f"{path} created", offered, secret)
        life.secrets.add(secret)
        await life.note(f"{path} listed", await owner.get("/people"))
        guest = Sender(life.app, OWN_PAGE)
        address = f"/welcome/{secret}"
        for step, answer in (
            ("opened", await guest.get(address)),
            ("opened by an owner", await owner.get(address)),
            ("mistyped", await guest.post(address, form={"email": "", "password": "short"})),
        ):
            # The form's action is the only link to the page's address.
            page = await life.note(f"{path} {step}", answer, secret)
            assert page.count(secret) == page.count(f'action="{address}"') == 1, step
        form = {"email": f"{number}@example.org", "password": NEW}
        await life.note(f"{path} used", await guest.post(address, form=form))
        await life.note(f"{path} used again", await guest.post(address, form=form))
        for method, target in (("GET", address), ("PUT", address), ("GET", f"{address}/more")):
            await life.note(f"{path} {method} {target}", await guest.ask(method, target))


async def fail(life: Life, olga: Account) -> None:
    """Provoke internal errors by requests that contain secrets."""
    app = life.app
    session = await session_of(olga)
    token = await token_of(olga)
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
        assert 500 in {answer.status_code for answer in answers.values()}, table
        for step, answer in answers.items():
            expected = link if step == "link" and answer.status_code == 200 else ""
            await life.note(f"{table} missing, {step}", answer, expected)


async def test_no_secret_is_logged_stored_or_shown_elsewhere(
    app: Quart, olga: Account, lines: list[str]
) -> None:
    """The search covers logs of all levels, and all rows of all tables."""
    life = Life(app)
    await live(life, olga)
    await fail(life, olga)
    log = "\n".join(lines)
    life.outputs["the log"] = log
    assert "/welcome/…" in log
    assert "sign_in_refused" in log
    hidden = {*life.secrets, *map(digest, life.secrets)}
    leaks = [
        (step, secret) for step, text in life.outputs.items() for secret in hidden if secret in text
    ]
    assert leaks == []

    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    tables = [name for (name,) in await rows(life.database_url, query)]
    stored = str([await rows(life.database_url, f'SELECT * FROM "{name}"') for name in tables])
    assert olga.email in stored
    assert "account.sign_in_refused" in stored
    assert [secret for secret in life.secrets if secret in stored] == []
