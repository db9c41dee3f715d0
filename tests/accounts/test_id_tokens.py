"""What is believed of an ID token: every rule of OpenID Connect Core 1.0, section 3.1.3.7."""

import hashlib
import hmac
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from small_provider import b64, new_key, unsigned

from portal.accounts.oidc import ALGORITHMS, FAULTS, LEEWAY_S, verify

ISSUER, CLIENT, NONCE = "https://id.example", "portal", "a-nonce"
KEY, OTHER_KEY = new_key("one"), new_key("one")
KEYS = KeySet.import_key_set({"keys": [KEY.as_dict(private=False)]})
NOW = int(time.time())
TIMES = ("exp", "iat", "nbf")
GOOD: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "ann",
    "aud": CLIENT,
    "exp": NOW + 3600,
    "iat": NOW,
    "nonce": NONCE,
}


def token(key: RSAKey = KEY, **changes: Any) -> str:
    """A signed token with these claims changed; `...` leaves one out."""
    claims = {name: it for name, it in {**GOOD, **changes}.items() if it is not ...}
    claims |= {name: later(it) for name, it in claims.items() if name in TIMES}
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


def later(moment: object) -> object:
    """The same from now as it was from when the tests were collected; what is no time stays."""
    is_time = isinstance(moment, int) and abs(moment - NOW) < 10_000
    return int(moment + time.time() - NOW) if is_time else moment


def untimed(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: it for name, it in claims.items() if name not in TIMES}


def claims_of(text: str, keys: KeySet = KEYS) -> dict[str, Any]:
    return verify(text, keys, issuer=ISSUER, client_id=CLIENT, nonce=NONCE, access_token="access")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": [CLIENT]},
        {"azp": CLIENT},
        {"aud": ["another", CLIENT], "azp": CLIENT},
        {"exp": NOW - LEEWAY_S + 30},
        {"iat": NOW + LEEWAY_S - 30},
        {"email": "ann@example.org"},
    ],
)
def test_good_tokens_are_believed(changes: dict[str, Any]) -> None:
    assert untimed(claims_of(token(**changes))) == untimed({**GOOD, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        *({name: ...} for name in GOOD),
        *({name: None} for name in GOOD),
        {"iss": "https://evil.example"},
        {"iss": ISSUER + "/"},
        {"iss": [ISSUER]},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": []},
        {"aud": CLIENT.upper()},
        {"aud": ["another", CLIENT]},
        {"aud": ["another", CLIENT], "azp": "another"},
        {"azp": "another"},
        {"exp": NOW - LEEWAY_S - 30},
        {"exp": str(NOW + 3600)},
        {"exp": float("nan")},
        {"exp": True},
        {"iat": NOW + LEEWAY_S + 600},
        {"nbf": NOW + LEEWAY_S + 600},
        {"nonce": "another"},
        {"nonce": ""},
        {"nonce": [NONCE]},
        {"sub": 5},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
)
def test_others_are_not(changes: dict[str, Any]) -> None:
    with pytest.raises(FAULTS):
        claims_of(token(**changes))


def test_signature_is_of_a_key_of_the_issuer() -> None:
    """Another key with the same name, a changed claim, and a signature of other words."""
    head, body, signature = token().split(".")
    _, other_body, other_signature = token(sub="olga").split(".")
    with pytest.raises(FAULTS):
        claims_of(token(OTHER_KEY))
    for parts in (
        (head, other_body, signature),
        (head, body, other_signature),
        (head, body, ""),
        (head, body),
        (head,),
    ):
        with pytest.raises(FAULTS):
            claims_of(".".join(parts))


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS1", "dir"]
)
def test_algorithms_that_need_no_private_key_are_refused(algorithm: str) -> None:
    """`none` in five spellings, and the public key as the secret of an HMAC, in four forms."""
    header = {"alg": algorithm, "kid": KEY.kid}
    for secret in (
        KEY.as_pem(private=False),
        KEY.as_pem(private=False).strip(),
        KEY.as_der(private=False),
        str(KEY.as_dict(private=False)).encode(),
    ):
        plain = unsigned(header, GOOD)
        signed = plain.rpartition(".")[0]
        size = {"HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(algorithm, hashlib.sha256)
        forged = f"{signed}.{b64(hmac.digest(secret, signed.encode(), size))}"
        for text in (plain, forged):
            with pytest.raises(FAULTS):
                claims_of(text)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_that_is_taken_works(algorithm: str) -> None:
    curve, named = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}, {"kid": "two"}
    is_curve = algorithm in curve
    key = (
        ECKey.generate_key(curve[algorithm], named)
        if is_curve
        else RSAKey.generate_key(2048, named)
    )
    public = key.as_dict(private=False)
    claims = {**GOOD, "exp": later(GOOD["exp"]), "iat": later(GOOD["iat"])}
    signed = jwt.encode({"alg": algorithm, "kid": "two"}, claims, key, algorithms=[algorithm])
    keys = KeySet.import_key_set({"keys": [KEY.as_dict(private=False), public]})
    assert claims_of(signed, keys) == claims


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "azp", "at_hash", "amr", "auth_time"]), JSON))
def test_whatever_the_issuer_signs_is_judged_in_a_known_way(claims: Any) -> None:
    """At most it is believed, if all that counts is as it should be."""
    try:
        found = claims_of(token(**claims))
    except FAULTS:
        return
    assert found["iss"] == ISSUER
    assert found["nonce"] == NONCE
    assert CLIENT in (found["aud"], *found["aud"])
