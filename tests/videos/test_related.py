"""What is offered beside a video: what has most in common with it, asked for in few queries."""

from datetime import UTC, datetime
from typing import Any

import pytest
from api_client import Client
from page_rows import READY, make_row

from portal.accounts.permissions import ANYONE, EVERYONES
from portal.database.models import Video
from portal.database.states import Visibility
from portal.videos.library import related_videos

pytestmark = pytest.mark.shared_app


async def make(number: int, tags: str, *category_ids: int, **values: Any) -> Video:
    """A ready video with a title of its number."""
    said = {"tags": tags, "category_ids": list(category_ids)}
    return await make_row(number, **{**READY, **said, **values})


async def related_titles(video: Video, limit: int = 8) -> list[str]:
    return [it.title for it in await related_videos(video, seen_by=ANYONE, limit=limit)]


async def test_most_in_common_comes_first_and_then_the_newest(client: Client) -> None:
    video = await make(1, "sea, Sun, boats, wind", 1, 2)
    await make(2, "", 1)
    await make(3, "", 1, 2)
    await make(4, "SUN", 3)
    await make(5, "sea, wind", 3)
    await make(6, "sun, boats", 1)
    await make(7, "seaside", 3)
    await make(8, "", 1)
    order = ["Video 6", "Video 5", "Video 4", "Video 3", "Video 8", "Video 2"]
    assert await related_titles(video) == order
    assert await related_titles(video, limit=2) == order[:2]


async def test_only_what_can_be_played_and_is_listed_is_offered(client: Client) -> None:
    video = await make(1, "sea", 1)
    await make_row(2, tags="sea", category_ids=[1])
    await make(3, "sea", 1, visibility=Visibility.PRIVATE)
    await make(4, "sea", 1, visibility=Visibility.UNLISTED)
    await make(5, "it's | odd & more, sea")
    # It takes no other's place.
    await make(6, "sea", 1, deleted_at=datetime.now(UTC))
    assert await related_titles(video, limit=1) == ["Video 5"]
    everything = await related_videos(video, seen_by=EVERYONES, limit=8)
    assert {it.title for it in everything} == {"Video 3", "Video 4", "Video 5"}


async def test_video_like_no_other_offers_nothing(client: Client) -> None:
    await make(1, "sea", 1)
    assert await related_titles(await make(2, "", 2)) == []
    assert await related_titles(await make(3, "' | 'x, %s", 3)) == []
