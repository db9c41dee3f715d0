"""The frame under the playhead becomes the poster: the right one, once, and whatever crashes."""

import io
import subprocess
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg
import pytest
from api_client import Client, rows, run_sql
from page_rows import READY, make_row
from passes import make_playable, published_file
from quart import Response
from running_portal import process, until
from stored_objects import stored, unreachable

from portal.database.models import Deletion, PosterRequest, PosterState, Video
from portal.errors import NotPlayable, StorageUnavailable
from portal.processing import removal
from portal.storage.bucket import open_storage
from portal.transcoding.encoding.frames import cut_frame
from portal.transcoding.errors import TranscodeFailed
from portal.videos import deletion, posters
from portal.videos.posters import poster_key
from portal.web.composition import WebContext

SHADES = 60


@pytest.fixture(scope="session")
def shaded_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds of ten frames each, every one a shade lighter than the one before."""
    path = tmp_path_factory.mktemp("media") / "shaded.mp4"
    source = f"color=black:size=320x180:rate=10:duration={SHADES / 10},format=gray"
    arguments = ["-f", "lavfi", "-i", f"{source},geq=lum='20+N*3'", "-pix_fmt", "yuv420p"]
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run(
        [ffmpeg, "-v", "error", "-y", *arguments, "-c:v", "libx264", "-crf", "10", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return path


def shade(picture: bytes) -> float:
    """How many frames into the source a picture was taken, by its brightness."""
    with av.open(io.BytesIO(picture)) as container:
        plane = next(container.decode(video=0)).reformat(format="gray").planes[0]
        light = sum(bytes(plane)[: plane.width]) / plane.width
    full_range = (light * 219 / 255) + 16
    return (full_range - 20 * 219 / 255 - 16) / (3 * 219 / 255)


@pytest.fixture
async def video(client: Client, resources: WebContext, shaded_video: Path, tmp_path: Path) -> Video:
    """A ready video of many shades."""
    return await make_playable(
        await published_file(client, resources, shaded_video), resources, tmp_path
    )


async def ask(client: Client, video: Video, time: str, path: str = "poster") -> Response:
    return await client.post(f"/videos/{video.id}/{path}", form={"time": time})


async def make(video: Video, number: int, resources: WebContext, work_dir: Path) -> PosterRequest:
    """Carry out a request as a worker does."""
    work_dir.mkdir(exist_ok=True)
    await posters.make_poster(
        video.id,
        number,
        storage=resources.storage,
        queue=resources.queue,
        work_dir=work_dir,
    )
    return await PosterRequest.get(video_id=video.id)


async def images(resources: WebContext, video: Video) -> list[str]:
    """The posters that storage holds of a video."""
    keys = await stored(resources.storage, video.id)
    return [key.rpartition("/")[2] for key in keys if "/poster" in key]


async def test_worker_replaces_the_poster_by_the_frame_asked_for(
    client: Client, resources: WebContext, video: Video, environ: dict[str, str]
) -> None:
    assert await images(resources, video) == ["poster.jpg"]
    response = await ask(client, video, "4.75")
    assert response.status_code == 303
    assert response.headers["Location"] == f"/videos/{video.id}#poster"

    async def is_done() -> bool:
        return await PosterRequest.exists(video_id=video.id, state=PosterState.DONE)

    async with process("worker", environ):
        await until(is_done, timeout_s=15)
        await until(lambda: _only(resources, video, "poster-1.jpg"), timeout_s=5)
    found = await Video.get(id=video.id)
    assert found.poster_version == 1
    assert found.updated_at > video.updated_at
    picture = await resources.storage.get(poster_key(video.id, video.published_attempt or 0, 1))
    assert shade(picture) == pytest.approx(47, abs=0.5)
    page = await client.get(f"/videos/{video.id}")
    assert f"/videos/{video.id}/poster.jpg?v=1" in str(await page.get_data(as_text=True))


async def test_news_of_a_poster_come_with_its_picture(
    client: Client,
    resources: WebContext,
    video: Video,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = await posters.request_poster(video.id, time_s=1, queue=resources.queue)
    look = PosterRequest.get_or_none

    async def look_when_it_is_done(**query: Any) -> PosterRequest | None:
        monkeypatch.setattr(PosterRequest, "get_or_none", look)
        await make(video, asked.number, resources, tmp_path / "w")
        return await look(**query)

    monkeypatch.setattr(PosterRequest, "get_or_none", look_when_it_is_done)
    response = await client.get(f"/videos/{video.id}/poster?watched={asked.number}")
    fragment = str(await response.get_data(as_text=True))
    assert "This frame is the poster now." in fragment
    assert f"/videos/{video.id}/poster.jpg?v=1" in fragment


async def _only(resources: WebContext, video: Video, name: str) -> bool:
    return await images(resources, video) == [name]


@pytest.mark.parametrize(
    ("time_s", "frame"), [(0, 0), (0.1, 1), (0.19, 1), (3.95, 39), (4.0, 40), (5.9, 59), (99, 59)]
)
async def test_frame_is_the_one_that_is_shown_at_that_time(
    client: Client,
    resources: WebContext,
    video: Video,
    tmp_path: Path,
    time_s: float,
    frame: int,
) -> None:
    request = await posters.request_poster(video.id, time_s=time_s, queue=resources.queue)
    request = await make(video, request.number, resources, tmp_path / "w")
    assert request.state is PosterState.DONE
    picture = await resources.storage.get(poster_key(video.id, video.published_attempt or 0, 1))
    assert shade(picture) == pytest.approx(frame, abs=0.5)


async def test_later_request_voids_the_one_that_waits(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    await ask(client, video, "2")
    await make(video, 1, resources, tmp_path / "w")
    assert (await Video.get(id=video.id)).poster_version == 0
    request = await make(video, 2, resources, tmp_path / "w")
    assert request.state is PosterState.DONE
    assert await images(resources, video) == ["poster-2.jpg"]


async def test_job_that_runs_again_writes_nothing_twice_and_tidies_up(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    await make(video, 1, resources, tmp_path / "w")
    # Killed before it had removed the old one.
    old = poster_key(video.id, video.published_attempt or 0, 0)
    await resources.storage.put(old, b"old", content_type="image/jpeg")
    written = await resources.storage.head(poster_key(video.id, video.published_attempt or 0, 1))
    await make(video, 1, resources, tmp_path / "w")
    assert await images(resources, video) == ["poster-1.jpg"]
    again = await resources.storage.head(poster_key(video.id, video.published_attempt or 0, 1))
    assert again == written


async def test_request_that_kills_its_workers_fails(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    await PosterRequest.filter(video_id=video.id).update(state="working", tries=posters.MAX_TRIES)
    request = await make(video, 1, resources, tmp_path / "w")
    assert (request.state, request.error_code) == (PosterState.FAILED, "worker_lost")
    page = await _poster(client, video, "?watched=1")
    assert "couldn’t be cut" in page  # noqa: RUF001 - as shown
    assert "hx-get" not in page
    assert "be cut" not in await _poster(client, video, "")
    assert await images(resources, video) == ["poster.jpg"]


@pytest.mark.slow
async def test_killed_worker_leaves_its_request_to_the_next(
    client: Client, resources: WebContext, video: Video, environ: dict[str, str]
) -> None:
    await ask(client, video, "1")
    await run_sql(
        resources.config.database_url,
        "UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'portal:poster';"
        "UPDATE poster_requests SET state = 'working', tries = 1,"
        " lease_expires_at = now() - interval '1 s'",
    )

    async def is_done() -> bool:
        return (await Video.get(id=video.id)).poster_version == 1

    async with process("worker", environ):
        await until(is_done, timeout_s=15)


@pytest.mark.slow
async def test_outage_of_storage_is_waited_for_and_counts_as_no_try(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    async with open_storage(unreachable(resources.config)) as nowhere:
        with pytest.raises(StorageUnavailable):
            await posters.make_poster(
                video.id, 1, storage=nowhere, queue=resources.queue, work_dir=tmp_path
            )
    request = await PosterRequest.get(video_id=video.id)
    assert (request.state, request.tries) == (PosterState.WAITING, 0)
    assert (await make(video, 1, resources, tmp_path / "w")).state is PosterState.DONE


async def test_rendition_that_can_not_be_read_fails_with_words(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    keys = await stored(resources.storage, video.id)
    await resources.storage.delete_many([key for key in keys if key.endswith(".m4s")])
    request = await make(video, 1, resources, tmp_path / "w")
    assert (request.state, request.error_code) == (PosterState.FAILED, "rendition_unreadable")


async def test_poster_of_a_video_that_was_deleted_meanwhile_leaves_nothing(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    await ask(client, video, "1")
    await PosterRequest.filter(video_id=video.id).update(state=PosterState.WORKING)
    key = poster_key(video.id, video.published_attempt or 0, 1)
    await deletion.delete_video(video.id, queue=resources.queue)
    await resources.storage.put(key, b"late", content_type="image/jpeg")
    await posters._finish(video, 1, key, resources.storage, resources.queue)
    promised = await Deletion.get(video_id=video.id)
    assert promised.settles_at > promised.lease_expires_at.now(promised.settles_at.tzinfo)
    await run_sql(resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id) == []


async def test_page_follows_a_request_and_tells_its_end(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    fragment = str(await (await ask(client, video, "1", "poster/frame")).get_data(as_text=True))
    assert "Waiting for the worker" in fragment
    assert f'hx-get="/videos/{video.id}/poster?watched=1"' in fragment
    await make(video, 1, resources, tmp_path / "w")
    fragment = await _poster(client, video, "?watched=1")
    assert "This frame is the poster now." in fragment
    assert 'data-poster="1"' in fragment
    assert "hx-get" not in fragment
    assert "poster now." not in await _poster(client, video, "")


async def _poster(client: Client, video: Video, query: str) -> str:
    response = await client.get(f"/videos/{video.id}/poster{query}")
    return str(await response.get_data(as_text=True))


async def test_address_of_a_poster_is_kept_only_with_its_version(
    client: Client, resources: WebContext, video: Video, tmp_path: Path
) -> None:
    kept = await client.get(f"/videos/{video.id}/poster.jpg?v=0")
    assert "max-age=300" in kept.headers["Cache-Control"]
    await ask(client, video, "1")
    await make(video, 1, resources, tmp_path / "w")
    for query in ("", "?v=0"):
        response = await client.get(f"/videos/{video.id}/poster.jpg{query}")
        assert response.headers["Cache-Control"] == "no-cache"
        assert "/poster-1.jpg?" in response.headers["Location"]


@pytest.mark.parametrize("time", ["", "x", "nan", "inf"])
async def test_time_that_is_none_is_refused(client: Client, time: str) -> None:
    video = await make_row(**READY)
    assert (await ask(client, video, time)).status_code == 422
    assert not await PosterRequest.exists()


async def test_video_without_frames_has_none_to_take(client: Client, resources: WebContext) -> None:
    video = await make_row()
    assert (await ask(client, video, "1")).status_code == 409
    with pytest.raises(NotPlayable):
        await posters.request_poster(video.id, time_s=1, queue=resources.queue)


async def test_nothing_is_asked_for_from_another_site(client: Client) -> None:
    video = await make_row(**READY)
    for path in ("poster", "poster/frame"):
        response = await client.post(
            f"/videos/{video.id}/{path}",
            form={"time": "1"},
            headers={"Sec-Fetch-Site": "cross-site"},
        )
        assert response.status_code == 403


async def test_segment_that_is_none_can_not_be_cut(tmp_path: Path) -> None:
    for segment in (b"", b"x" * 100, b"\0\0\0\x08moof"):
        with pytest.raises(TranscodeFailed):
            await cut_frame(b"", segment, at_s=0, work_dir=tmp_path)


@pytest.mark.slow
async def test_side_jobs_do_not_wait_for_a_transcode(
    client: Client,
    resources: WebContext,
    video: Video,
    long_video: Path,
    environ: dict[str, str],
) -> None:
    await published_file(client, resources, long_video)

    async def is_encoding() -> bool:
        query = "SELECT 1 FROM attempts WHERE outcome IS NULL AND stage = 'transcoding'"
        return bool(await rows(resources.config.database_url, query))

    async def is_done() -> bool:
        return (await Video.get(id=video.id)).poster_version == 1

    async with process("worker", environ):
        await until(is_encoding, timeout_s=20)
        await ask(client, video, "2")
        await until(is_done, timeout_s=10)
        assert await is_encoding()
