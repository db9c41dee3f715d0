"""A deleted video is gone at once, and nothing of it stays in storage, whatever happens."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from aged_videos import put_output
from api_client import Client, metadata, problem, published, rows, run_sql, until_found
from page_rows import READY, make_row
from passes import ready_video
from running_portal import LivePortal, create, final_status, process, until
from stored_objects import stored, unreachable

from portal.config import Config
from portal.database.models import Deletion, Upload, Video
from portal.errors import StorageUnavailable
from portal.processing import removal
from portal.processing.removal import Unsettled
from portal.storage.bucket import Storage, open_storage
from portal.videos import deletion
from portal.web.composition import WebContext

# As a worker leaves a removal that dies with it.
IN_THE_MIDDLE = "UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'portal:remove'"


@pytest.fixture
async def storage(config: Config) -> AsyncIterator[Storage]:
    async with open_storage(config) as opened:
        yield opened


async def delete(portal: LivePortal, video_id: str) -> None:
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.post(f"/api/videos/{video_id}/deletion") as response,
    ):
        assert response.status == 202, await response.text()
        assert await response.json() == {"id": video_id}


async def until_removed(environ: dict[str, str]) -> None:
    """Wait until no promise to remove files is open."""

    async def is_removed() -> bool:
        return not await rows(environ["DATABASE_URL"], "SELECT 1 FROM deletions")

    await until(is_removed, timeout_s=30)


@pytest.fixture
async def deleted(client: Client, resources: WebContext) -> dict[str, Any]:
    """The record of a video that was deleted, and whose file is there still."""
    record = await published(client)
    await deletion.delete_video(UUID(record["id"]), queue=resources.queue)
    return record


async def test_deleted_video_is_gone_at_once_everywhere(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    master = f"/hls/{video.id}/{video.published_attempt}/master.m3u8"
    assert (await client.get(master)).status_code == 200
    response = await client.post(f"/api/videos/{video.id}/deletion")
    assert response.status_code == 202
    assert await response.get_json() == {"id": str(video.id)}
    assert (await client.get(master)).status_code == 404
    for path in ("", "/edit", "/poster.jpg"):
        assert (await client.get(f"/videos/{video.id}{path}")).status_code == 404, path
    # Fragments that pages ask for.
    shown = ("status", "remaining", "poster", "facts", "share", "related", "access/panel")
    fragments = [f"/videos/{video.id}/{name}" for name in shown]
    for path in (*fragments, f"/embed/{video.id}/stage"):
        response = await client.get(path)
        assert response.status_code == 410, path
        html = str(await response.get_data(as_text=True))
        assert "This video is no longer available" in html
        assert "hx-get" not in html
    for path in ("", "/transcode", "/metadata"):
        answer = await client.get(f"/api/videos/{video.id}{path}")
        await problem(answer, 404, "video_not_found")
    again = await client.post(f"/api/videos/{video.id}/deletion")
    await problem(again, 404, "video_not_found")
    assert video.title not in str(await (await client.get("/")).get_data(as_text=True))


async def test_key_of_a_deleted_video_can_not_be_published_again(
    client: Client, deleted: dict[str, Any]
) -> None:
    assert not await Upload.exists(key=deleted["storageKey"])
    response = await client.post("/api/videos", json=metadata(deleted["storageKey"]))
    await problem(response, 422, "validation_failed")


async def test_worker_removes_every_object_of_a_deleted_video_and_of_no_other(
    client: Client,
    resources: WebContext,
    short_video: Path,
    tmp_path: Path,
    environ: dict[str, str],
) -> None:
    video, other = [await ready_video(client, resources, short_video, tmp_path) for _ in range(2)]
    assert await stored(resources.storage, video.id, video.storage_key)
    kept = await stored(resources.storage, other.id, other.storage_key)
    await deletion.delete_video(video.id, queue=resources.queue)

    async with process("worker", environ):
        await until_removed(environ)

    assert await stored(resources.storage, video.id, video.storage_key) == []
    assert await stored(resources.storage, other.id, other.storage_key) == kept


async def test_removal_looks_again_after_someone_may_have_written(
    resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "SETTLE_S", 3600)
    video = await make_row(**READY)
    await deletion.delete_video(video.id, queue=resources.queue)
    await removal.remove_again(video.id, video.storage_key, queue=resources.queue)
    with pytest.raises(Unsettled):
        await removal.remove_files(video.id, storage=resources.storage)
    # A worker that woke up late.
    await put_output(resources, video, 1, "720p/00001.m4s")
    await run_sql(resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id) == []
    # Even when the removal was over already.
    await put_output(resources, video, 1, "720p/00001.m4s")
    await removal.remove_again(video.id, video.storage_key, queue=resources.queue)
    assert await Deletion.exists(video_id=video.id)


@pytest.mark.slow
async def test_deletion_in_the_middle_of_transcoding_leaves_nothing(
    web: LivePortal, storage: Storage, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with process("worker", web.environ):
        await until(lambda: _has_segments(storage, video["id"]), timeout_s=30)
        await delete(web, video["id"])
        await until_removed(web.environ)
        # The worker is free again: the next video becomes ready.
        assert await stored(storage, video["id"], video["storageKey"]) == []
        jobs = "SELECT status::text FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

        async def are_done() -> bool:
            return not await rows(web.environ["DATABASE_URL"], jobs)

        await until(are_done, timeout_s=10)


async def _has_segments(storage: Storage, video_id: str) -> bool:
    return any(key.endswith(".m4s") for key in await stored(storage, video_id))


async def test_video_deleted_while_it_waits_is_never_transcoded(
    web: LivePortal, storage: Storage, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    other = await create(web.base_url, short_video)
    await delete(web, video["id"])
    ran = """
        SELECT args->>'video_id' FROM procrastinate_jobs
        WHERE status = 'succeeded' AND task_name = 'portal:transcode'
    """
    async with process("worker", web.environ):
        assert await final_status(web.base_url, other["id"]) == "ready"
        await until_removed(web.environ)
        await until_found(web.environ["DATABASE_URL"], ran)
    assert await stored(storage, video["id"], video["storageKey"]) == []
    jobs = await rows(web.environ["DATABASE_URL"], ran)
    assert jobs == [(other["id"],)]


async def test_removal_waits_for_storage_that_is_down(
    resources: WebContext, deleted: dict[str, Any]
) -> None:
    video_id = UUID(deleted["id"])
    async with open_storage(unreachable(resources.config)) as nowhere:
        with pytest.raises(StorageUnavailable):
            await removal.remove_files(video_id, storage=nowhere)
    assert await Deletion.exists(video_id=video_id)
    await removal.remove_files(video_id, storage=resources.storage)
    assert await stored(resources.storage, video_id, deleted["storageKey"]) == []


@pytest.mark.slow
async def test_killed_removal_is_taken_up_by_the_next_worker(
    web: LivePortal, storage: Storage, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "ready"
    await delete(web, video["id"])
    await run_sql(web.environ["DATABASE_URL"], IN_THE_MIDDLE)
    async with process("worker", web.environ):
        await until_removed(web.environ)
    assert await stored(storage, video["id"], video["storageKey"]) == []


async def test_page_asks_before_it_deletes(client: Client) -> None:
    video = await make_row(title="Keep <me>?")
    response = await client.get(f"/videos/{video.id}/delete")
    page = str(await response.get_data(as_text=True))
    assert "Keep &lt;me&gt;?" in page
    assert f'href="/videos/{video.id}"' in page
    assert await Video.exists(id=video.id)
    response = await client.post(f"/videos/{video.id}/delete")
    assert response.status_code == 303
    page = str(await (await client.get(response.headers["Location"])).get_data(as_text=True))
    assert "1 video deleted." in page
    assert (await client.get(f"/videos/{video.id}")).status_code == 404
