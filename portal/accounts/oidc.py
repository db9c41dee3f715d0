"""The OpenID Connect provider: where it is, its keys, and who a code that it gave is for.

The authorization code flow of OpenID Connect Core 1.0, with PKCE (RFC 7636), state and nonce. What
the provider says of itself is cached for an hour; a token signed by an unknown key has the keys
asked for again, at most every half a minute. No redirect is followed. Nothing here is logged:
codes, tokens and the secret are in these requests. The libraries take 10 MB of memory: import this
module only where single sign-on is set up. Limits: one provider; signing out here does not sign
out there.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import quote_plus

import aiohttp
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core.claims import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from portal.accounts.identities import CALLBACK, SignOnSecrets, value_of
from portal.concurrency import CachedValue
from portal.config import Config
from portal.errors import ProviderUnavailable, SingleSignOnRefused

Metadata = Mapping[str, Any]
Result = TypeVar("Result")

# Of all that a person waits for at once.
TIMEOUT_S = 10.0
CACHE_S = 3600.0
KEYS_AGAIN_S = 30.0
# By so much the provider's clock may differ.
LEEWAY_S = 60
SCOPES = ("openid", "email", "profile")
BASIC = "client_secret_basic"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
# Signed with a key that the provider alone has. `none` and the HS family, for which a public key
# would do, are not among them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
# What the libraries raise for a token that is none, or not to be believed.
FAULTS = (JoseError, ValueError, TypeError, KeyError)
UNTRUSTED = (
    "The answer of the provider of single sign-on can't be trusted. Start again; if that does not "
    "help, tell whoever runs this portal."
)
WRONG_CLIENT = (
    "The provider of single sign-on does not accept this portal. Sign in with your password, and "
    "tell whoever runs the portal to look at its client id and secret."
)


class Provider:
    """The provider of the settings. Every method raises `ProviderUnavailable` when it is away."""

    def __init__(self, config: Config, *, clock: Callable[[], float] = monotonic) -> None:
        self._config = config
        self._metadata = CachedValue(self._fetch_metadata, clock=clock)
        self._keys = CachedValue(self._fetch_keys, clock=clock)

    async def discover(self) -> Metadata:
        """What it says of itself (OpenID Connect Discovery 1.0, section 3)."""
        return await self._metadata.get(max_age_s=CACHE_S)

    async def check(self) -> None:
        """Ask it for all that it says of itself."""
        await self._keys.get(max_age_s=CACHE_S)

    async def authorization_url(self, secrets: SignOnSecrets) -> str:
        """Where the browser is sent to sign in."""
        metadata, claim = await self.discover(), self._config.oidc_role_claim
        has_scope = self._config.oidc_roles and claim in (metadata.get("scopes_supported") or ())
        return str(
            prepare_grant_uri(
                metadata["authorization_endpoint"],
                client_id=self._config.oidc_client_id,
                response_type="code",
                redirect_uri=self._config.public_url + CALLBACK,
                scope=" ".join([*SCOPES, *([claim] if has_scope else [])]),
                state=secrets.state,
                nonce=secrets.nonce,
                code_challenge=create_s256_code_challenge(secrets.verifier),
                code_challenge_method="S256",
            )
        )

    async def claims_of(self, code: str, secrets: SignOnSecrets) -> Mapping[str, Any]:
        """Who has signed in, by the code that came back.

        Raises `SingleSignOnRefused` for a code or an ID token that is not good.
        """
        metadata = await self.discover()
        async with self._client() as http:
            tokens = await self._redeem(http, metadata, code, secrets.verifier)
            claims = await self._verified(tokens, secrets.nonce)
            url = metadata.get("userinfo_endpoint")
            if not url or self._is_complete(claims):
                return claims
            bearer = {"Authorization": f"Bearer {tokens.get('access_token', '')}"}
            async with http.get(url, headers=bearer, allow_redirects=False) as answer:
                more = await answer.json(content_type=None)
            # OpenID Connect Core 1.0, section 5.3.2: it has to be about the same person.
            if answer.status != HTTPStatus.OK or more.get("sub") != claims["sub"]:
                cause = ValueError(f"userinfo endpoint: {answer.status}")
                raise SingleSignOnRefused(UNTRUSTED) from cause
            return {**more, **claims}

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[aiohttp.ClientSession]:
        try:
            async with asyncio.timeout(TIMEOUT_S), aiohttp.ClientSession(trust_env=True) as http:
                yield http
        except (aiohttp.ClientError, TimeoutError, *FAULTS, AttributeError) as exc:
            raise ProviderUnavailable from exc

    async def _redeem(
        self, http: aiohttp.ClientSession, metadata: Metadata, code: str, verifier: str
    ) -> Mapping[str, Any]:
        config = self._config
        client = {"client_id": config.oidc_client_id, "client_secret": config.oidc_client_secret}
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": config.public_url + CALLBACK,
            "code_verifier": verifier,
        }
        if BASIC in (metadata.get("token_endpoint_auth_methods_supported") or [BASIC]):
            # RFC 6749, section 2.3.1: both are encoded as in a form first.
            basic = aiohttp.encode_basic_auth(*map(quote_plus, client.values()))
            headers = {"Authorization": basic}
        else:
            headers, form = {}, form | client
        url = metadata["token_endpoint"]
        async with http.post(url, data=form, headers=headers, allow_redirects=False) as answer:
            tokens: Mapping[str, Any] = await answer.json(content_type=None)
        error = tokens.get("error")
        if answer.status == HTTPStatus.UNAUTHORIZED or error == "invalid_client":
            raise ProviderUnavailable(WRONG_CLIENT) from ValueError("it refuses the client")
        if answer.status != HTTPStatus.OK or "id_token" not in tokens:
            cause = ValueError(f"token endpoint: {answer.status} {str(error)[:40]!r}")
            raise SingleSignOnRefused(UNTRUSTED) from cause
        return tokens

    async def _verified(self, tokens: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        expected = {
            "issuer": self._config.oidc_issuer,
            "client_id": self._config.oidc_client_id,
            "nonce": nonce,
            "access_token": str(tokens.get("access_token", "")),
        }
        try:
            keys = await self._keys.get(max_age_s=CACHE_S)
            try:
                return verify(tokens["id_token"], keys, **expected)
            except (InvalidKeyIdError, BadSignatureError):
                keys = await self._keys.get(max_age_s=KEYS_AGAIN_S)
                return verify(tokens["id_token"], keys, **expected)
        except FAULTS as exc:
            raise SingleSignOnRefused(UNTRUSTED) from exc

    def _is_complete(self, claims: Mapping[str, Any]) -> bool:
        """Whether the ID token says all that is needed; many providers keep it short."""
        has_role = value_of(claims, self._config.oidc_role_claim) is not None
        return "email" in claims and (has_role or not self._config.oidc_roles)

    async def _fetch_metadata(self) -> Metadata:
        issuer = self._config.oidc_issuer
        address = issuer.rstrip("/") + "/.well-known/openid-configuration"
        return await self._fetch(address, lambda found: _checked(found, issuer))

    async def _fetch_keys(self) -> KeySet:
        address = (await self.discover())["jwks_uri"]
        return await self._fetch(
            address, lambda found: KeySet.import_key_set({"keys": found["keys"]})
        )

    async def _fetch(self, url: str, read: Callable[[Any], Result]) -> Result:
        """What is read of the JSON at an address."""
        async with self._client() as http:
            async with http.get(url, allow_redirects=False) as answer:
                found = await answer.json(content_type=None)
            if answer.status != HTTPStatus.OK:
                raise ValueError(f"{url} answers with {answer.status}")
            return read(found)


def verify(
    token: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, access_token: str = ""
) -> dict[str, Any]:
    """The claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

    Raises one of `FAULTS` unless the issuer has signed it, for this portal, for this sign-in, and
    lately; `InvalidKeyIdError` and `BadSignatureError` if other keys might help.
    """
    found = jwt.decode(token, keys, algorithms=ALGORITHMS)
    wanted = {"iss": issuer, "aud": client_id}
    claims = CodeIDToken(
        found.claims,
        found.header,
        {name: {"essential": True, "value": value} for name, value in wanted.items()},
        {"client_id": client_id, "nonce": nonce, "access_token": access_token},
    )
    claims.validate(leeway=LEEWAY_S)
    return dict(claims)


def _checked(found: Metadata, issuer: str) -> Metadata:
    # Section 4.3: character by character, or one provider could speak for another.
    if found.get("issuer") != issuer:
        raise ValueError(f"it names the issuer {found.get('issuer')!r}, and not {issuer!r}")
    # What is asked for by https is not told by http.
    schemes = ("https://",) if issuer.startswith("https:") else ("https://", "http://")
    for name in ENDPOINTS:
        is_missing = name == "userinfo_endpoint" and not found.get(name)
        if not is_missing and not str(found.get(name)).startswith(schemes):
            raise ValueError(f"{name} is no address that can be used")
    return found
