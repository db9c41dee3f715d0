"""What the tests of single sign-on share: a provider, and a visitor who goes there and back."""

import sys
from asyncio.subprocess import DEVNULL, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from quart import Quart, Response
from running_portal import answers, free_port, until
from signed_in import OWN_PAGE, Sender, session_in, text_of

from portal.accounts.oidc import Provider
from portal.web.cookies import SIGN_ON

LEAVE, CALLBACK = "/sign-in/oidc", "/sign-in/oidc/callback"
# For an answer of the provider, however busy the machine is.
TIMEOUT_S = 60
# `oidc-provider-mock` takes any client, but does not decode what RFC 6749 has encoded.
SETTINGS = {"oidc_client_id": "portal", "oidc_client_secret": "a-secret"}


@asynccontextmanager
async def provider_process() -> AsyncIterator[str]:
    """`oidc-provider-mock` as a process of its own; its issuer."""
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce"),
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        await until(lambda: answers(f"{issuer}/.well-known/openid-configuration"), timeout_s=30)
        yield issuer
    finally:
        process.terminate()
        await process.wait()


async def tell(issuer: str, subject: str, **claims: Any) -> None:
    """Tell `oidc-provider-mock` what to claim of a person."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
        answer = await http.put(f"{issuer}/users/{subject}", json=claims)
    assert answer.status_code == 204, answer.text


@asynccontextmanager
async def with_provider(app: Quart, issuer: str, **settings: Any) -> AsyncIterator[Quart]:
    """That app with single sign-on by this provider, and with these settings."""
    context = app.extensions["portal"]
    config = replace(context.config, oidc_issuer=issuer, **{**SETTINGS, **settings})
    app.extensions["portal"] = replace(context, config=config, provider=Provider(config))
    try:
        yield app
    finally:
        app.extensions["portal"] = context


class Visitor:
    """A browser that follows no link by itself, but keeps the cookie of a sign-in under way."""

    def __init__(self, app: Quart, session: str = "") -> None:
        self.app = app
        self.cookies = {"portal_session": session} if session else {}

    async def get(self, path: str) -> Response:
        """The answer; its cookies are kept."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        # By a link from the provider's page.
        headers = {**OWN_PAGE, "Sec-Fetch-Site": "cross-site", "Cookie": cookie}
        answer = await Sender(self.app, headers).get(path)
        for header in answer.headers.getlist("Set-Cookie"):
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer

    async def leave(self, next_path: str = "") -> str:
        """The address at the provider that the portal leads to."""
        query = f"?{urlencode({'next': next_path})}" if next_path else ""
        answer = await self.get(LEAVE + query)
        assert answer.status_code == 303, await text_of(answer)
        return answer.headers["Location"]

    async def come_back(self, address: str) -> Response:
        """The answer to what the provider leads back to."""
        parts = urlsplit(address)
        assert parts.path == CALLBACK, address
        return await self.get(f"{parts.path}?{parts.query}")

    async def sign_in(self, subject: str = "", *, next_path: str = "") -> Response:
        """Go there, sign in as this person, and come back."""
        return await self.come_back(await approved(await self.leave(next_path), subject))

    @property
    def sign_on(self) -> str:
        """What the cookie of the sign-in under way holds."""
        return self.cookies.get(SIGN_ON.plain_name, "")


async def approved(address: str, subject: str = "", **form: str) -> str:
    """Where the provider leads back to, when this person has signed in there."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
        if subject or form:
            answer = await http.post(address, data={"sub": subject, **form})
        else:
            answer = await http.get(address)
    assert answer.is_redirect, answer.text
    return answer.headers["Location"]


def query_of(address: str) -> dict[str, str]:
    """What an address says after its question mark."""
    return {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}


def is_signed_in(answer: Response) -> bool:
    """Whether an answer begins a session."""
    return answer.status_code == 303 and bool(session_in(answer))
