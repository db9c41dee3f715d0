"""Playback links: addresses by which anyone who has one watches a video for a while.

A link is a row, and its address is signed anew whenever it is shown. It works until it expires, is
revoked, or the key that signs it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.accounts.audit import AuditAction, note
from portal.accounts.permissions import Principal
from portal.database.connection import transaction
from portal.database.models import Video
from portal.database.rows import lock_present
from portal.database.states import VideoStatus
from portal.errors import NotPlayable, TooManyPlaybackLinks, VideoNotFound
from portal.videos import playback_rows as rows
from portal.videos.playback_tokens import PlaybackToken
from portal.videos.signing_keys import SigningKeys, keep_signing_kid

MIN_LIFE_S = 60
MAX_LIFE_S = 365 * 24 * 3600
# Of one video, at a time.
MAX_LINKS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackLink:
    """A link that works, and the attempt that its video is played from.

    `made_by` is an e-mail address; None without accounts, or if that account is gone.
    """

    id: UUID
    video_id: UUID
    published_attempt: int | None
    kid: str
    created_at: datetime
    expires_at: datetime
    made_by: str | None

    async def token(self, keys: SigningKeys) -> str:
        """What its addresses have in their path. Raises `PlaybackTokenRefused`."""
        said = PlaybackToken(self.video_id, self.expires_at, link_id=self.id)
        return await keys.sign(said, kid=self.kid)


async def make(video_id: UUID, *, life_s: int, by: Principal) -> PlaybackLink:
    """Make a link that works for `life_s`, from `MIN_LIFE_S` to `MAX_LIFE_S`.

    Raises `VideoNotFound`, `NotPlayable` or `TooManyPlaybackLinks`.
    """
    # Signed are whole seconds.
    now = datetime.now(UTC).replace(microsecond=0)
    async with transaction():
        video = _playable(await lock_present(video_id))
        if await rows.count_links(video_id, now=now) >= MAX_LINKS:
            raise TooManyPlaybackLinks
        link = PlaybackLink(
            id=uuid4(),
            video_id=video_id,
            published_attempt=video.published_attempt,
            kid=await keep_signing_kid(),
            created_at=datetime.now(UTC),
            expires_at=now + timedelta(seconds=life_s),
            made_by=by.email or None,
        )
        await rows.add_link(
            link.id,
            video_id=video_id,
            kid=link.kid,
            made_by_id=by.account_id,
            created_at=link.created_at,
            expires_at=link.expires_at,
        )
        told = {"expires": link.expires_at.isoformat()}
        await note(AuditAction.PLAYBACK_LINK_MADE, video_id, detail=told)
    return link


async def list_links(video_id: UUID) -> list[PlaybackLink]:
    """The links of a video that work, the newest first."""
    found = await rows.list_links(video_id, now=datetime.now(UTC))
    return [PlaybackLink(**row) for row in found]


async def revoke(link_id: UUID, *, video_id: UUID) -> bool:
    """Make a link of this video void at once; False if it has none with this id."""
    async with transaction():
        is_removed = await rows.remove_link(link_id, video_id=video_id, now=datetime.now(UTC))
        if is_removed:
            await note(AuditAction.PLAYBACK_LINK_REVOKED, video_id)
    return is_removed


async def fetch_live_links(link_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The videos of those of these links that work: neither run out nor revoked."""
    return await rows.fetch_live_links(link_ids)


def _playable(video: Video | None) -> Video:
    if video is None:
        raise VideoNotFound
    if video.status is not VideoStatus.READY:
        raise NotPlayable("This video can't be played yet. Make a link once it is ready.")
    return video
