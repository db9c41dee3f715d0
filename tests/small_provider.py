"""A small OpenID Connect provider, which can be made to lie: for what a good one does not do.

It speaks the real protocol over HTTP: discovery, keys, codes that are redeemed once with PKCE by
the client that they are for, signed ID tokens, userinfo. A test changes one thing of that.
"""

import hashlib
import json
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "portal's own", "a secret: of %100 letters/+"
Claims = dict[str, Any]


def new_key(kid: str) -> RSAKey:
    """A key that ID tokens are signed with."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(header: Claims, claims: Claims, signature: bytes = b"") -> str:
    """A token with whatever signature, as an attacker writes it."""
    return ".".join([*(b64(json.dumps(it).encode()) for it in (header, claims)), b64(signature)])


@dataclass
class SmallProvider:
    """What it says, and how often it was asked. `person` has the claims of who signs in there."""

    issuer: str
    person: Claims = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: new_key("first"))
    # What a test has it do wrong.
    forge: Callable[["SmallProvider", Claims], str] | None = None
    in_token: bool = True
    userinfo_subject: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    codes: dict[str, Claims] = field(default_factory=dict)
    tokens: dict[str, Claims] = field(default_factory=dict)
    sent: list[Claims] = field(default_factory=list)

    async def discovery(self, request: web.Request) -> web.Response:
        self.asked["discovery"] += 1
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "scopes_supported": ["openid", "email", "profile", "groups"],
        }
        return web.json_response(found)

    async def keys(self, request: web.Request) -> web.Response:
        self.asked["keys"] += 1
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Signs the person in without a question, and leads back."""
        asked = dict(request.query)
        code = secrets.token_urlsafe()
        self.codes[code] = {**asked, "person": dict(self.person)}
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        raise web.HTTPSeeOther(f"{asked['redirect_uri']}?{back}")

    async def token(self, request: web.Request) -> web.Response:
        self.asked["token"] += 1
        form = dict(await request.post())
        self.sent.append({**form, "authorization": request.headers.get("Authorization", "")})
        if self.client_of(request, form) != (CLIENT_ID, CLIENT_SECRET):
            return web.json_response({"error": "invalid_client"}, status=401)
        # Each code is good for one try.
        asked = self.codes.pop(str(form.get("code")), None)
        if asked is None or not self.is_for(asked, form):
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token = secrets.token_urlsafe()
        self.tokens[access_token] = asked["person"]
        answer = {"access_token": access_token, "token_type": "Bearer", "expires_in": 60}
        return web.json_response({**answer, "id_token": self.id_token(asked, access_token)})

    @staticmethod
    def client_of(request: web.Request, form: Claims) -> tuple[str, str]:
        """Who redeems a code, by RFC 6749, section 2.3.1."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return form.get("client_id", ""), form.get("client_secret", "")
        name, _, secret = b64decode(text).decode().partition(":")
        return unquote_plus(name), unquote_plus(secret)

    @staticmethod
    def is_for(asked: Claims, form: Claims) -> bool:
        """Whether a code is redeemed by who asked for it (RFC 7636, section 4.6)."""
        challenge = b64(hashlib.sha256(str(form.get("code_verifier")).encode()).digest())
        return (
            asked.get("code_challenge_method") == "S256"
            and asked.get("code_challenge") == challenge
            and asked["redirect_uri"] == form.get("redirect_uri")
            and form.get("grant_type") == "authorization_code"
        )

    def id_token(self, asked: Claims, access_token: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": asked["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "at_hash": b64(hashlib.sha256(access_token.encode()).digest()[:16]),
            **(asked["person"] if self.in_token else {"sub": asked["person"]["sub"]}),
        }
        return self.forge(self, claims) if self.forge else self.signed(claims)

    def signed(self, claims: Claims, key: RSAKey | None = None, **header: Any) -> str:
        key = key or self.key
        return jwt.encode({"alg": "RS256", "kid": key.kid, **header}, claims, key)

    async def userinfo(self, request: web.Request) -> web.Response:
        self.asked["userinfo"] += 1
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        person = self.tokens.get(token)
        if person is None:
            return web.json_response({"error": "invalid_token"}, status=401)
        other = {"sub": self.userinfo_subject} if self.userinfo_subject else {}
        return web.json_response({**person, **other})


@asynccontextmanager
async def small_provider() -> AsyncIterator[SmallProvider]:
    """One that listens on a port of its own."""
    app, provider = web.Application(), SmallProvider("")
    app.router.add_get("/.well-known/openid-configuration", provider.discovery)
    app.router.add_get("/keys", provider.keys)
    app.router.add_get("/authorize", provider.authorize)
    app.router.add_post("/token", provider.token)
    app.router.add_get("/userinfo", provider.userinfo)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.issuer = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield provider
    await runner.cleanup()
