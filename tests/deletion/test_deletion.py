"""A deleted video is gone at once; people can undo it for a moment; later nothing of it is left."""

import asyncio
from uuid import UUID

import psycopg
import pytest
from aged_videos import hence, put_output, tidy
from api_client import Client, metadata, problem, published, rows, run_sql, until_found
from page_rows import READY, make_row
from page_texts import page
from passes import tools_for
from playable_videos import make_ready
from stored_objects import stored, unreachable

from portal.database.models import Deletion, Tombstone, Upload, Video
from portal.errors import StorageUnavailable, VideoNotFound
from portal.features.deletion.service import UNDO_S, delete_video, finish_deletions, undo_deletion
from portal.films import removal
from portal.films.removal import Unsettled
from portal.http.composition import WebContext
from portal.storage.bucket import open_storage

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]

LATER = "UPDATE publications SET deleted_at = deleted_at - make_interval(secs => {})"

WAITING = """
SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""


async def pass_time(resources: WebContext, seconds: float = UNDO_S) -> None:
    """Date all deletions back by this time."""
    await run_sql(resources.config.database_url, LATER.format(seconds))


async def delete(client: Client, video_id: UUID) -> None:
    """Delete a video on its page, which can be undone."""
    response = await client.post(f"/videos/{video_id}/delete")
    assert response.status_code == 303


@pytest.mark.parametrize("is_undoable", [False, True])
async def test_deletion_locks_the_upload_before_the_video(
    resources: WebContext, *, is_undoable: bool
) -> None:
    """A repeated replacement locks in this order; otherwise the two could end in a deadlock."""
    video = await make_row(**READY)
    url = resources.config.database_url
    if is_undoable:
        await run_sql(url, "UPDATE publications SET deleted_at = now() - interval '1 hour'")
        deletion = finish_deletions()
    else:
        deletion = delete_video(video.id)
    async with await psycopg.AsyncConnection.connect(url) as replacing:
        await replacing.execute("SELECT FROM uploads FOR UPDATE")
        deleting = asyncio.create_task(deletion)
        await until_found(url, WAITING)
        await replacing.execute("SELECT FROM publications FOR UPDATE NOWAIT")
    await deleting
    assert not await Video.exists(id=video.id)


async def test_deleted_video_is_hidden_everywhere_and_comes_back_whole(
    client: Client, resources: WebContext
) -> None:
    video = await make_ready(resources, audience="public")
    keys = await stored(resources.storage, video.id, video.storage_key)
    pages = [f"/videos/{video.id}{path}" for path in ("", "/edit", "/poster.jpg", "/delete")]
    pages.append(f"/hls/{video.id}/master.m3u8")
    parts = ("status", "remaining", "poster", "facts", "share", "related", "access/panel")
    fragments = [f"/videos/{video.id}/{part}" for part in parts] + [f"/embed/{video.id}/stage"]
    calls = [f"/api/videos/{video.id}{path}" for path in ("", "/transcode", "/metadata", "/access")]
    polls = [f"/library/progress?id={video.id}", f"/videos/progress?id={video.id}"]
    lists = ["/", f"/?q={video.title}", "/videos", *polls]

    async def expect_gone() -> None:
        for path in pages:
            assert (await client.get(path)).status_code == 404, path
        for path in fragments:
            html = await page(client, path, 410)
            assert "This video is no longer available" in html
            assert "hx-get" not in html
        for path in calls:
            await problem(await client.get(path), 404, "video_not_found")
        for path in lists:
            assert str(video.id) not in await page(client, path)

    assert str(video.title) in await page(client, f"/videos/{video.id}/delete")
    assert "1 video" in await page(client, "/")
    await delete(client, video.id)
    await expect_gone()
    await problem(await client.delete(f"/api/videos/{video.id}"), 404, "video_not_found")
    assert await stored(resources.storage, video.id, video.storage_key) == keys

    await undo_deletion(video.id)
    # The poster is in storage.
    statuses = {(await client.get(path)).status_code for path in (*pages, *fragments, *calls)}
    assert statuses == {200, 302}
    assert await stored(resources.storage, video.id, video.storage_key) == keys

    response = await client.delete(f"/api/videos/{video.id}")
    assert (response.status_code, await response.get_json()) == (202, {"id": str(video.id)})
    await expect_gone()
    again = await client.post("/api/videos", json=metadata(video.storage_key))
    await problem(again, 422, "validation_failed")


async def test_deletion_is_final_once_its_time_is_over(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(1, **READY)
    other = await make_row(2, **READY)
    await delete(client, video.id)
    assert await finish_deletions() == 0
    await pass_time(resources)
    await delete(client, other.id)
    # The undo window has passed, though the video is not removed yet.
    with pytest.raises(VideoNotFound):
        await undo_deletion(video.id)
    assert await finish_deletions() == 1
    assert not await Video.exists(id=video.id)
    assert not await Upload.exists(key=video.storage_key)
    assert await Tombstone.exists(video_id=video.id)
    assert await Deletion.exists(video_id=video.id)
    with pytest.raises(VideoNotFound):
        await undo_deletion(video.id)
    await undo_deletion(other.id)
    assert (await client.get(f"/videos/{other.id}")).status_code == 200


async def test_of_undoing_and_removing_at_once_one_wins(
    client: Client, resources: WebContext
) -> None:
    for number in range(6):
        video = await make_row(number, **READY)
        await delete(client, video.id)
        # Just in time, or just too late.
        await pass_time(resources, UNDO_S - 0.01 * number)
        undone, *_ = await asyncio.gather(
            undo_deletion(video.id), finish_deletions(), finish_deletions(), return_exceptions=True
        )
        await pass_time(resources)
        await finish_deletions()
        assert (undone is None) is await Video.exists(id=video.id)
        assert (undone is None) is not await Deletion.exists(video_id=video.id)


async def test_every_object_of_a_video_is_removed_and_of_no_other_once_storage_is_there(
    client: Client, resources: WebContext
) -> None:
    records = [await published(client) for _ in range(2)]
    video, other = [await Video.get(id=record["id"]) for record in records]
    storage = resources.storage
    for owner in (video, other):
        await put_output(resources, owner, 1, "720p/00001.m4s")
    keys = await stored(storage, other.id, other.storage_key)
    await delete_video(video.id)
    job = "SELECT status::text FROM procrastinate_jobs WHERE id = %s"
    url = resources.config.database_url
    assert await rows(url, job, video.transcode_job_id) == [("cancelled",)]
    assert await rows(url, job, other.transcode_job_id) == [("todo",)]
    async with open_storage(unreachable(resources.config)) as nowhere:
        with pytest.raises(StorageUnavailable):
            await removal.remove_files(video.id, tools_for(resources, storage=nowhere))
    assert await Deletion.exists(video_id=video.id)
    await removal.remove_files(video.id, tools_for(resources))
    assert await stored(storage, video.id, video.storage_key) == []
    assert len(keys) == 2
    assert await stored(storage, other.id, other.storage_key) == keys


async def test_file_that_videos_share_is_removed_with_the_last_of_them(
    client: Client, resources: WebContext
) -> None:
    first = await Video.get(id=(await published(client))["id"])
    second = await make_row(storage_key=first.storage_key)
    for video, is_left in ((first, True), (second, False)):
        await delete_video(video.id)
        await removal.remove_files(video.id, tools_for(resources))
        assert bool(await resources.storage.list_some(first.storage_key)) is is_left
        assert await Upload.exists(key=first.storage_key) is is_left
        await tidy(resources, now=hence(days=2))


async def test_removal_looks_again_after_someone_may_have_written(
    resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "SETTLE_S", 3600)
    video = await make_row(**READY)
    await delete_video(video.id)
    await removal.remove_again(video.id, video.storage_key)
    with pytest.raises(Unsettled):
        await removal.remove_files(video.id, tools_for(resources))
    # A worker that woke up late.
    await put_output(resources, video, 1, "720p/00001.m4s")
    await run_sql(resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, tools_for(resources))
    assert await stored(resources.storage, video.id) == []
    # Even when the removal was over already.
    await put_output(resources, video, 1, "720p/00001.m4s")
    await removal.remove_again(video.id, video.storage_key)
    assert await Deletion.exists(video_id=video.id)


async def test_files_of_a_video_stay_if_a_worker_finds_only_its_version_deleted() -> None:
    video = await make_row(**READY)
    await removal.remove_again(video.id, video.storage_key)
    assert not await Deletion.exists(video_id=video.id)
