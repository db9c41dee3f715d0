"""The portal's JSON endpoints as its own client calls them: with retries, errors in plain words."""

import re
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
import click

from portal.retry import Backoff, RetryLater, retry
from portal.text import http_address

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=90)
ATTEMPTS = 5
# With these, a portal may be away for 15 s.
BACKOFF = Backoff(first_s=2.0, cap_s=60.0)
TEMPORARY = (aiohttp.ClientConnectionError, TimeoutError, RetryLater)
BUSY_STATUSES = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
LONGEST_PAUSE_S = 60.0
# RFC 6750, section 2.1.
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# By the portal's code: what a program does about it, where the portal speaks to people.
REMEDIES = {
    "not_signed_in": "This portal has accounts. Make an API token with the scopes videos:read and "
    "videos:write on your account's page, and give it with --token or in PORTAL_TOKEN.",
}
# What answers without a code is no portal.
FROM_A_PROXY: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Something in front of the portal asks for a password. Give it in the "
    "address: https://user:password@portal.example.org.",
    HTTPStatus.FORBIDDEN: "Something in front of the portal refuses this. Ask who runs it.",
}


class Refused(click.ClickException):
    """The portal said no, with one of its codes."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        plain = FROM_A_PROXY.get(status, f"The portal answered with status {status}.")
        lines = [REMEDIES.get(str(problem.get("code")), problem.get("detail", plain))]
        lines += [f"  {it['pointer']}: {it['message']}" for it in problem.get("errors", [])]
        super().__init__("\n".join(lines))
        self.code = problem.get("code", "")


class Api:
    """The portal's JSON endpoints, with retries: every one of them may safely be repeated.

    `token` is an API token, which is sent to the portal alone: what goes to storage goes through
    `session`. `shown_url` is the portal's address without the user and password that it may hold.
    """

    def __init__(self, session: aiohttp.ClientSession, portal_url: str, *, token: str = "") -> None:
        parts = http_address(portal_url)
        if parts is None:
            raise click.ClickException("Give the portal's address like https://portal.example.org.")
        if token and not TOKEN.fullmatch(token):
            raise click.ClickException("This is no API token. Copy the whole of it, and no more.")
        if token and "@" in parts.netloc:
            # Both are sent in the same header.
            raise click.ClickException("Give an API token or a password in the address, not both.")
        self.session = session
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._portal_url = portal_url
        self.shown_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer's JSON; `Refused` for an error, `ClickException` after many tries."""
        call = partial(self._call, method, path, body)
        try:
            return await retry(call, on=TEMPORARY, backoff=BACKOFF, attempts=ATTEMPTS)
        except TEMPORARY as exc:
            raise click.ClickException(f"{self.shown_url}: {exc}") from exc

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        address = self._portal_url + path
        async with self.session.request(
            method, address, json=body, headers=self._headers
        ) as response:
            answer = await _json_of(response)
            # What has no problem document comes from a server or proxy that lost the portal.
            is_lost = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not answer
            if response.status in BUSY_STATUSES or is_lost:
                words = answer.get("detail", "temporarily unavailable")
                asked = response.headers.get("Retry-After", "")
                pause_s = float(asked) if asked.isascii() and asked.isdigit() else 0.0
                raise RetryLater(words, min(pause_s, LONGEST_PAUSE_S))
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise Refused(response.status, answer)
            return answer


async def _json_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The object that was answered, or an empty one: the portal answers nothing else."""
    found = None
    with suppress(aiohttp.ContentTypeError, ValueError):
        found = await response.json(content_type=None)
    return found if isinstance(found, dict) else {}
