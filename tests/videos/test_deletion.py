"""A deleted video is gone at once, and nothing of it stays in storage, whatever happens."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp
import pytest
from api_client import Client, metadata, problem, published, rows, run_sql
from page_rows import READY, make_row
from passes import make_playable, published_file
from running_portal import LivePortal, create, final_status, process, run_portal, until
from stored_objects import stored, unreachable

from portal.config import Config
from portal.database.models import Attempt, Deletion, Upload, Video
from portal.errors import StorageUnavailable
from portal.maintenance.recovery import recover_side_jobs
from portal.processing import removal
from portal.processing.removal import Unsettled
from portal.storage.bucket import Storage, open_storage
from portal.storage.keys import output_prefix
from portal.storage.objects import LIST_LIMIT
from portal.videos import deletion
from portal.web.composition import WebContext


@pytest.fixture
async def web(environ: dict[str, str]) -> AsyncIterator[LivePortal]:
    """A portal without a worker, so that tests start and kill their own."""
    async with run_portal(environ, worker=False) as portal:
        yield portal


@pytest.fixture
async def storage(config: Config) -> AsyncIterator[Storage]:
    """The bucket of the portal under test."""
    async with open_storage(config) as opened:
        yield opened


async def delete(portal: LivePortal, video_id: str) -> None:
    async with (
        aiohttp.ClientSession(portal.base_url) as session,
        session.post(f"/api/videos/{video_id}/deletion") as response,
    ):
        assert response.status == 202, await response.text()
        assert await response.json() == {"id": video_id}


async def is_removed(portal: LivePortal) -> bool:
    """Whether no promise to remove files is open."""
    return not await rows(portal.environ["DATABASE_URL"], "SELECT 1 FROM deletions")


async def test_deleted_video_is_gone_at_once_everywhere(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await published_file(client, resources, short_video)
    video = await make_playable(video, resources, tmp_path)
    master = f"/hls/{video.id}/{video.published_attempt}/master.m3u8"
    assert (await client.get(master)).status_code == 200
    response = await client.post(f"/api/videos/{video.id}/deletion")
    assert response.status_code == 202
    assert await response.get_json() == {"id": str(video.id)}
    assert (await client.get(master)).status_code == 404
    for path in ("", "/facts", "/summary", "/edit", "/share", "/poster.jpg"):
        assert (await client.get(f"/videos/{video.id}{path}")).status_code == 404, path
    # Fragments that pages ask for again.
    polled = [f"/videos/{video.id}/{name}" for name in ("status", "remaining", "poster")]
    for path in (*polled, f"/embed/{video.id}/stage"):
        response = await client.get(path)
        assert response.status_code == 410, path
        html = str(await response.get_data(as_text=True))
        assert "This video was deleted" in html
        assert "hx-get" not in html
    for path in ("", "/transcode", "/metadata"):
        answer = await client.get(f"/api/videos/{video.id}{path}")
        await problem(answer, 404, "video_not_found")
    again = await client.post(f"/api/videos/{video.id}/deletion")
    await problem(again, 404, "video_not_found")
    assert video.title not in str(await (await client.get("/")).get_data(as_text=True))


async def test_key_of_a_deleted_video_can_not_be_published_again(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    await client.post(f"/api/videos/{record['id']}/deletion")
    assert not await Upload.exists(key=record["storageKey"])
    response = await client.post("/api/videos", json=metadata(record["storageKey"]))
    await problem(response, 422, "validation_failed")


async def test_worker_removes_every_object_of_a_deleted_video_and_of_no_other(
    client: Client,
    resources: WebContext,
    short_video: Path,
    tmp_path: Path,
    environ: dict[str, str],
) -> None:
    video, other = [
        await make_playable(
            await published_file(client, resources, short_video), resources, tmp_path
        )
        for _ in range(2)
    ]
    assert await stored(resources.storage, video.id, video.storage_key)
    kept = await stored(resources.storage, other.id, other.storage_key)
    await deletion.delete_video(video.id, queue=resources.queue)

    async with process("worker", environ):
        await until(lambda: _is_none(Deletion), timeout_s=15)

    assert await stored(resources.storage, video.id, video.storage_key) == []
    assert await stored(resources.storage, other.id, other.storage_key) == kept


async def _is_none(model: type[Deletion | Attempt]) -> bool:
    return not await model.exists()


@pytest.mark.slow
async def test_more_objects_than_storage_lists_at_once_are_removed(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**READY)
    put = [
        resources.storage.put(
            f"{output_prefix(video.id, 1)}720p/{number:05}.m4s", b"x", content_type="video/mp4"
        )
        for number in range(LIST_LIMIT + 50)
    ]
    await asyncio.gather(*put)
    await deletion.delete_video(video.id, queue=resources.queue)
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id) == []
    assert not await Deletion.exists()


async def test_removal_may_be_repeated(client: Client, resources: WebContext) -> None:
    record = await published(client)
    video_id = UUID(record["id"])
    await deletion.delete_video(video_id, queue=resources.queue)
    for _ in range(2):
        await removal.remove_files(video_id, storage=resources.storage)
    await removal.remove_files(uuid4(), storage=resources.storage)


async def test_removal_looks_again_after_someone_may_have_written(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**READY)
    await deletion.delete_video(video.id, queue=resources.queue)
    await removal.remove_again(video.id, video.storage_key, queue=resources.queue)
    with pytest.raises(Unsettled):
        await removal.remove_files(video.id, storage=resources.storage)
    # A worker that woke up late.
    late = output_prefix(video.id, 1) + "720p/00001.m4s"
    await resources.storage.put(late, b"x", content_type="video/mp4")
    await run_sql(resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id) == []
    # Even when the removal was over already.
    await resources.storage.put(late, b"x", content_type="video/mp4")
    await removal.remove_again(video.id, video.storage_key, queue=resources.queue)
    assert await Deletion.exists(video_id=video.id)


async def test_only_one_of_two_deletions_at_once_succeeds(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    path = f"/api/videos/{record['id']}/deletion"
    answers = await asyncio.gather(*(client.post(path) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [202, 404, 404, 404]
    assert await Deletion.all().count() == 1


@pytest.mark.slow
async def test_deletion_in_the_middle_of_transcoding_leaves_nothing(
    web: LivePortal, storage: Storage, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with process("worker", web.environ):
        await until(lambda: _has_segments(storage, video["id"]), timeout_s=30)
        await delete(web, video["id"])
        await until(lambda: is_removed(web), timeout_s=30)
        # The worker is free again: the next video becomes ready.
        assert await stored(storage, video["id"], video["storageKey"]) == []
        jobs = "SELECT status::text FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        assert await rows(web.environ["DATABASE_URL"], jobs) == []


async def _has_segments(storage: Storage, video_id: str) -> bool:
    return any(key.endswith(".m4s") for key in await stored(storage, video_id))


async def test_video_deleted_while_it_waits_is_never_transcoded(
    web: LivePortal, storage: Storage, short_video: Path
) -> None:
    video = await create(web.base_url, short_video)
    other = await create(web.base_url, short_video)
    await delete(web, video["id"])
    async with process("worker", web.environ):
        assert await final_status(web.base_url, other["id"]) == "ready"
        await until(lambda: is_removed(web), timeout_s=15)
    assert await stored(storage, video["id"], video["storageKey"]) == []
    ran = "SELECT args->>'video_id' FROM procrastinate_jobs WHERE status = 'succeeded'"
    jobs = await rows(web.environ["DATABASE_URL"], f"{ran} AND task_name = 'portal:transcode'")
    assert jobs == [(other["id"],)]


async def test_removal_waits_for_storage_that_is_down(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    video_id = UUID(record["id"])
    await deletion.delete_video(video_id, queue=resources.queue)
    async with open_storage(unreachable(resources.config)) as nowhere:
        with pytest.raises(StorageUnavailable):
            await removal.remove_files(video_id, storage=nowhere)
    assert await Deletion.exists(video_id=video_id)
    await removal.remove_files(video_id, storage=resources.storage)
    assert await stored(resources.storage, video_id, record["storageKey"]) == []


@pytest.mark.slow
async def test_killed_removal_is_taken_up_by_the_next_worker(
    web: LivePortal, storage: Storage, short_video: Path
) -> None:
    """As a worker leaves it that dies in the middle: the job in `doing`, the lease run out."""
    video = await create(web.base_url, short_video)
    async with process("worker", web.environ):
        assert await final_status(web.base_url, video["id"]) == "ready"
    await delete(web, video["id"])
    database = web.environ["DATABASE_URL"]
    await run_sql(
        database,
        "UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'portal:remove';"
        "UPDATE deletions SET lease_expires_at = now() - interval '1 s'",
    )
    async with process("worker", web.environ):
        await until(lambda: is_removed(web), timeout_s=15)
    assert await stored(storage, video["id"], video["storageKey"]) == []


@pytest.mark.soak
async def test_worker_killed_with_its_transcode_does_not_hold_the_removal_up(
    web: LivePortal, storage: Storage, long_video: Path
) -> None:
    video = await create(web.base_url, long_video)
    async with process("worker", web.environ) as worker:
        await until(lambda: _has_segments(storage, video["id"]), timeout_s=30)
        worker.kill()
        assert await worker.wait() == -signal.SIGKILL
    await delete(web, video["id"])
    # What the passing of the leases looks like, without waiting for it.
    await run_sql(
        web.environ["DATABASE_URL"],
        "UPDATE deletions SET lease_expires_at = now() - interval '1 s', settles_at = now()",
    )
    async with process("worker", web.environ):
        await until(lambda: is_removed(web), timeout_s=20)
    assert await stored(storage, video["id"], video["storageKey"]) == []


async def test_removal_that_waited_long_is_not_queued_again_while_it_runs(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await published(client)
    await deletion.delete_video(UUID(record["id"]), queue=resources.queue)
    await run_sql(
        resources.config.database_url,
        "UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'portal:remove';"
        "UPDATE deletions SET lease_expires_at = now() - interval '1 s'",
    )
    list_some, recovered = resources.storage.list_some, []

    async def look_around_first(prefix: str) -> list[str]:
        recovered.append(await recover_side_jobs(resources.queue))
        return await list_some(prefix)

    monkeypatch.setattr(resources.storage, "list_some", look_around_first)
    async with resources.queue.open_async():
        await removal.remove_files(UUID(record["id"]), storage=resources.storage)
    assert recovered == [0]


async def test_lost_job_of_a_removal_is_replaced(client: Client, resources: WebContext) -> None:
    record = await published(client)
    await deletion.delete_video(UUID(record["id"]), queue=resources.queue)
    await run_sql(
        resources.config.database_url,
        "DELETE FROM procrastinate_jobs WHERE task_name = 'portal:remove';"
        "UPDATE deletions SET lease_expires_at = now() - interval '1 s'",
    )
    async with resources.queue.open_async():
        assert await recover_side_jobs(resources.queue) == 1
        assert await recover_side_jobs(resources.queue) == 0
    [promised] = await Deletion.all()
    found = await rows(
        resources.config.database_url,
        "SELECT status::text FROM procrastinate_jobs WHERE id = %s",
        promised.job_id,
    )
    assert found == [("todo",)]


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
    assert "The video was deleted" in page
    assert not await Video.exists(id=video.id)


async def test_page_says_to_whoever_deletes_twice_that_it_was_deleted(client: Client) -> None:
    video = await make_row()
    for _ in range(2):
        response = await client.post(f"/videos/{video.id}/delete")
        assert response.status_code == 303
        assert response.headers["Location"] == "/videos/deleted"
    for never in (uuid4(), "none"):
        response = await client.post(f"/videos/{never}/delete")
        assert response.status_code == 404


async def test_nothing_is_deleted_from_another_site(client: Client) -> None:
    video = await make_row()
    for path in (f"/videos/{video.id}/delete", f"/api/videos/{video.id}/deletion"):
        response = await client.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert response.status_code == 403
    assert await Video.exists(id=video.id)
