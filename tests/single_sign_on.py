"""Single sign-on in tests: a provider that can be made to lie.

The provider speaks the real protocol over HTTP: discovery, keys, codes that are redeemed once with
PKCE by the client that they are for, signed ID tokens, userinfo.
"""

import hashlib
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import RSAKey
from serving import serving

CLIENT_ID, CLIENT_SECRET = "portal's own", "a secret: of %100 letters/+"
Claims = dict[str, Any]


def new_key(kid: str) -> RSAKey:
    """A key that ID tokens are signed with."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class SmallProvider:
    """Signs in `person`, whose claims replace its own in ID tokens; counts what it was `asked`."""

    issuer: str = ""
    person: Claims = field(default_factory=dict)
    userinfo: Claims = field(default_factory=dict)
    # The one that it publishes, and the one that it signs with.
    key: RSAKey = field(default_factory=cache(lambda: new_key("first")))
    forger: RSAKey | None = None
    asked: Counter[str] = field(default_factory=Counter)
    # Of each code what it was asked for with.
    codes: dict[str, Claims] = field(default_factory=dict)
    # What nobody else is to know.
    secrets: set[str] = field(default_factory=set)

    async def discovery(self, request: web.Request) -> web.Response:
        names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        found = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return web.json_response(
            {**found, "issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        )

    async def keys(self, request: web.Request) -> web.Response:
        self.asked["keys"] += 1
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Signs the person in without a question, and leads back."""
        asked, code = dict(request.query), secrets.token_urlsafe()
        self.codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        raise web.HTTPSeeOther(f"{asked['redirect_uri']}?{back}")

    async def token(self, request: web.Request) -> web.Response:
        self.asked["token"] += 1
        form = dict(await request.post())
        # RFC 6749, section 2.3.1.
        basic = request.headers["Authorization"].removeprefix("Basic ")
        client = [unquote_plus(it) for it in b64decode(basic).decode().split(":")]
        if client != [CLIENT_ID, CLIENT_SECRET]:
            return web.json_response({"error": "invalid_client"}, status=401)
        # Each code is good for one try, of who asked for it (RFC 7636, section 4.6).
        asked = self.codes.pop(str(form["code"]), {})
        challenge = b64(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        redeemed = {"code_challenge": challenge, "redirect_uri": form["redirect_uri"]}
        if not asked.items() >= redeemed.items():
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token = secrets.token_urlsafe()
        now = int(time.time())
        claims = {
            **{"iss": self.issuer, "aud": asked["client_id"], "nonce": asked["nonce"]},
            **{"iat": now, "exp": now + 300, **self.person},
        }
        key = self.forger or self.key
        id_token = jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)
        self.secrets |= {str(form["code_verifier"]), access_token, id_token}
        return web.json_response({"access_token": access_token, "id_token": id_token})

    async def about_person(self, request: web.Request) -> web.Response:
        return web.json_response(self.userinfo)


@asynccontextmanager
async def small_provider() -> AsyncIterator[SmallProvider]:
    """One that listens on a port of its own."""
    provider = SmallProvider()
    async with serving(
        web.get("/.well-known/openid-configuration", provider.discovery),
        web.get("/keys", provider.keys),
        web.get("/authorize", provider.authorize),
        web.post("/token", provider.token),
        web.get("/userinfo", provider.about_person),
    ) as provider.issuer:
        yield provider
