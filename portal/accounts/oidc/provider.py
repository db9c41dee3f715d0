"""The provider of single sign-on: where it is, its keys, and what a code is redeemed for.

What it says of itself is kept for an hour. A token signed by a key that is not known has its keys
asked for again, at most every half a minute. All requests have time limits, and no redirect is
followed. Nothing here is logged: codes, tokens and the secret are in these requests.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import Any
from urllib.parse import quote_plus

import httpx
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc.errors import BadSignatureError, InvalidKeyIdError
from joserfc.jwk import KeySet

from portal.accounts.oidc import id_tokens
from portal.accounts.oidc.asking import ask_json
from portal.accounts.oidc.claims import value_of
from portal.accounts.oidc.endpoints import Endpoints, read_endpoints
from portal.accounts.oidc.sign_ons import CALLBACK, SignOnSecrets
from portal.concurrency import CachedValue
from portal.config import Config
from portal.errors import ProviderUnavailable, SingleSignOnRefused

SCOPES = ("openid", "email", "profile")
KEEP_S = 3600.0
KEYS_AGAIN_S = 30.0
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

    def __init__(
        self, config: Config, http: httpx.AsyncClient, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._config = config
        self._http = http
        self._endpoints = CachedValue(self._fetch_endpoints, clock=clock)
        self._keys = CachedValue(self._fetch_keys, clock=clock)

    async def discover(self) -> Endpoints:
        """Where to ask it for what (OpenID Connect Discovery 1.0)."""
        return await self._endpoints.get(max_age_s=KEEP_S)

    async def check(self) -> None:
        """Ask it for all that it says of itself."""
        await self._keys.get(max_age_s=KEEP_S)

    async def authorization_url(self, secrets: SignOnSecrets) -> str:
        """Where the browser is sent to sign in."""
        endpoints = await self.discover()
        wanted = self._config.oidc_role_claim
        is_scope = self._config.oidc_roles and wanted in endpoints.scopes
        url: str = prepare_grant_uri(
            endpoints.authorization,
            client_id=self._config.oidc_client_id,
            response_type="code",
            redirect_uri=self._redirect_uri,
            scope=" ".join([*SCOPES, *([wanted] if is_scope else [])]),
            state=secrets.state,
            nonce=secrets.nonce,
            code_challenge=create_s256_code_challenge(secrets.verifier),
            code_challenge_method="S256",
        )
        return url

    async def claims_of(self, code: str, secrets: SignOnSecrets) -> Mapping[str, Any]:
        """Who has signed in, by the code that came back.

        Raises `SingleSignOnRefused` for a code or an ID token that is not good.
        """
        endpoints = await self.discover()
        tokens = await self._redeem(endpoints, code, secrets.verifier)
        claims = await self._verified(tokens, secrets.nonce)
        if endpoints.userinfo and not self._is_complete(claims):
            return await self._completed(endpoints.userinfo, claims, tokens)
        return claims

    @property
    def _redirect_uri(self) -> str:
        return self._config.public_url + CALLBACK

    async def _redeem(self, endpoints: Endpoints, code: str, verifier: str) -> dict[str, Any]:
        config = self._config
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        client = {"client_id": config.oidc_client_id, "client_secret": config.oidc_client_secret}
        # RFC 6749, section 2.3.1: both are encoded as in a form first.
        auth = httpx.BasicAuth(*map(quote_plus, client.values())) if endpoints.takes_basic else None
        form |= {} if auth else client
        status, tokens = await ask_json(self._http, "POST", endpoints.token, data=form, auth=auth)
        if status == HTTPStatus.UNAUTHORIZED or tokens.get("error") == "invalid_client":
            raise ProviderUnavailable(WRONG_CLIENT) from ValueError("it refuses the client")
        if status != HTTPStatus.OK or not isinstance(tokens.get("id_token"), str):
            raise SingleSignOnRefused(UNTRUSTED) from ValueError(
                f"token endpoint: {status} {str(tokens.get('error', ''))[:40]!r}"
            )
        return tokens

    async def _verified(self, tokens: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        try:
            try:
                return self._verify(tokens, nonce, await self._keys.get(max_age_s=KEEP_S))
            except (InvalidKeyIdError, BadSignatureError):
                return self._verify(tokens, nonce, await self._keys.get(max_age_s=KEYS_AGAIN_S))
        except id_tokens.FAULTS as exc:
            raise SingleSignOnRefused(UNTRUSTED) from exc

    def _verify(self, tokens: Mapping[str, Any], nonce: str, keys: KeySet) -> dict[str, Any]:
        return id_tokens.verify(
            tokens["id_token"],
            keys,
            issuer=self._config.oidc_issuer,
            client_id=self._config.oidc_client_id,
            nonce=nonce,
            access_token=str(tokens.get("access_token", "")),
        )

    def _is_complete(self, claims: Mapping[str, Any]) -> bool:
        """Whether the ID token says all that is needed; many providers keep it short."""
        has_role = value_of(claims, self._config.oidc_role_claim) is not None
        return "email" in claims and (has_role or not self._config.oidc_roles)

    async def _completed(
        self, url: str, claims: dict[str, Any], tokens: Mapping[str, Any]
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {tokens.get('access_token', '')}"}
        status, more = await ask_json(self._http, "GET", url, headers=headers)
        # OpenID Connect Core 1.0, section 5.3.2: it has to be about the same person.
        if status != HTTPStatus.OK or more.get("sub") != claims["sub"]:
            raise SingleSignOnRefused(UNTRUSTED) from ValueError(f"userinfo endpoint: {status}")
        return more | claims

    async def _fetch_endpoints(self) -> Endpoints:
        issuer = self._config.oidc_issuer
        url = issuer.rstrip("/") + "/.well-known/openid-configuration"
        status, found = await ask_json(self._http, "GET", url)
        try:
            if status != HTTPStatus.OK:
                raise ValueError(f"{url} answers {status}")
            return read_endpoints(found, issuer=issuer)
        except ValueError as exc:
            raise ProviderUnavailable from exc

    async def _fetch_keys(self) -> KeySet:
        status, found = await ask_json(self._http, "GET", (await self.discover()).keys)
        try:
            if status != HTTPStatus.OK:
                raise ValueError(f"keys: {status}")
            return KeySet.import_key_set({"keys": found["keys"]})
        except id_tokens.FAULTS as exc:
            raise ProviderUnavailable from exc
