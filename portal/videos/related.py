"""What to watch after a video: others with its tags, then others in its categories."""

from collections.abc import Iterator
from uuid import UUID

from portal.accounts.permissions import Principal
from portal.database.models import Video
from portal.database.states import VideoStatus
from portal.text import split_tags
from portal.videos.library import list_videos
from portal.videos.library_queries import LibraryQuery

# Each is a question to the database.
MAX_TAGS = 3
MAX_CATEGORIES = 2


async def related_videos(video: Video, *, seen_by: Principal, limit: int) -> list[Video]:
    """Ready videos that have most in common with this one, the newest first among equals."""
    found: dict[UUID, Video] = {}
    for query in _queries(video, seen_by):
        page = await list_videos(query, limit=limit + 1)
        found.update({it.id: it for it in page.videos})
    found.pop(video.id, None)
    tags, categories = _tags(video), set(video.category_ids)

    def in_common(other: Video) -> tuple[int, int]:
        return len(tags & _tags(other)), len(categories & set(other.category_ids))

    newest = sorted(found.values(), key=lambda it: it.created_at, reverse=True)
    return sorted(newest, key=in_common, reverse=True)[:limit]


def _queries(video: Video, seen_by: Principal) -> Iterator[LibraryQuery]:
    for tag in split_tags(video.tags)[:MAX_TAGS]:
        yield LibraryQuery(tag=tag, status=VideoStatus.READY, seen_by=seen_by)
    for category in video.category_ids[:MAX_CATEGORIES]:
        yield LibraryQuery(category_id=category, status=VideoStatus.READY, seen_by=seen_by)


def _tags(video: Video) -> set[str]:
    return {tag.casefold() for tag in split_tags(video.tags)}
