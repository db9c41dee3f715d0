"""A provider of single sign-on that can send false claims.

It implements the real protocol over HTTP: discovery, keys, codes that their client redeems once
with PKCE, signed ID tokens, userinfo.
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

CLIENT_ID = "portal's own"
CLIENT_SECRET = "a secret: of %100 letters/+"
Claims = dict[str, Any]


def new_key(kid: str) -> RSAKey:
    """Return a new key that signs ID tokens."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class SmallProvider:
    """Provider that signs in `person`, whose claims replace its own in ID tokens.

    `request_counts` counts the requests by kind.
    """

    issuer: str = ""
    person: Claims = field(default_factory=dict)
    userinfo: Claims = field(default_factory=dict)
    # The published key, and a different one that signs instead.
    key: RSAKey = field(default_factory=cache(lambda: new_key("first")))
    forger: RSAKey | None = None
    request_counts: Counter[str] = field(default_factory=Counter)
    # Parameters of the authorization request, by code.
    codes: dict[str, Claims] = field(default_factory=dict)
    # Values that must not appear in logs.
    secrets: set[str] = field(default_factory=set)

    async def discovery(self, request: web.Request) -> web.Response:
        names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        endpoints = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return web.json_response(
            {**endpoints, "issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        )

    async def keys(self, request: web.Request) -> web.Response:
        self.request_counts["keys"] += 1
        return web.json_response({"keys": [self.key.as_dict(private=False)]})

    async def authorize(self, request: web.Request) -> web.Response:
        """Sign the person in without a question, and redirect back."""
        query = dict(request.query)
        code = secrets.token_urlsafe()
        self.codes[code] = query
        back = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
        raise web.HTTPSeeOther(f"{query['redirect_uri']}?{back}")

    async def token(self, request: web.Request) -> web.Response:
        self.request_counts["token"] += 1
        form = dict(await request.post())
        # RFC 6749, section 2.3.1.
        basic = request.headers["Authorization"].removeprefix("Basic ")
        client = [unquote_plus(part) for part in b64decode(basic).decode().split(":")]
        if client != [CLIENT_ID, CLIENT_SECRET]:
            return web.json_response({"error": "invalid_client"}, status=401)
        # A code is valid for one try, by the client that requested it (RFC 7636, section 4.6).
        authorized = self.codes.pop(str(form["code"]), {})
        challenge = b64(hashlib.sha256(str(form["code_verifier"]).encode()).digest())
        redeemed = {"code_challenge": challenge, "redirect_uri": form["redirect_uri"]}
        if not authorized.items() >= redeemed.items():
            return web.json_response({"error": "invalid_grant"}, status=400)
        access_token = secrets.token_urlsafe()
        now = int(time.time())
        claims = {
            **{"iss": self.issuer, "aud": authorized["client_id"], "nonce": authorized["nonce"]},
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
    """Run a provider on a free port."""
    provider = SmallProvider()
    async with serving(
        web.get("/.well-known/openid-configuration", provider.discovery),
        web.get("/keys", provider.keys),
        web.get("/authorize", provider.authorize),
        web.post("/token", provider.token),
        web.get("/userinfo", provider.about_person),
    ) as provider.issuer:
        yield provider
