"""Playback tokens: what stands in an address by which a private video is watched. Pure.

A token is a compact JWS (RFC 7515) that the portal signs and that only the portal verifies. So a
shared secret does, and HS256 (RFC 7518 section 3.2) is chosen: its signature is half as long as
EdDSA's, and it is verified in an eighth of the time, with each request of a player.

The header names algorithm and key, and nothing else. It is compared with those that the portal
writes, letter for letter, and never read: another algorithm, or a key that a header brings along,
is a header that nobody knows. Claims have short names: `v` the video, `exp` the end in Unix
seconds, and `l` a playback link or `a` an account.

The library takes 10 MB of memory. It is imported with the first key, so that a portal without
private videos does without it.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from portal.errors import PlaybackTokenRefused

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

ALGORITHM = "HS256"
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class PlaybackToken:
    """Permission to watch one video until `expires_at` (whole seconds).

    It is given by a playback link, or is an account's own; that one still stands, or may still
    watch, is for whoever takes the token to find out.
    """

    video_id: UUID
    expires_at: datetime
    link_id: UUID | None = None
    account_id: UUID | None = None


def header_of(kid: str) -> str:
    """What tokens of the key with this id begin with, up to the first dot."""
    return _base64(_compact(_header(kid)))


def signing_key(secret: bytes) -> OctKey:
    """What signs and verifies."""
    from joserfc.jwk import OctKey

    return OctKey.import_key(secret)


def encode(token: PlaybackToken, *, kid: str, key: OctKey) -> str:
    """The token, signed; some 190 characters that need no quoting in an address.

    The same token by the same key is the same text each time.
    """
    from joserfc import jws

    claims: dict[str, object] = {
        "v": _short(token.video_id),
        "exp": int(token.expires_at.timestamp()),
    }
    if token.link_id:
        claims["l"] = _short(token.link_id)
    if token.account_id:
        claims["a"] = _short(token.account_id)
    return jws.serialize_compact(_header(kid), _compact(claims), key, algorithms=[ALGORITHM])


def decode(text: str, *, key: OctKey) -> PlaybackToken:
    """What this key has signed, expired or not. Raises `PlaybackTokenRefused`."""
    from joserfc import jws
    from joserfc.errors import JoseError

    try:
        payload = jws.deserialize_compact(text, key, algorithms=[ALGORITHM]).payload
        claims = json.loads(payload)
        return PlaybackToken(
            video_id=_long(claims["v"]),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
            link_id=_long(claims["l"]) if "l" in claims else None,
            account_id=_long(claims["a"]) if "a" in claims else None,
        )
    except (JoseError, ValueError, KeyError, TypeError, OverflowError) as exc:
        raise PlaybackTokenRefused from exc


def account_token_expiry(now: datetime, ttl_s: int) -> datetime:
    """When a token of an account runs out: after half of `ttl_s` at least, and all of it at most.

    It is the same for half of that time, and so is the address that the token makes.
    """
    half_s = max(ttl_s // 2, 1)
    return datetime.fromtimestamp((int(now.timestamp()) // half_s + 2) * half_s, UTC)


def _header(kid: str) -> dict[str, Any]:
    return {"alg": ALGORITHM, "kid": kid}


def _compact(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _short(id: UUID) -> str:
    return _base64(id.bytes)


def _long(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(f"{text}=="))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
