"""Playback tokens: what stands in an address by which a private video is watched.

A token is a signed text of `itsdangerous`: the video, the end, and a playback link or an account.
That the link still stands, or the account may still watch, is for whoever takes the token to find
out. The keys are in the database: the newest signs, all of them verify. Each process reads them
again before it uses what it read more than `MAX_AGE_S` ago, so made-up tokens cost no query.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from itsdangerous import BadData, URLSafeSerializer

from portal.concurrency import CachedValue
from portal.database.connection import Row, execute, fetch_rows, transaction
from portal.errors import PlaybackTokenRefused
from portal.events.log import AuditAction, note

logger = logging.getLogger(__name__)

MAX_AGE_S = 2.0
KID_BYTES = 4
SECRET_BYTES = 32

# Two who make keys do so one after the other: else both might make the first one.
LOCK_KEYS = "LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"
ADD_KEY = "INSERT INTO signing_keys (kid, secret, created_at) VALUES (%s, %s, clock_timestamp())"
# The last one signs: the newest that every process has had the time to read, if there is one.
KEYS = """
SELECT kid, secret, created_at FROM signing_keys
ORDER BY created_at < clock_timestamp() - interval '5 seconds', created_at
"""
# A key is needed for a year and a day after the next one took over: no token lives longer.
REMOVE_UNUSED_KEYS = """
DELETE FROM signing_keys old WHERE EXISTS (
  SELECT FROM signing_keys newer
  WHERE newer.created_at > old.created_at AND newer.created_at < now() - interval '366 days')
"""
REMOVE_EXPIRED_LINKS = "DELETE FROM playback_links WHERE expires_at < now()"


@dataclass(frozen=True, slots=True)
class PlaybackToken:
    """Permission to watch one video until `expires_at` (whole seconds), by a link or an account."""

    video_id: UUID
    expires_at: datetime
    link_id: UUID | None = None
    account_id: UUID | None = None


class SigningKeys:
    """The keys as a process knows them; one for a web process."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._serializer = CachedValue(_read, clock=clock)

    async def sign(self, token: PlaybackToken) -> str:
        """The token, signed; some 170 characters that need no quoting in an address.

        While no key is made, the same token is the same text each time.
        """
        claims = {"v": token.video_id.hex, "exp": int(token.expires_at.timestamp())}
        if token.link_id:
            claims["l"] = token.link_id.hex
        if token.account_id:
            claims["a"] = token.account_id.hex
        serializer = await self._serializer.get(max_age_s=MAX_AGE_S)
        return str(serializer.dumps(claims))

    async def verify(self, text: str, *, video_id: UUID) -> PlaybackToken:
        """What a token for this video says. Raises `PlaybackTokenRefused` for any other text."""
        serializer = await self._serializer.get(max_age_s=MAX_AGE_S)
        try:
            claims = serializer.loads(text)
        except (BadData, UnicodeError) as exc:
            raise PlaybackTokenRefused from exc
        token = PlaybackToken(
            video_id=UUID(claims["v"]),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
            link_id=UUID(claims["l"]) if "l" in claims else None,
            account_id=UUID(claims["a"]) if "a" in claims else None,
        )
        if token.video_id != video_id or token.expires_at <= datetime.now(UTC):
            raise PlaybackTokenRefused
        return token


def account_token_expiry(now: datetime, ttl_s: int) -> datetime:
    """When a token of an account runs out: after half of `ttl_s` at least, and all of it at most.

    It is the same for half of that time, and so is the address that the token makes.
    """
    half_s = max(ttl_s // 2, 1)
    return datetime.fromtimestamp((int(now.timestamp()) // half_s + 2) * half_s, UTC)


async def rotate(*, revoke: bool = False) -> str:
    """Make a key that signs from now on, a few seconds later in all processes; returns its id.

    Those that there are verify what they signed for as long as that lives. With `revoke` they are
    removed, with all links, and verify nothing `MAX_AGE_S` later.
    """
    async with transaction():
        await execute(LOCK_KEYS)
        if revoke:
            await execute("DELETE FROM signing_keys")
            await execute("DELETE FROM playback_links")
        kid = await _add()
        detail = {"revoked": "yes" if revoke else "no"}
        await note(AuditAction.KEYS_ROTATED, kid, detail=detail)
    told = {"action": "keys_rotated", "kid": kid, "is_revoked": revoke}
    logger.info("Signing keys rotated", extra=told)
    return kid


async def list_keys() -> list[Row]:
    """All keys, the one that signs first: `kid` and `created_at`."""
    return [
        {"kid": row["kid"], "created_at": row["created_at"]}
        for row in reversed(await fetch_rows(KEYS))
    ]


async def forget_unused() -> None:
    """Delete links that have run out, and keys whose tokens all have."""
    await execute(REMOVE_EXPIRED_LINKS)
    await execute(REMOVE_UNUSED_KEYS)


async def _read() -> URLSafeSerializer:
    """What signs and verifies; the first key is made here, by one process of several at once."""
    found = await fetch_rows(KEYS)
    if not found:
        async with transaction():
            await execute(LOCK_KEYS)
            if not await fetch_rows(KEYS):
                await _add()
            found = await fetch_rows(KEYS)
    return URLSafeSerializer(
        [row["secret"] for row in found],
        salt="playback",
        signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
    )


async def _add() -> str:
    kid = secrets.token_hex(KID_BYTES)
    await execute(ADD_KEY, kid, secrets.token_bytes(SECRET_BYTES))
    return kid
