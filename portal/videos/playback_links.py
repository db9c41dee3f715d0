"""Playback links, which grant anyone the permission to watch a video for a while; and tokens.

A link is a row. Its address is signed whenever it is shown. It works until it expires, is revoked,
or all keys are revoked.

Another system, such as a learning system, asks for a link at each view of its page, and names the
viewer. All viewers of a video share one row, so that rows don't pile up: the viewer and the expiry
are in the signed token alone. Revoking the row ends the links of all viewers. The next request
makes another row, under which former tokens stay revoked.

A playback token is part of an address for watching a private video. It is a text signed by
`itsdangerous`, with the video, the expiry, and a playback link, an account, or the digest of the
id of the video's password. Callers have to check that it still counts. The keys are in the
database: the newest one signs, and all of them verify. A process uses the keys that it has read for
`MAX_AGE_S`, so forged tokens cost no query.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

from itsdangerous import BadData, URLSafeSerializer, base64_decode, base64_encode

from portal.accounts.permissions import Principal
from portal.accounts.tokens import checked_label, digest
from portal.concurrency import CachedValue
from portal.database.connection import Row, execute, fetch_rows, server_time, transaction
from portal.database.models import VideoStatus
from portal.errors import NotPlayable, PlaybackTokenRefused, TooManyPlaybackLinks
from portal.events.log import AuditAction, record_action
from portal.locale.messages import Message
from portal.videos.reading import locked_video

MIN_LIFE_S = 60
MAX_LIFE_S = 365 * 24 * 3600
# Cap on the links of one video.
MAX_LINKS = 1000

LINKS = """
SELECT link.id, link.video_id, link.label, link.created_at, link.expires_at,
       link.is_for_viewers, video.published_attempt, account.email AS made_by
FROM playback_links link JOIN videos video ON video.id = link.video_id
LEFT JOIN accounts account ON account.id = link.made_by_id
WHERE link.video_id = %s AND link.expires_at > now()
ORDER BY link.created_at DESC, link.id
"""
COUNT_LINKS = """
SELECT count(*) AS links FROM playback_links WHERE video_id = %s AND expires_at > now()
"""
# The row of all viewers lasts as long as the longest of their links.
ADD_LINK = """
INSERT INTO playback_links
  (id, video_id, made_by_id, label, created_at, expires_at, is_for_viewers)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (video_id) WHERE is_for_viewers
DO UPDATE SET expires_at = greatest(playback_links.expires_at, excluded.expires_at)
RETURNING id
"""
REMOVE_LINK = "DELETE FROM playback_links WHERE id = %s AND video_id = %s AND expires_at > now()"
LIVE_LINKS = "SELECT id, video_id FROM playback_links WHERE id = ANY(%s) AND expires_at > now()"
MAX_AGE_S = 2.0
KID_BYTES = 4
SECRET_BYTES = 32
# Hexadecimal digits, which nobody can guess.
UNLOCK_DIGITS = 32

# Serializes the creation of keys: two processes might create the first one.
LOCK_KEYS = "LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"
ADD_KEY = "INSERT INTO signing_keys (kid, secret, created_at) VALUES (%s, %s, clock_timestamp())"
# The last row signs: the newest key that every process has had time to read, if there is one.
KEYS = """
SELECT kid, secret, created_at FROM signing_keys
ORDER BY created_at < clock_timestamp() - interval '5 seconds', created_at
"""
# A key is needed for 366 days after its successor signs: no token lives longer.
REMOVE_UNUSED_KEYS = """
DELETE FROM signing_keys old WHERE EXISTS (
  SELECT FROM signing_keys newer
  WHERE newer.created_at > old.created_at AND newer.created_at < now() - interval '366 days')
"""
REMOVE_EXPIRED_LINKS = "DELETE FROM playback_links WHERE expires_at < now()"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Viewer of a video whom another system knows: an id, and a label for people."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class PlaybackToken:
    """Permission to watch one video until `expires_at`, which has whole seconds.

    It comes from a link, which may name its viewer, an account, or the video's password.
    """

    video_id: UUID
    expires_at: datetime
    link_id: UUID | None = None
    account_id: UUID | None = None
    unlock_digest: str = ""
    viewer: Viewer | None = None


class SigningKeys:
    """The signing keys of a web process, read again when they are too old."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._serializer = CachedValue(_read_keys, clock=clock)

    async def sign(self, token: PlaybackToken) -> str:
        """Return a signed token: about 170 characters that need no quoting in an address.

        A viewer adds up to 1,100. Anyone who has the address can read the viewer's id and label.
        As long as the keys stay the same, equal tokens have equal texts.
        """
        claims: dict[str, Any] = {
            "v": token.video_id.hex,
            "exp": int(token.expires_at.timestamp()),
        }
        if token.link_id:
            claims["l"] = token.link_id.hex
        if token.account_id:
            claims["a"] = token.account_id.hex
        if token.unlock_digest:
            claims["u"] = token.unlock_digest
        if token.viewer:
            claims["n"] = [token.viewer.id, token.viewer.label]
        serializer = await self._serializer.get(max_age_s=MAX_AGE_S)
        return str(serializer.dumps(claims))

    async def verify(self, text: str, *, video_id: UUID) -> PlaybackToken:
        """Return the content of a signed token for this video that has not expired.

        Raises `PlaybackTokenRefused` for other texts. The caller checks whether the link or the
        account in the token still gives access.
        """
        serializer = await self._serializer.get(max_age_s=MAX_AGE_S)
        signature = text.rpartition(".")[2]
        try:
            claims = serializer.loads(text)
            is_canonical = base64_encode(base64_decode(signature)).decode() == signature
        except (BadData, UnicodeError) as exc:
            raise PlaybackTokenRefused from exc
        # Decoding accepts other spellings: with padding, and with other last bits.
        if not is_canonical:
            raise PlaybackTokenRefused
        token = PlaybackToken(
            video_id=UUID(claims["v"]),
            expires_at=datetime.fromtimestamp(claims["exp"], UTC),
            link_id=UUID(claims["l"]) if "l" in claims else None,
            account_id=UUID(claims["a"]) if "a" in claims else None,
            unlock_digest=claims.get("u", ""),
            viewer=Viewer(*claims["n"]) if "n" in claims else None,
        )
        if token.video_id != video_id or token.expires_at <= datetime.now(UTC):
            raise PlaybackTokenRefused
        return token


def unlock_digest(unlock_id: UUID) -> str:
    """Return the digest of a password's id in tokens, which other people may get to see."""
    return digest(unlock_id.hex)[:UNLOCK_DIGITS]


def account_token_expiry(now: datetime, ttl_s: int) -> datetime:
    """Return the expiry of an account's token, between half of `ttl_s` and all of it from now.

    The expiry, and thus the address with the token, changes only once in that half.
    """
    half_s = max(ttl_s // 2, 1)
    return datetime.fromtimestamp((int(now.timestamp()) // half_s + 2) * half_s, UTC)


async def rotate(*, revoke: bool = False) -> str:
    """Create a key that signs in all processes after a few seconds, and return its id.

    Tokens of former keys stay valid until they expire. With `revoke` the former keys and all
    playback links are removed. Then those tokens are refused once each process has read the keys
    again (`MAX_AGE_S`, in seconds).
    """
    async with transaction():
        await execute(LOCK_KEYS)
        if revoke:
            await execute("DELETE FROM signing_keys")
            await execute("DELETE FROM playback_links")
        kid = await _add_key()
        detail = {"revoked": "yes" if revoke else "no"}
        await record_action(AuditAction.KEYS_ROTATED, kid, detail=detail)
    return kid


async def list_keys() -> list[Row]:
    """Return `kid` and `created_at` of all keys. The first one signs."""
    return [
        {"kid": row["kid"], "created_at": row["created_at"]}
        for row in reversed(await fetch_rows(KEYS))
    ]


async def forget_unused() -> None:
    """Delete expired links, and keys whose tokens have all expired."""
    await execute(REMOVE_EXPIRED_LINKS)
    await execute(REMOVE_UNUSED_KEYS)


async def _read_keys() -> URLSafeSerializer:
    """Return the signer and verifier with the present keys; create the first key."""
    rows = await fetch_rows(KEYS)
    if not rows:
        async with transaction():
            await execute(LOCK_KEYS)
            if not await fetch_rows(KEYS):
                await _add_key()
            rows = await fetch_rows(KEYS)
    return URLSafeSerializer(
        [row["secret"] for row in rows],
        salt="playback",
        # Escapes would make names in most languages several times as long.
        serializer_kwargs={"ensure_ascii": False},
        signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
    )


async def _add_key() -> str:
    kid = secrets.token_hex(KID_BYTES)
    await execute(ADD_KEY, kid, secrets.token_bytes(SECRET_BYTES))
    return kid


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackLink:
    """A valid link, and the attempt that its video is played from.

    `made_by` is the e-mail address of its creator; None without accounts, and for removed ones.
    `is_for_viewers` marks the link whose row all viewers share, and `viewer` is one of them.
    """

    id: UUID
    video_id: UUID
    label: str
    published_attempt: int | None
    created_at: datetime
    expires_at: datetime
    made_by: str | None
    is_for_viewers: bool = False
    viewer: Viewer | None = None

    async def token(self, keys: SigningKeys) -> str:
        """Return the signed token for the addresses of the link."""
        return await keys.sign(
            PlaybackToken(self.video_id, self.expires_at, link_id=self.id, viewer=self.viewer)
        )


async def make(
    video_id: UUID, *, life_s: int, by: Principal, label: str = "", viewer: Viewer | None = None
) -> PlaybackLink:
    """Create a link that works for `life_s`, from `MIN_LIFE_S` to `MAX_LIFE_S`.

    The links of all viewers have the same id, and the audit log has the first of them alone.

    Raises `VideoNotFound`, `NotPlayable` or `TooManyPlaybackLinks`, and `InvalidRequest` for a
    label that is too long.
    """
    async with transaction():
        now = await server_time()
        video = await locked_video(video_id)
        if video.status is not VideoStatus.READY:
            raise NotPlayable(
                Message("This video can't be played yet. Make a link once it is ready.")
            )
        [counted] = await fetch_rows(COUNT_LINKS, video_id)
        if viewer is None and counted["links"] >= MAX_LINKS:
            raise TooManyPlaybackLinks
        link = PlaybackLink(
            id=uuid4(),
            video_id=video_id,
            label=checked_label(label),
            published_attempt=video.published_attempt,
            created_at=now,
            # Tokens have whole seconds.
            expires_at=now.replace(microsecond=0) + timedelta(seconds=life_s),
            made_by=by.email or None,
            is_for_viewers=viewer is not None,
            viewer=viewer,
        )
        [row] = await fetch_rows(
            ADD_LINK,
            link.id,
            video_id,
            by.account_id,
            link.label,
            link.created_at,
            link.expires_at,
            link.is_for_viewers,
        )
        if row["id"] == link.id:
            detail = {"expires": link.expires_at.isoformat()}
            await record_action(AuditAction.PLAYBACK_LINK_MADE, video_id, detail=detail)
    return replace(link, id=row["id"])


async def list_links(video_id: UUID) -> list[PlaybackLink]:
    """Return the valid links of a video, the newest first."""
    return [PlaybackLink(**row) for row in await fetch_rows(LINKS, video_id)]


async def revoke(link_id: UUID, *, video_id: UUID) -> bool:
    """Revoke a link of a video at once. Return whether there was a valid one with this id."""
    async with transaction():
        is_removed = bool(await execute(REMOVE_LINK, link_id, video_id))
        if is_removed:
            await record_action(AuditAction.PLAYBACK_LINK_REVOKED, video_id)
    return is_removed


async def fetch_live_links(link_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the videos of the valid links, by the links' ids."""
    rows = await fetch_rows(LIVE_LINKS, list(link_ids))
    return {row["id"]: row["video_id"] for row in rows}
