"""Playback links: addresses by which anyone who has one watches a video for a while.

A link is a row, and its address is signed anew whenever it is shown. It works until it expires or
is revoked, by itself or with all keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts.permissions import Principal
from portal.accounts.tokens import checked_label
from portal.database.connection import execute, fetch_rows, lock_present, transaction
from portal.database.models import VideoStatus
from portal.errors import NotPlayable, TooManyPlaybackLinks, VideoNotFound
from portal.events.log import AuditAction, note
from portal.videos.playback_tokens import PlaybackToken, SigningKeys

MIN_LIFE_S = 60
MAX_LIFE_S = 365 * 24 * 3600
# Of one video, at a time.
MAX_LINKS = 1000

LINKS = """
SELECT link.id, link.video_id, link.label, link.created_at, link.expires_at,
       video.published_attempt, account.email AS made_by
FROM playback_links link JOIN videos video ON video.id = link.video_id
LEFT JOIN accounts account ON account.id = link.made_by_id
WHERE link.video_id = %s AND link.expires_at > now()
ORDER BY link.created_at DESC, link.id
"""
COUNT_LINKS = """
SELECT count(*) AS links FROM playback_links WHERE video_id = %s AND expires_at > now()
"""
ADD_LINK = """
INSERT INTO playback_links (id, video_id, made_by_id, label, created_at, expires_at)
VALUES (%s, %s, %s, %s, %s, %s)
"""
REMOVE_LINK = "DELETE FROM playback_links WHERE id = %s AND video_id = %s AND expires_at > now()"
LIVE_LINKS = "SELECT id, video_id FROM playback_links WHERE id = ANY(%s) AND expires_at > now()"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackLink:
    """A link that works, and the attempt that its video is played from.

    `label` is what who made it calls it. `made_by` is an e-mail address; None without accounts, or
    if that account is gone.
    """

    id: UUID
    video_id: UUID
    label: str
    published_attempt: int | None
    created_at: datetime
    expires_at: datetime
    made_by: str | None

    async def token(self, keys: SigningKeys) -> str:
        """What its addresses have in their path."""
        return await keys.sign(PlaybackToken(self.video_id, self.expires_at, link_id=self.id))


async def make(video_id: UUID, *, life_s: int, by: Principal, label: str = "") -> PlaybackLink:
    """Make a link that works for `life_s`, from `MIN_LIFE_S` to `MAX_LIFE_S`.

    Raises `VideoNotFound`, `NotPlayable` or `TooManyPlaybackLinks`, and `InvalidRequest` for a
    label too long.
    """
    # Signed are whole seconds.
    now = datetime.now(UTC).replace(microsecond=0)
    async with transaction():
        video = await lock_present(video_id)
        if video is None:
            raise VideoNotFound
        if video.status is not VideoStatus.READY:
            raise NotPlayable("This video can't be played yet. Make a link once it is ready.")
        [counted] = await fetch_rows(COUNT_LINKS, video_id)
        if counted["links"] >= MAX_LINKS:
            raise TooManyPlaybackLinks
        link = PlaybackLink(
            id=uuid4(),
            video_id=video_id,
            label=checked_label(label),
            published_attempt=video.published_attempt,
            created_at=datetime.now(UTC),
            expires_at=now + timedelta(seconds=life_s),
            made_by=by.email or None,
        )
        made = link.created_at, link.expires_at
        await execute(ADD_LINK, link.id, video_id, by.account_id, link.label, *made)
        told = {"expires": link.expires_at.isoformat()}
        await note(AuditAction.PLAYBACK_LINK_MADE, video_id, detail=told)
    return link


async def list_links(video_id: UUID) -> list[PlaybackLink]:
    """The links of a video that work, the newest first."""
    return [PlaybackLink(**row) for row in await fetch_rows(LINKS, video_id)]


async def revoke(link_id: UUID, *, video_id: UUID) -> bool:
    """Make a link of this video void at once; False if it has none with this id."""
    async with transaction():
        is_removed = bool(await execute(REMOVE_LINK, link_id, video_id))
        if is_removed:
            await note(AuditAction.PLAYBACK_LINK_REVOKED, video_id)
    return is_removed


async def fetch_live_links(link_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The videos of those of these links that work: neither run out nor revoked."""
    rows = await fetch_rows(LIVE_LINKS, list(link_ids))
    return {row["id"]: row["video_id"] for row in rows}
