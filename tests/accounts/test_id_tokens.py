"""Verification of ID tokens by the rules of OpenID Connect Core 1.0, section 3.1.3.7."""

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from single_sign_on import b64, new_key

from portal.accounts.oidc import FAULTS, LEEWAY_S, verify

ISSUER = "https://id.example"
CLIENT = "portal"
NONCE = "a-nonce"
KEY = new_key("one")
OTHER_KEY = new_key("one")
KEYS = KeySet.import_key_set({"keys": [KEY.as_dict(private=False)]})


def token(key: RSAKey = KEY, **changes: Any) -> str:
    """Sign a token with changed claims; `...` removes a claim, and times are relative to now."""
    claims = {"iss": ISSUER, "sub": "ann", "aud": CLIENT, "nonce": NONCE, "exp": 3600, "iat": 0}
    claims |= changes
    for name in {"exp", "iat", "nbf"} & claims.keys():
        claims[name] = (
            claims[name] + int(time.time()) if type(claims[name]) is int else claims[name]
        )
    claims = {name: value for name, value in claims.items() if value is not ...}
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


def claims_of(text: str) -> dict[str, Any]:
    return verify(text, KEYS, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, access_token="access")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": [CLIENT], "azp": CLIENT},
        {"aud": ["another", CLIENT], "azp": CLIENT},
        {"exp": 30 - LEEWAY_S},
        {"iat": LEEWAY_S - 30},
    ],
)
def test_valid_tokens_are_accepted(changes: dict[str, Any]) -> None:
    assert claims_of(token(**changes))["sub"] == "ann"


@pytest.mark.parametrize(
    "changes",
    [
        *({name: ...} for name in ("iss", "sub", "aud", "exp", "iat", "nonce")),
        {"iss": "https://evil.example"},
        {"iss": ISSUER + "/"},
        {"aud": "another"},
        {"aud": []},
        {"aud": ["another", CLIENT]},
        {"aud": ["another", CLIENT], "azp": "another"},
        {"exp": -LEEWAY_S - 30},
        {"exp": "tomorrow"},
        {"exp": float("nan")},
        {"iat": LEEWAY_S + 600},
        {"nbf": LEEWAY_S + 600},
        {"nonce": "another"},
        {"nonce": [NONCE]},
        {"sub": 5},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
)
def test_tokens_with_wrong_claims_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FAULTS):
        claims_of(token(**changes))


def test_tokens_without_a_signature_of_the_issuer_are_refused() -> None:
    """The signature is missing, of a changed token, or by another key with the same id."""
    head, body, signature = token().split(".")
    other_body = token(sub="olga").split(".")[1]
    for parts in ((head, other_body, signature), (head, body, ""), (head, body), (head,)):
        with pytest.raises(FAULTS):
            claims_of(".".join(parts))
    with pytest.raises(FAULTS):
        claims_of(token(OTHER_KEY))


@pytest.mark.parametrize("algorithm", ["none", "nOnE", "", "HS256"])
def test_algorithms_that_need_no_private_key_are_refused(algorithm: str) -> None:
    """The token has no signature, or an HMAC whose secret is the public key."""
    head = b64(json.dumps({"alg": algorithm, "kid": KEY.kid}).encode())
    signed = f"{head}.{token().split('.')[1]}"
    by_public_key = hmac.digest(KEY.as_pem(private=False), signed.encode(), hashlib.sha256)
    for signature in (b"", by_public_key):
        with pytest.raises(FAULTS):
            claims_of(f"{signed}.{b64(signature)}")
