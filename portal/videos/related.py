"""What to watch after a video: others with its tags, then others in its categories."""

from portal.accounts.permissions import Principal
from portal.database.models import Video
from portal.text import split_tags
from portal.videos.publishing import fetch_videos
from portal.videos.related_rows import fetch_related


async def related_videos(video: Video, *, seen_by: Principal, limit: int) -> list[Video]:
    """Ready videos that have most in common with this one, the newest first among equals."""
    tags = split_tags(video.tags)
    ids = await fetch_related(video.id, tags, video.category_ids, seen_by=seen_by, limit=limit)
    by_id = await fetch_videos(ids)
    # One that was deleted in this moment is left out.
    return [by_id[it] for it in ids if it in by_id]
