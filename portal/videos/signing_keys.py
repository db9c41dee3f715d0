"""The keys that sign playback tokens: kept in the database, read again by each process.

A process reads them again before it uses what it read more than `MAX_AGE_S` ago, whatever it is
asked for, so that keys that someone made up cost no query. A new key signs once it is `SETTLE_S`
old: by then every process knows it. The first one signs at once, as does one that replaces
revoked ones.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING
from uuid import UUID

from portal.accounts.audit import AuditAction, note
from portal.concurrency import CachedValue
from portal.config import MAX_TTL_S
from portal.database.connection import Row, transaction
from portal.errors import PlaybackTokenRefused
from portal.videos import playback_rows as rows
from portal.videos.playback_tokens import (
    SECRET_BYTES,
    PlaybackToken,
    decode,
    encode,
    header_of,
    signing_key,
)

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

logger = logging.getLogger(__name__)

MAX_AGE_S = 2.0
# What a process read just before a key was made counts for `MAX_AGE_S`; the rest is to spare.
SETTLE_S = 5.0
# After a rotation nobody signs with an older key any more.
ROTATED_AFTER_S = SETTLE_S + MAX_AGE_S
KID_BYTES = 4
# An account's token lives no longer than any address that the portal signs; an hour is to spare.
KEEP_RETIRED_S = MAX_TTL_S + 3600


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key, and how old it was when it was read."""

    kid: str
    age_s: float
    key: OctKey


class SigningKeys:
    """The keys as a process knows them; one for a web process."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._keys = CachedValue(_read, clock=clock)

    async def sign(self, token: PlaybackToken, *, kid: str = "") -> str:
        """The token, signed by the key with this id, or by the one that signs at present.

        Raises `PlaybackTokenRefused` when there is no such key any more.
        """
        known = await self._keys.get(max_age_s=MAX_AGE_S)
        if kid and header_of(kid) not in known:
            # The database has just named it.
            known = await self._keys.get(max_age_s=0)
        kid = kid or signing_kid({it.kid: it.age_s for it in known.values()})
        found = known.get(header_of(kid))
        if found is None:
            raise PlaybackTokenRefused
        return encode(token, kid=found.kid, key=found.key)

    async def verify(self, text: str, *, video_id: UUID) -> PlaybackToken:
        """What a token for this video says. Raises `PlaybackTokenRefused` for any other text.

        That a token's link still stands, or its account may still watch, is not looked at.
        """
        known = await self._keys.get(max_age_s=MAX_AGE_S)
        found = known.get(text.partition(".")[0])
        if found is None:
            raise PlaybackTokenRefused
        token = decode(text, key=found.key)
        if token.video_id != video_id or token.expires_at <= datetime.now(UTC):
            raise PlaybackTokenRefused
        return token


def signing_kid(ages_s: Mapping[str, float]) -> str:
    """Which of these keys signs: the newest that all processes know, or else the oldest.

    Raises `ValueError` when there are none.
    """
    settled = [kid for kid in ages_s if ages_s[kid] >= SETTLE_S]
    if settled:
        return min(settled, key=ages_s.__getitem__)
    return max(ages_s, key=ages_s.__getitem__)


async def keep_signing_kid() -> str:
    """The id of the key that signs, which is kept until the end of the current transaction."""
    found = await rows.keep_keys() or await _first()
    return signing_kid({row["kid"]: row["age_s"] for row in found})


async def rotate(*, revoke: bool = False) -> str:
    """Make a key that signs from now on, `ROTATED_AFTER_S` later in all processes; returns its id.

    Those that there are verify what they signed for as long as that lives. With `revoke` they are
    removed, with all links that they signed, and verify nothing `MAX_AGE_S` later.
    """
    async with transaction():
        await rows.lock_keys()
        await (rows.remove_keys() if revoke else rows.retire_keys())
        kid = await _add()
        detail = {"revoked": "yes" if revoke else "no"}
        await note(AuditAction.KEYS_ROTATED, kid, detail=detail)
    told = {"action": "keys_rotated", "kid": kid, "is_revoked": revoke}
    logger.info("Signing keys rotated", extra=told)
    return kid


async def list_keys() -> list[Row]:
    """All keys, the newest first, without their secrets.

    With the number of live `links` that each signed, and whether it `signs` at present.
    """
    found = await rows.list_keys()
    ages_s = {row["kid"]: row.pop("age_s") for row in found}
    signing = signing_kid(ages_s) if ages_s else ""
    return [{**row, "signs": row["kid"] == signing} for row in found]


async def forget_unused() -> None:
    """Delete links that have run out, and retired keys that nothing needs any more."""
    await rows.forget_unused(keep_keys_s=KEEP_RETIRED_S)


async def _read() -> dict[str, SigningKey]:
    """All keys, by what the tokens of each begin with."""
    found = await rows.fetch_keys() or await _first()
    return {header_of(row["kid"]): _key(row) for row in found}


async def _first() -> list[Row]:
    """The keys, of which there is one now; of several processes at once one makes it."""
    async with transaction():
        await rows.lock_keys()
        if not await rows.fetch_keys():
            await _add()
        return await rows.fetch_keys()


async def _add() -> str:
    kid = secrets.token_hex(KID_BYTES)
    await rows.add_key(kid, secrets.token_bytes(SECRET_BYTES))
    return kid


def _key(row: Row) -> SigningKey:
    return SigningKey(row["kid"], row["age_s"], signing_key(row["secret"]))
