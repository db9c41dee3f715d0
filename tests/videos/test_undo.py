"""A person's deletion hides the video at once, and can be undone until its time is over."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from api_client import Client, problem, run_sql
from page_rows import READY, make_row
from passes import ready_video
from stored_objects import stored

from portal.database.models import Deletion, Tombstone, Upload, Video
from portal.errors import VideoNotFound
from portal.videos.deletion import (
    UNDO_S,
    finish_deletions,
    undo_deletion,
)
from portal.videos.metrics_rows import read_figures
from portal.web.composition import WebContext

LATER = "UPDATE videos SET deleted_at = deleted_at - make_interval(secs => %s)"


async def pass_time(resources: WebContext, seconds: float = UNDO_S) -> None:
    """As if so long had passed since the deletions."""
    await run_sql(resources.config.database_url, LATER.replace("%s", str(seconds)))


async def is_there(client: Client, video_id: UUID) -> bool:
    response = await client.get(f"/videos/{video_id}")
    return bool(response.status_code == 200)


async def delete(client: Client, video_id: UUID) -> None:
    response = await client.post(f"/videos/{video_id}/delete")
    assert response.status_code == 303


async def test_deleted_video_is_hidden_everywhere_and_comes_back_whole(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    kept = await stored(resources.storage, video.id, video.storage_key)
    pages = [f"/videos/{video.id}{it}" for it in ("", "/edit", "/poster.jpg", "/delete")]
    pages.append(f"/hls/{video.id}/{video.published_attempt}/master.m3u8")
    fragments = [f"/videos/{video.id}/{it}" for it in ("status", "facts", "share", "related")]
    fragments.append(f"/embed/{video.id}/stage")
    calls = [f"/api/videos/{video.id}{it}" for it in ("", "/transcode", "/metadata", "/access")]
    polls = [f"/library/progress?id={video.id}", f"/videos/progress?id={video.id}"]
    lists = ["/", f"/?q={video.title}", "/videos", *polls]

    async def statuses(paths: list[str]) -> set[int]:
        return {(await client.get(path)).status_code for path in paths}

    await delete(client, video.id)
    assert await statuses(pages) == {404}
    assert await statuses(fragments) == {410}
    for call in calls:
        await problem(await client.get(call), 404, "video_not_found")
    for path in lists:
        assert str(video.id) not in str(await (await client.get(path)).get_data(as_text=True))
    await problem(await client.post(f"/api/videos/{video.id}/deletion"), 404, "video_not_found")
    assert await stored(resources.storage, video.id, video.storage_key) == kept

    await undo_deletion(video.id)
    # The poster is in storage.
    assert await statuses([*pages, *fragments, *calls]) == {200, 302}
    assert await stored(resources.storage, video.id, video.storage_key) == kept


async def test_deletion_is_final_once_its_time_is_over(
    client: Client, resources: WebContext
) -> None:
    video, other = await make_row(1, **READY), await make_row(2, **READY)
    await delete(client, video.id)
    assert await finish_deletions(queue=resources.queue) == 0
    await pass_time(resources)
    await delete(client, other.id)
    # Nobody has removed it yet, and yet it is too late.
    with pytest.raises(VideoNotFound):
        await undo_deletion(video.id)
    assert await finish_deletions(queue=resources.queue) == 1
    assert not await Video.exists(id=video.id)
    assert not await Upload.exists(key=video.storage_key)
    assert await Tombstone.exists(video_id=video.id)
    assert await Deletion.exists(video_id=video.id)
    with pytest.raises(VideoNotFound):
        await undo_deletion(video.id)
    await undo_deletion(other.id)
    assert await is_there(client, other.id)


async def test_of_undoing_and_removing_at_once_one_wins(
    client: Client, resources: WebContext
) -> None:
    for number in range(6):
        video = await make_row(number, **READY)
        await delete(client, video.id)
        # Just in time, or just too late.
        await pass_time(resources, UNDO_S - 0.01 * number)
        undone, *_ = await asyncio.gather(
            undo_deletion(video.id),
            finish_deletions(queue=resources.queue),
            finish_deletions(queue=resources.queue),
            return_exceptions=True,
        )
        await pass_time(resources)
        await finish_deletions(queue=resources.queue)
        assert (undone is None) is await Video.exists(id=video.id)
        assert (undone is None) is not await Deletion.exists(video_id=video.id)


async def test_counts_leave_deleted_videos_out(client: Client, resources: WebContext) -> None:
    videos = [await make_row(number, **READY) for number in range(3)]
    await delete(client, videos[0].id)
    text = str(await (await client.get("/")).get_data(as_text=True))
    assert "2 videos" in text
    [row] = (await read_figures(())).videos
    assert (row["status"], row["videos"]) == ("ready", 2)
