"""A video becomes private while something more is made of it: nothing of that is lost."""

import asyncio
from pathlib import Path

import pytest
from api_client import Client, rows, run_sql
from moved_videos import (
    MEASURES,
    PRIVATE,
    PausedStorage,
    finished_video,
    given_out,
    is_moving,
    move,
    plays,
    put_rendition,
    set_access,
    statuses,
)
from page_rows import make_attempt, make_rendition
from passes import LATER, begun, make_missing, make_playable, make_source, pass_of, published_file
from running_portal import process, until
from stored_objects import stored

from portal.database.models import Attempt, PosterRequest, Video
from portal.database.states import Outcome, PosterState
from portal.maintenance import recovery
from portal.processing import masters
from portal.processing.attempts import OpenAttempt
from portal.storage.keys import output_prefix
from portal.videos import posters
from portal.videos.posters import VideoMoved, make_poster, request_poster
from portal.web.composition import WebContext

LOST = (
    "UPDATE moves SET lease_expires_at = now() - interval '1 s';"
    "UPDATE procrastinate_events SET at = at - interval '60 s';"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_source(tmp_path_factory.mktemp("beside") / "long.mp4")


@pytest.fixture
async def playable(client: Client, resources: WebContext, source: Path, tmp_path: Path) -> Video:
    """A video after its first pass, without its storyboard and most of its ladder."""
    return await make_playable(await published_file(client, resources, source), resources, tmp_path)


async def folder_of(video: Video, resources: WebContext) -> list[str]:
    """The names in the published folder, but for renditions."""
    number = (await Video.get(id=video.id)).published_attempt or 0
    prefix = output_prefix(video.id, number)
    keys = await stored(resources.storage, video.id)
    return [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]


@pytest.mark.slow
async def test_ladder_goes_on_while_what_is_complete_is_moved(
    client: Client, resources: WebContext, playable: Video, tmp_path: Path
) -> None:
    await make_missing(playable, resources, tmp_path)
    video = await Video.get(id=playable.id)
    before = await given_out(client, video)
    early = await plays(video, resources.storage)
    attempt = await begun(video.id)
    running = asyncio.create_task(pass_of(attempt, resources, tmp_path).make_missing())

    async def has_begun() -> bool:
        assert not running.done()
        folder = output_prefix(video.id, attempt.number)
        return bool(await resources.storage.list_some(folder))

    await until(has_begun, timeout_s=60)
    await set_access(video, PRIVATE, resources)
    await move(video, resources)
    assert not running.done()
    assert await statuses(before) <= {403, 404}
    assert await plays(video, resources.storage) == early
    await running
    assert await plays(video, resources.storage) == sorted({*early, *LATER})
    # What comes after it goes on as ever.
    while (await Video.get(id=video.id)).complete_job_id is not None:
        await make_missing(video, resources, tmp_path)
    number = (await Video.get(id=video.id)).published_attempt
    keys = await stored(resources.storage, video.id)
    assert {int(key.split("/")[2]) for key in keys} == {number, attempt.number}


async def test_rendition_that_is_complete_before_players_are_led_away_joins(
    resources: WebContext, video: Video
) -> None:
    await set_access(video, PRIVATE, resources)
    storage = PausedStorage(resources.storage, "put", "master.m3u8")
    moving = asyncio.create_task(move(video, resources, storage=storage))
    await storage.is_asked.wait()
    await make_attempt(video, await _next_number(video), outcome=Outcome.PUBLISHED)
    number = await _next_number(video) - 1
    await put_rendition(video, number, "720p", resources)
    await make_rendition(video, "720p", attempt_number=number, **MEASURES)
    await masters.put_master(video, resources.storage)
    storage.may_go_on.set()
    await moving
    assert await plays(video, resources.storage) == ["720p", "low"]
    keys = await stored(resources.storage, video.id)
    assert {int(key.split("/")[2]) for key in keys} == {number, number - 1}


async def _next_number(video: Video) -> int:
    return (await Attempt.filter(video_id=video.id).order_by("-number"))[0].number + 1


@pytest.mark.slow
async def test_storyboard_that_is_made_meanwhile_is_made_again(
    resources: WebContext, playable: Video, tmp_path: Path
) -> None:
    attempt: OpenAttempt = await begun(playable.id)
    assert attempt.makes_storyboard
    await set_access(playable, PRIVATE, resources)
    await move(playable, resources)
    await pass_of(attempt, resources, tmp_path).make_missing()
    video = await Video.get(id=playable.id)
    assert not video.has_storyboard
    assert video.storyboard_tries == 0
    await make_missing(playable, resources, tmp_path)
    assert (await Video.get(id=playable.id)).has_storyboard
    assert "storyboard.vtt" in await folder_of(playable, resources)


@pytest.fixture
async def video(resources: WebContext) -> Video:
    return await finished_video(resources)


async def test_poster_that_is_cut_meanwhile_is_cut_again(
    resources: WebContext, video: Video, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def picture(*_: object) -> bytes:
        if not is_moving_done:
            await set_access(video, PRIVATE, resources)
            await _switched(video, resources)
            is_moving_done.append(True)
        return b"picture"

    is_moving_done: list[bool] = []
    monkeypatch.setattr(posters, "_picture", picture)
    await request_poster(video.id, time_s=0, queue=resources.queue)
    made = {"storage": resources.storage, "queue": resources.queue, "work_dir": tmp_path}
    with pytest.raises(VideoMoved):
        await make_poster(video.id, 1, **made)
    request = await PosterRequest.get(video_id=video.id)
    assert (request.state, request.tries) == (PosterState.WAITING, 0)
    await make_poster(video.id, 1, **made)
    assert (await Video.get(id=video.id)).poster_version == 1
    assert "poster-1.jpg" in await folder_of(video, resources)
    keys = await stored(resources.storage, video.id)
    assert sum("poster-1" in key for key in keys) == 1


async def _switched(video: Video, resources: WebContext) -> None:
    """Lead players to the copies; what is old is still there."""
    with pytest.raises(AssertionError, match="does not end"):
        await move(video, resources, rounds=1)


async def test_poster_replaced_while_files_are_copied_is_moved(
    resources: WebContext, video: Video, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def picture(*_: object) -> bytes:
        return b"picture"

    monkeypatch.setattr(posters, "_picture", picture)
    await set_access(video, PRIVATE, resources)
    storage = PausedStorage(resources.storage, "put", "master.m3u8")
    moving = asyncio.create_task(move(video, resources, storage=storage))
    await storage.is_asked.wait()
    await request_poster(video.id, time_s=0, queue=resources.queue)
    made = {"storage": resources.storage, "queue": resources.queue, "work_dir": tmp_path}
    await make_poster(video.id, 1, **made)
    storage.may_go_on.set()
    await moving
    assert "poster-1.jpg" in await folder_of(video, resources)


@pytest.mark.parametrize("fate", ["running", "lost"])
async def test_move_that_a_dead_worker_left_is_queued_again(
    resources: WebContext, video: Video, fate: str
) -> None:
    database_url = resources.config.database_url
    await set_access(video, PRIVATE, resources)
    changes = {
        "running": "UPDATE procrastinate_jobs SET status = 'doing'",
        "lost": "DELETE FROM procrastinate_jobs",
    }
    await run_sql(database_url, LOST + changes[fate])
    async with resources.queue.open_async():
        assert await recovery.finish_left_running(resources.queue) == 0
        assert await recovery.recover_side_jobs(resources.queue) == 1
    waiting = (
        "SELECT task_name FROM procrastinate_jobs job JOIN moves ON job_id = job.id"
        " WHERE status = 'todo'"
    )
    assert await rows(database_url, waiting) == [("portal:move",)]


@pytest.mark.slow
async def test_worker_moves_a_video_and_keeps_no_slot_while_it_waits(
    resources: WebContext, video: Video, environ: dict[str, str]
) -> None:
    await set_access(video, PRIVATE, resources)
    async with process("worker", environ):

        async def is_moved() -> bool:
            return not await is_moving(video)

        await until(is_moved, timeout_s=30)
    moved = await Attempt.get(video_id=video.id, outcome=Outcome.MOVED)
    keys = await stored(resources.storage, video.id)
    assert {int(key.split("/")[2]) for key in keys} == {moved.number}
