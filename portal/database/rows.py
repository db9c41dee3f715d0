"""What the transactions of several features do with rows in the same way."""

from __future__ import annotations

from uuid import UUID

from tortoise.expressions import RawSQL

from portal.database.models import Video

# The database's clock: the one that all machines of a portal share.
NOW = RawSQL("now()")


async def lock_video(video_id: UUID) -> Video | None:
    """The video, which nobody else changes until the end of the transaction at hand."""
    return await Video.filter(id=video_id).select_for_update().get_or_none()
