"""What a provider says of itself (OpenID Connect Discovery 1.0, section 3). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.text import http_address

BASIC = "client_secret_basic"
USERINFO = "userinfo_endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where to ask the provider for what; `userinfo` is empty where there is none."""

    authorization: str
    token: str
    keys: str
    userinfo: str
    scopes: tuple[str, ...]
    takes_basic: bool


def read_endpoints(found: Mapping[str, Any], *, issuer: str) -> Endpoints:
    """The endpoints of this very issuer. Raises `ValueError` for another's, and for bad ones."""
    # Section 4.3: character by character, or one provider could speak for another.
    if found.get("issuer") != issuer:
        raise ValueError(f"it names the issuer {found.get('issuer')!r}, and not {issuer!r}")
    methods = found.get("token_endpoint_auth_methods_supported") or [BASIC]
    return Endpoints(
        authorization=_address(found, "authorization_endpoint", issuer),
        token=_address(found, "token_endpoint", issuer),
        keys=_address(found, "jwks_uri", issuer),
        userinfo=_address(found, USERINFO, issuer) if found.get(USERINFO) else "",
        scopes=tuple(map(str, found.get("scopes_supported") or ())),
        takes_basic=BASIC in methods,
    )


def _address(found: Mapping[str, Any], name: str, issuer: str) -> str:
    address = str(found.get(name, ""))
    parts = http_address(address)
    # What is asked for by https is not told by http.
    if parts is None or (issuer.startswith("https:") and parts.scheme != "https"):
        raise ValueError(f"{name} is no address that can be used")
    return address
