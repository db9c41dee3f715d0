"""What a provider has signed about who signs in, and whether to believe it. Pure."""

from typing import Any

from authlib.oidc.core.claims import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

# Signed with a key that the provider alone has. `none` and the HS family, for which a public key
# would do, are not among them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
# By so much the provider's clock may differ.
LEEWAY_S = 60
# What the libraries raise for a token that is none, or not to be believed.
FAULTS = (JoseError, ValueError, TypeError, KeyError)


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
