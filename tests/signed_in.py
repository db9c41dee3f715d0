"""Accounts made directly, and requests that carry their credentials.

Where a test is not about passwords nobody waits for argon2: sessions are begun by the service, and
passwords have hashes that are cheap to verify.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from http.cookies import SimpleCookie
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from api_client import run_sql
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from page_rows import make_row, make_upload_row
from quart import Quart, Response
from running_portal import fresh_database

from portal.accounts import passwords, people, sessions, tokens
from portal.accounts.passwords import Passwords
from portal.accounts.permissions import ANYONE, Principal
from portal.accounts.tokens import digest
from portal.config import Config
from portal.database.account_models import Account, Role, Scope
from portal.database.connection import execute
from portal.database.models import Upload, Video
from portal.web.app import create_app
from portal.web.composition import AccountsExist
from portal.web.cookies import PLAIN_COOKIE

PASSWORD = "four calm green boats"
# Reserved for documentation (RFC 5737).
ADDRESS = "198.51.100.7"
# Of storage, where its client looks for them.
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
NO_LIMITS = {"rate_limit_changes": 0, "rate_limit_searches": 0, "rate_limit_sign_ins": 0}
# Finds what waits for a transaction of someone else to end.
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
# With all that hangs on them.
TABLES = (
    *("videos", "uploads", "one_time_links", "sign_in_failures", "sign_ons", "accounts"),
    *("events", "deletions", "tombstones", "procrastinate_jobs", "procrastinate_workers"),
    "webhooks",
    "idempotency_keys",
)
# What a browser says of a request from the portal's own page.
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
# Of videos: no two are alike.
_numbers = count(1)


@asynccontextmanager
async def emptied(database_url: str) -> AsyncIterator[None]:
    """A database without accounts, videos, uploads and jobs afterwards.

    That takes a tenth of the time that a database of its own takes a test.
    """
    yield
    await run_sql(database_url, ";".join(f"DELETE FROM {table}" for table in TABLES))


@asynccontextmanager
async def one_app(
    services: Mapping[str, str],
    *,
    prepare: Callable[[Quart], None] | None = None,
    **changes: Any,
) -> AsyncIterator[Quart]:
    """An app for many tests, in which passwords are cheap and nobody asks too often.

    There can be one at a time in a process. `prepare` adds to it before it is started.
    """
    async with fresh_database(dict(services)) as environ:
        with pytest.MonkeyPatch.context() as patch:
            hash_quickly(patch)
            for name in CREDENTIALS:
                patch.setenv(name, environ[name])
            app = create_app(replace(Config.from_env(environ), **NO_LIMITS, **changes))
            if prepare:
                prepare(app)
            async with app.test_app():
                yield app


@asynccontextmanager
async def as_new(app: Quart) -> AsyncIterator[Quart]:
    """That app as one without accounts and videos, for a test, which may `configure` it."""
    context = app.extensions["portal"]
    # It would know for good that there are accounts.
    anew = {"accounts_exist": AccountsExist(), "passwords": Passwords()}
    app.extensions["portal"] = replace(context, **anew)
    async with emptied(context.config.database_url):
        yield app
    app.extensions["portal"] = context


def configure(app: Quart, **changes: Any) -> None:
    """Change some settings, of those that are read for each request."""
    context = app.extensions["portal"]
    app.extensions["portal"] = replace(context, config=replace(context.config, **changes))


def hash_quickly(patch: pytest.MonkeyPatch) -> None:
    """Have argon2id do the least work it can, in what is started from now on."""
    patch.setattr(passwords, "RFC_9106_LOW_MEMORY", CHEAPEST)


@cache
def quick_hash(password: str = PASSWORD) -> str:
    """A hash of a password that is cheap to verify."""
    return PasswordHasher.from_parameters(CHEAPEST).hash(password)


async def make_account(name: str, role: Role = Role.OWNER, *, has_password: bool = True) -> Account:
    """An account at example.org, whose password is `PASSWORD`; the first has to be an owner's."""
    password_hash = quick_hash() if has_password else None
    return await people.add(f"{name}@example.org", role, password_hash=password_hash)


def person(account: Account) -> Principal:
    """Who acts with an account in a browser, where nothing depends on the session."""
    return Principal(account_id=account.id, role=account.role, email=account.email)


async def renew_failures() -> None:
    """Have all tries to sign in that failed be of this moment, however long they took."""
    await execute("UPDATE sign_in_failures SET at = clock_timestamp()")


async def pass_time(seconds: float) -> None:
    """Have all tries to sign in that failed be so much older."""
    await execute("UPDATE sign_in_failures SET at = at - %s * interval '1 second'", seconds)


async def session_of(account: Account, *, address: str = ADDRESS) -> str:
    """What the cookie of a new session holds."""
    return await sessions.begin(account.id, device="a test", address=address)


async def token_of(account: Account, scopes: Collection[str] = tuple(Scope)) -> str:
    """A new API token; of any scopes, as who administered the portal when it was made may have."""
    recorded = Account.filter(id=account.id)
    [role] = await recorded.values_list("role", flat=True)
    await recorded.update(role=Role.OWNER)
    secret = await tokens.create(account.id, name="a test", scopes=scopes)
    await recorded.update(role=role)
    return secret


async def person_of(secret: str) -> Principal:
    """Who sends a cookie that holds this."""
    found = await sessions.fetch_principals([digest(secret)])
    return found.get(digest(secret), ANYONE)


async def program_of(token: str) -> Principal:
    """Whose API token this is; nobody's if it is not valid."""
    return (await tokens.fetch_principals([digest(token)])).get(digest(token), ANYONE)


async def make_video(owner: Account | None, **values: Any) -> Video:
    """A video of an account, and its upload; there are no files of either."""
    owner_id = owner and owner.id
    video = await make_row(next(_numbers), owner_id=owner_id, **values)
    await Upload.filter(key=video.storage_key).update(owner_id=owner_id)
    return video


async def make_upload(owner: Account | None) -> str:
    """The id of an upload that an account has begun."""
    return (await make_upload_row(owner and owner.id)).id.hex


@dataclass(frozen=True)
class Sender:
    """Asks an app in this process, with the same headers from the same address each time."""

    app: Quart
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ADDRESS

    async def ask(self, method: str, path: str, **options: Any) -> Response:
        """The answer to a request with these options of Quart's test client."""
        # Streams, which would not end, are none of these.
        headers = {"Accept": "text/html", **self.headers, **options.pop("headers", {})}
        client = self.app.test_client(use_cookies=False)
        scope = {"client": (self.address, 50_000)}
        return await client.open(path, method=method, headers=headers, scope_base=scope, **options)

    async def get(self, path: str, **options: Any) -> Response:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Response:
        return await self.ask("POST", path, **options)


def browser(app: Quart, session: str, *, address: str = ADDRESS) -> Sender:
    """A browser with the cookie of a session, on the portal's own pages."""
    return Sender(app, {"Cookie": f"{PLAIN_COOKIE}={session}", **OWN_PAGE}, address)


def program(app: Quart, token: str) -> Sender:
    """A program with an API token."""
    return Sender(app, {"Authorization": f"Bearer {token}"})


async def signed_in(app: Quart, account: Account) -> Sender:
    """A browser in which someone has signed in."""
    return browser(app, await session_of(account))


async def try_to_sign_in(
    sender: Sender, email: str, password: str = PASSWORD, **fields: str
) -> Response:
    """Send the form of the sign-in page."""
    form = {"email": email, "password": password, **fields}
    return await sender.post("/sign-in", form=form)


async def send_fields(sender: Sender, path: str, **fields: str | Collection[str]) -> Response:
    """Send a form, in which a field may have several values."""
    data = urlencode(fields, doseq=True)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return await sender.post(path, data=data, headers=headers)


def session_in(response: Response) -> str:
    """What the cookie of a session holds that an answer sets; empty for none."""
    for header in response.headers.getlist("Set-Cookie"):
        if found := SimpleCookie(header).get(PLAIN_COOKIE):
            return found.value
    return ""


async def text_of(response: Response) -> str:
    return str(await response.get_data(as_text=True))
