"""Accounts, and requests with their credentials.

Sessions are created by the service and password hashes are cheap to verify, so that only tests of
passwords wait for argon2.
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
from portal.http.composition import AccountsExist
from portal.http.cookies import PLAIN_COOKIE
from portal.web.app import create_app

PASSWORD = "four calm green boats"
# Reserved for documentation (RFC 5737).
ADDRESS = "198.51.100.7"
# Environment variables in which the client of storage finds its credentials.
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
LIMITS = ("changes", "searches", "sign_ins", "downloads")
NO_LIMITS = {f"rate_limit_{name}": 0 for name in LIMITS}
# Query that has a row while another query waits for a transaction.
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
# Tables to empty; other rows are deleted with theirs.
TABLES = (
    "series",
    "publications",
    "downloads",
    "uploads",
    "hand_ins",
    "one_time_links",
    "sign_in_failures",
    "sign_ons",
    "accounts",
    "groups",
    "guests",
    "events",
    "deletions",
    "tombstones",
    "procrastinate_jobs",
    "procrastinate_workers",
    "webhooks",
    "idempotency_keys",
    "playback_inbox",
    "network_hours",
    "video_days",
)
# Header that browsers send with requests from the portal's own pages.
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
# Distinct numbers for videos.
_numbers = count(1)


@asynccontextmanager
async def emptied(database_url: str) -> AsyncIterator[None]:
    """Delete accounts, videos, uploads and jobs afterwards.

    That takes a tenth of the time of a new database.
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
    """Run an app for many tests, with cheap passwords and without rate limits.

    A process can have one at a time. `prepare` changes the app before it starts.
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
    """Empty a shared app after a test, which may also `configure` it."""
    context = app.extensions["portal"]
    # The app remembers for ever that accounts exist.
    renewed = {"accounts_exist": AccountsExist(), "passwords": Passwords()}
    app.extensions["portal"] = replace(context, **renewed)
    async with emptied(context.config.database_url):
        yield app
    app.extensions["portal"] = context


def configure(app: Quart, **changes: Any) -> None:
    """Change settings that the app reads for each request."""
    context = app.extensions["portal"]
    app.extensions["portal"] = replace(context, config=replace(context.config, **changes))


def hash_quickly(patch: pytest.MonkeyPatch) -> None:
    """Let apps that start from now on hash with the least work of argon2id."""
    patch.setattr(passwords, "RFC_9106_LOW_MEMORY", CHEAPEST)


@cache
def quick_hash(password: str = PASSWORD) -> str:
    """Return a hash that is cheap to verify."""
    return PasswordHasher.from_parameters(CHEAPEST).hash(password)


async def make_account(name: str, role: Role = Role.OWNER, *, has_password: bool = True) -> Account:
    """Create an account at example.org with the password `PASSWORD`; the first must be an owner."""
    password_hash = quick_hash() if has_password else None
    return await people.add(f"{name}@example.org", role, password_hash=password_hash)


def person(account: Account) -> Principal:
    """Return the principal of an account in a browser, independent of a session."""
    return Principal(account_id=account.id, role=account.role, email=account.email)


async def renew_failures() -> None:
    """Move all failed tries to sign in to this moment."""
    await execute("UPDATE sign_in_failures SET at = clock_timestamp()")


async def pass_time(seconds: float) -> None:
    """Move all failed tries to sign in this far into the past."""
    await execute("UPDATE sign_in_failures SET at = at - %s * interval '1 second'", seconds)


async def session_of(account: Account, *, address: str = ADDRESS) -> str:
    """Begin a session, and return the value of its cookie."""
    return await sessions.create(account.id, device="a test", address=address)


async def token_of(account: Account, scopes: Collection[str] = tuple(Scope)) -> str:
    """Create an API token with any scopes, as if the account had been an owner at that time."""
    recorded = Account.filter(id=account.id)
    [role] = await recorded.values_list("role", flat=True)
    await recorded.update(role=Role.OWNER)
    secret = await tokens.create(account.id, name="a test", scopes=scopes)
    await recorded.update(role=role)
    return secret


async def person_of(secret: str) -> Principal:
    """Return the principal of a session's cookie."""
    principals = await sessions.fetch_principals([digest(secret)])
    return principals.get(digest(secret), ANYONE)


async def program_of(token: str) -> Principal:
    """Return the principal of an API token, or `ANYONE` if it is not valid."""
    return (await tokens.fetch_principals([digest(token)])).get(digest(token), ANYONE)


async def make_video(owner: Account | None, **values: Any) -> Video:
    """Create a video of an account and its upload, without files."""
    owner_id = owner and owner.id
    video = await make_row(next(_numbers), owner_id=owner_id, **values)
    await Upload.filter(key=video.storage_key).update(owner_id=owner_id)
    return video


async def make_upload(owner: Account | None) -> str:
    """Begin an upload of an account, and return its id."""
    return (await make_upload_row(owner and owner.id)).id.hex


@dataclass(frozen=True)
class Sender:
    """Client of an app in this process with fixed headers and a fixed address."""

    app: Quart
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ADDRESS

    async def ask(self, method: str, path: str, **options: Any) -> Response:
        """Send a request with these options of Quart's test client."""
        # This header prevents responses that are streams, which would not end.
        headers = {"Accept": "text/html", **self.headers, **options.pop("headers", {})}
        client = self.app.test_client(use_cookies=False)
        scope = {"client": (self.address, 50_000)}
        return await client.open(path, method=method, headers=headers, scope_base=scope, **options)

    async def get(self, path: str, **options: Any) -> Response:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Response:
        return await self.ask("POST", path, **options)


def browser(app: Quart, session: str, *, address: str = ADDRESS) -> Sender:
    """Return a browser with a session's cookie, on the portal's own pages."""
    return Sender(app, {"Cookie": f"{PLAIN_COOKIE}={session}", **OWN_PAGE}, address)


def program(app: Quart, token: str) -> Sender:
    """Return a program with an API token."""
    return Sender(app, {"Authorization": f"Bearer {token}"})


async def signed_in(app: Quart, account: Account) -> Sender:
    """Return a browser with a new session."""
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
    """Return the value of the session cookie that a response sets, or an empty text."""
    for header in response.headers.getlist("Set-Cookie"):
        if cookie := SimpleCookie(header).get(PLAIN_COOKIE):
            return cookie.value
    return ""


async def text_of(response: Response) -> str:
    return str(await response.get_data(as_text=True))
