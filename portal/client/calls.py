"""Calls of the portal's JSON endpoints and event streams, with retries."""

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
# The portal sends at least a comment every 15 s.
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
EVENT_STREAM = "text/event-stream"
ATTEMPTS = 5
# Five attempts with these pauses bridge an outage of 15 s.
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
# Messages for responses without a problem document, which come from a proxy.
FROM_A_PROXY: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "A proxy in front of the portal requires a password. Put it into the "
    "portal's URL: https://user:password@portal.example.org.",
    HTTPStatus.FORBIDDEN: "A proxy in front of the portal refuses this request. Ask its operator "
    "for access.",
}


class PortalFailure(Exception):
    """Failure of a call; the message gives the reason and the remedy."""


class PortalUnreachable(PortalFailure):
    """Several attempts got no response from the portal or its storage."""


class PortalRefused(PortalFailure):
    """Refusal by the portal, with the members of its problem document.

    `code` is for programs, `detail` for people; each of the `errors` has a `pointer` and a
    `message`.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        default = FROM_A_PROXY.get(status, f"The portal responded with status {status}.")
        self.status = status
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", default)
        self.errors: list[dict[str, str]] = problem.get("errors", [])
        faults = [f"  {error['pointer']}: {error['message']}" for error in self.errors]
        super().__init__("\n".join([self.detail, *faults]))


class Api:
    """The portal's JSON endpoints; calls are retried, because all of them are idempotent.

    `token` is an API token, which is sent to the portal only, not with requests to storage through
    `session`. `shown_url` is the portal's URL without user and password.
    """

    def __init__(self, session: aiohttp.ClientSession, portal_url: str, *, token: str = "") -> None:
        parts = http_address(portal_url)
        if parts is None:
            raise PortalFailure("Use a portal's URL like https://portal.example.org.")
        if token and not TOKEN.fullmatch(token):
            raise PortalFailure("The API token is invalid. Copy all of it, and nothing else.")
        if token and "@" in parts.netloc:
            # Both would be sent in the header Authorization.
            raise PortalFailure("Use an API token or a password in the URL, not both.")
        self.session = session
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._portal_url = portal_url
        self.shown_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    async def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str = ""
    ) -> Any:
        """Call an endpoint and return its JSON; `key` is an idempotency key.

        Raises `PortalRefused` and `PortalUnreachable`.
        """
        headers = {**self._headers, **({"Idempotency-Key": key} if key else {})}
        call = partial(self._call, method, path, body, headers)
        try:
            return await retry(call, on=TEMPORARY, backoff=BACKOFF, attempts=ATTEMPTS)
        except TEMPORARY as exc:
            raise PortalUnreachable(f"Could not reach {self.shown_url}: {exc}") from exc

    async def follow(self, path: str, *, after: str = "") -> AsyncGenerator[dict[str, Any]]:
        """Yield the data of a stream's messages until it ends; nothing without a stream.

        With `after` the stream resumes after the message with this id.
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
                # Messages of the portal have one line of data.
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
            document = None
            with suppress(ValueError):
                document = await response.json(content_type=None)
            if not isinstance(document, dict):
                document = {}
            # Without a problem document an error is from a proxy, or from a portal that was killed.
            is_lost = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not document
            if response.status in BUSY_STATUSES or is_lost:
                detail = document.get("detail", "temporarily unavailable")
                retry_after = response.headers.get("Retry-After", "")
                is_number = retry_after.isascii() and retry_after.isdigit()
                pause_s = float(retry_after) if is_number else 0.0
                raise RetryLater(detail, min(pause_s, LONGEST_PAUSE_S))
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise PortalRefused(response.status, document)
            return document
