"""Client of the OpenID Connect provider: its metadata, its keys, and the claims of a person.

Implements the authorization code flow of OpenID Connect Core 1.0, with PKCE (RFC 7636), state and
nonce. Metadata and keys are cached for an hour; a token with an unknown key has the keys fetched
again, at most every 30 s. Redirects are not followed. Requests are not logged, because they contain
codes, tokens and the client secret. The libraries take 10 MB of memory: import this module only
where single sign-on is configured. Limits: one provider; signing out of the portal does not sign
out of the provider.
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
from portal.locale.messages import Message

Metadata = Mapping[str, Any]
Result = TypeVar("Result")

# Time limit for all requests of one sign-on.
TIMEOUT_S = 10.0
CACHE_S = 3600.0
KEYS_AGAIN_S = 30.0
# Allowed clock skew of the provider, in seconds.
LEEWAY_S = 60
SCOPES = ("openid", "email", "profile")
BASIC = "client_secret_basic"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
# Asymmetric algorithms only: `none` and the HS family would accept tokens of others.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
# Errors of the libraries for malformed and untrusted tokens.
FAULTS = (JoseError, ValueError, TypeError, KeyError)
UNTRUSTED = Message(
    "The response of the single sign-on provider is not trustworthy. Sign in again. If that does "
    "not help, tell the operator of this portal."
)
WRONG_CLIENT = Message(
    "The single sign-on provider does not accept this portal. Sign in with your password, and ask "
    "the operator of this portal to check its client id and secret."
)


class Provider:
    """Provider of the settings. Every method raises `ProviderUnavailable` if it is unreachable."""

    def __init__(self, config: Config, *, clock: Callable[[], float] = monotonic) -> None:
        self._config = config
        self._metadata = CachedValue(self._fetch_metadata, clock=clock)
        self._keys = CachedValue(self._fetch_keys, clock=clock)

    async def discover(self) -> Metadata:
        """Return the provider's metadata (OpenID Connect Discovery 1.0, section 3)."""
        return await self._metadata.get(max_age_s=CACHE_S)

    async def check(self) -> None:
        """Fetch the provider's metadata and keys. Those younger than `CACHE_S` are used again.

        Raises `ProviderUnavailable`, also for metadata or keys that can't be used.
        """
        await self._keys.get(max_age_s=CACHE_S)

    async def authorization_url(self, secrets: SignOnSecrets, *, needs_groups: bool) -> str:
        """Return the URL at the provider to which the browser is redirected.

        With `needs_groups` or mapped roles, the person's groups are asked for.
        """
        metadata = await self.discover()
        claim = self._config.oidc_role_claim
        is_needed = needs_groups or self._config.oidc_roles
        has_scope = is_needed and claim in (metadata.get("scopes_supported") or ())
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

    async def claims_of(
        self, code: str, secrets: SignOnSecrets, *, needs_groups: bool
    ) -> Mapping[str, Any]:
        """Exchange the code of a callback for the person's verified claims.

        Raises `SingleSignOnRefused` for an invalid code or ID token.
        """
        metadata = await self.discover()
        async with self._client() as http:
            tokens = await self._redeem(http, metadata, code, secrets.verifier)
            claims = await self._verified(tokens, secrets.nonce)
            url = metadata.get("userinfo_endpoint")
            if not url or self._is_complete(claims, needs_groups=needs_groups):
                return claims
            bearer = {"Authorization": f"Bearer {tokens.get('access_token', '')}"}
            async with http.get(url, headers=bearer, allow_redirects=False) as response:
                userinfo = await response.json(content_type=None)
            # OpenID Connect Core 1.0, section 5.3.2: the subject must be the same.
            if response.status != HTTPStatus.OK or userinfo.get("sub") != claims["sub"]:
                cause = ValueError(f"userinfo endpoint: {response.status}")
                raise SingleSignOnRefused(UNTRUSTED) from cause
            return {**userinfo, **claims}

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
        headers = {}
        if BASIC in (metadata.get("token_endpoint_auth_methods_supported") or [BASIC]):
            # RFC 6749, section 2.3.1: both values are form-encoded first.
            basic = aiohttp.encode_basic_auth(*map(quote_plus, client.values()))
            headers["Authorization"] = basic
        else:
            form |= client
        url = metadata["token_endpoint"]
        async with http.post(url, data=form, headers=headers, allow_redirects=False) as response:
            tokens: Mapping[str, Any] = await response.json(content_type=None)
        error = tokens.get("error")
        if response.status == HTTPStatus.UNAUTHORIZED or error == "invalid_client":
            raise ProviderUnavailable(WRONG_CLIENT) from ValueError("it refuses the client")
        if response.status != HTTPStatus.OK or "id_token" not in tokens:
            cause = ValueError(f"token endpoint: {response.status} {str(error)[:40]!r}")
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

    def _is_complete(self, claims: Mapping[str, Any], *, needs_groups: bool) -> bool:
        """Return whether the ID token has all claims; many providers send some by userinfo only."""
        has_groups = value_of(claims, self._config.oidc_role_claim) is not None
        is_needed = needs_groups or self._config.oidc_roles
        return "email" in claims and (has_groups or not is_needed)

    async def _fetch_metadata(self) -> Metadata:
        issuer = self._config.oidc_issuer
        address = issuer.rstrip("/") + "/.well-known/openid-configuration"
        return await self._fetch(address, lambda document: _checked_metadata(document, issuer))

    async def _fetch_keys(self) -> KeySet:
        address = (await self.discover())["jwks_uri"]
        return await self._fetch(
            address, lambda document: KeySet.import_key_set({"keys": document["keys"]})
        )

    async def _fetch(self, url: str, parse: Callable[[Any], Result]) -> Result:
        """Fetch a JSON document and parse it; errors of `parse` mean an unavailable provider."""
        async with self._client() as http:
            async with http.get(url, allow_redirects=False) as response:
                document = await response.json(content_type=None)
            if response.status != HTTPStatus.OK:
                raise ValueError(f"{url} responds with status {response.status}")
            return parse(document)


def verify(
    token: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, access_token: str = ""
) -> dict[str, Any]:
    """Verify an ID token and return its claims (OpenID Connect Core 1.0, section 3.1.3.7).

    Raises one of `FAULTS` for a token of another issuer, client or sign-on, and for an expired one;
    `InvalidKeyIdError` and `BadSignatureError` if newer keys might verify it.
    """
    decoded = jwt.decode(token, keys, algorithms=ALGORITHMS)
    essential = {"iss": issuer, "aud": client_id}
    claims = CodeIDToken(
        decoded.claims,
        decoded.header,
        {name: {"essential": True, "value": value} for name, value in essential.items()},
        {"client_id": client_id, "nonce": nonce, "access_token": access_token},
    )
    claims.validate(leeway=LEEWAY_S)
    return dict(claims)


def _checked_metadata(metadata: Metadata, issuer: str) -> Metadata:
    # Section 4.3: the issuer must be identical, or one provider could speak for another.
    if metadata.get("issuer") != issuer:
        raise ValueError(f"its issuer is {metadata.get('issuer')!r} instead of {issuer!r}")
    # An https issuer must not redirect secrets to http.
    schemes = ("https://",) if issuer.startswith("https:") else ("https://", "http://")
    for name in ENDPOINTS:
        is_missing = name == "userinfo_endpoint" and not metadata.get(name)
        if not is_missing and not str(metadata.get(name)).startswith(schemes):
            raise ValueError(f"its {name} is not a usable URL")
    return metadata
