"""The portal's JSON endpoints and streams as its own client calls them: with retries."""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp

from portal.retry import Backoff, RetryLater, retry
from portal.text import http_address

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=90)
# A stream sends something every 15 s.
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
EVENT_STREAM = "text/event-stream"
ATTEMPTS = 5
# With these, a portal may be away for 15 s.
BACKOFF = Backoff(first_s=2.0, cap_s=60.0)
TEMPORARY = (
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    TimeoutError,
    RetryLater,
)
BUSY_STATUSES = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
LONGEST_PAUSE_S = 60.0
# RFC 6750, section 2.1.
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# What answers without a code is no portal.
FROM_A_PROXY: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Something in front of the portal asks for a password. Give it in the "
    "address: https://user:password@portal.example.org.",
    HTTPStatus.FORBIDDEN: "Something in front of the portal refuses this. Ask who runs it.",
}


class PortalFailure(Exception):
    """What was asked for was not done; the text says why, and what to do about it."""


class PortalUnreachable(PortalFailure):
    """Several tries got no answer, from the portal or from its storage."""


class PortalRefused(PortalFailure):
    """The portal said no.

    With its status, its `code` for programs, its words, and the faults that it found: each has a
    `pointer` and a `message`.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        plain = FROM_A_PROXY.get(status, f"The portal answered with status {status}.")
        self.status = status
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", plain)
        self.errors: list[dict[str, str]] = problem.get("errors", [])
        faults = [f"  {it['pointer']}: {it['message']}" for it in self.errors]
        super().__init__("\n".join([self.detail, *faults]))


class Api:
    """The portal's JSON endpoints, with retries: every one of them may safely be repeated.

    `token` is an API token, which is sent to the portal alone: what goes to storage goes through
    `session`. `shown_url` is the portal's address without the user and password that it may hold.
    """

    def __init__(self, session: aiohttp.ClientSession, portal_url: str, *, token: str = "") -> None:
        parts = http_address(portal_url)
        if parts is None:
            raise PortalFailure("Give the portal's address like https://portal.example.org.")
        if token and not TOKEN.fullmatch(token):
            raise PortalFailure("This is no API token. Copy the whole of it, and no more.")
        if token and "@" in parts.netloc:
            # Both are sent in the same header.
            raise PortalFailure("Give an API token or a password in the address, not both.")
        self.session = session
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._portal_url = portal_url
        self.shown_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    async def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str = ""
    ) -> Any:
        """The answer's JSON; with an idempotency key, of what is done once.

        Raises `PortalRefused` and `PortalUnreachable`.
        """
        headers = {**self._headers, **({"Idempotency-Key": key} if key else {})}
        call = partial(self._call, method, path, body, headers)
        try:
            return await retry(call, on=TEMPORARY, backoff=BACKOFF, attempts=ATTEMPTS)
        except TEMPORARY as exc:
            raise PortalUnreachable(f"{self.shown_url}: {exc}") from exc

    async def follow(self, path: str, *, after: str = "") -> AsyncGenerator[dict[str, Any]]:
        """What the messages of a stream say until it breaks off; none where there are no streams.

        With `after` it goes on after the message of this id.
        """
        headers = {**self._headers, "Accept": EVENT_STREAM}
        if after:
            headers["Last-Event-ID"] = after
        options: dict[str, Any] = {"headers": headers, "timeout": STREAM_TIMEOUT}
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.get(self._portal_url + path, **options) as response:
                if response.content_type != EVENT_STREAM:
                    return
                fields: dict[str, str] = {}
                # The portal writes the data of a message on one line.
                async for line in response.content:
                    name, _, value = line.decode().rstrip("\r\n").partition(": ")
                    if name:
                        fields[name] = value
                    elif "data" in fields:
                        yield json.loads(fields["data"])
                        fields = {}

    async def _call(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> Any:
        address = self._portal_url + path
        async with self.session.request(method, address, json=body, headers=headers) as response:
            answer = await _json_of(response)
            # What has no problem document comes from a server or proxy that lost the portal.
            is_lost = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not answer
            if response.status in BUSY_STATUSES or is_lost:
                words = answer.get("detail", "temporarily unavailable")
                asked = response.headers.get("Retry-After", "")
                pause_s = float(asked) if asked.isascii() and asked.isdigit() else 0.0
                raise RetryLater(words, min(pause_s, LONGEST_PAUSE_S))
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise PortalRefused(response.status, answer)
            return answer


async def _json_of(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The object that was answered, or an empty one: the portal answers nothing else."""
    found = None
    with suppress(aiohttp.ContentTypeError, ValueError):
        found = await response.json(content_type=None)
    return found if isinstance(found, dict) else {}
