"""The frame under the playhead becomes the poster: the right one, once, and whatever crashes."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import pytest
from api_client import ENCODING, Client, rows, run_sql, until_found
from page_rows import READY, make_row
from passes import published_file, ready_video
from quart import Response
from running_portal import process, run_ffmpeg, until
from stored_objects import stored, unreachable

from portal.database.deletion_models import Deletion
from portal.database.models import PosterRequest, Video
from portal.database.states import PosterState
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
    return run_ffmpeg(path, *arguments, "-c:v", "libx264", "-crf", "10")


def shade(picture: bytes) -> float:
    """How many frames into the source a picture was taken, by its brightness."""
    with av.open(io.BytesIO(picture)) as container:
        plane = next(container.decode(video=0)).reformat(format="gray").planes[0]
        light = sum(bytes(plane)[: plane.width]) / plane.width
    full_range = (light * 219 / 255) + 16
    return (full_range - 20 * 219 / 255 - 16) / (3 * 219 / 255)


@dataclass(frozen=True)
class Poster:
    """The poster of a ready video of many shades: asked for by editors, made by a worker."""

    video: Video
    client: Client
    resources: WebContext
    work_dir: Path

    async def ask(self, time: str, path: str = "poster") -> Response:
        return await ask(self.client, self.video, time, path)

    async def make(self, number: int = 1) -> PosterRequest:
        """Carry out a request as a worker does."""
        await posters.make_poster(
            self.video.id,
            number,
            storage=self.resources.storage,
            queue=self.resources.queue,
            work_dir=self.work_dir,
        )
        return await PosterRequest.get(video_id=self.video.id)

    def key(self, version: int) -> str:
        return poster_key(self.video.id, self.video.published_attempt or 0, version)

    async def shade(self) -> float:
        """Of the first one that was asked for."""
        return shade(await self.resources.storage.get(self.key(1)))

    async def stored(self) -> list[str]:
        """Those that storage holds."""
        keys = await stored(self.resources.storage, self.video.id)
        return [key.rpartition("/")[2] for key in keys if "/poster" in key]

    async def fragment(self, query: str = "") -> str:
        response = await self.client.get(f"/videos/{self.video.id}/poster{query}")
        return str(await response.get_data(as_text=True))

    async def version(self) -> int:
        return (await Video.get(id=self.video.id)).poster_version


@pytest.fixture
async def poster(
    client: Client, resources: WebContext, shaded_video: Path, tmp_path: Path
) -> Poster:
    video = await ready_video(client, resources, shaded_video, tmp_path)
    return Poster(video, client, resources, tmp_path)


async def ask(client: Client, video: Video, time: str, path: str = "poster") -> Response:
    return await client.post(f"/videos/{video.id}/{path}", form={"time": time})


async def test_worker_replaces_the_poster_by_the_frame_asked_for(
    poster: Poster, environ: dict[str, str]
) -> None:
    assert await poster.stored() == ["poster.jpg"]
    response = await poster.ask("4.75")
    assert response.status_code == 303
    assert response.headers["Location"] == f"/videos/{poster.video.id}/edit#poster"

    async def is_done() -> bool:
        return await PosterRequest.exists(video_id=poster.video.id, state=PosterState.DONE)

    async def is_alone() -> bool:
        return await poster.stored() == ["poster-1.jpg"]

    async with process("worker", environ):
        await until(is_done, timeout_s=15)
        await until(is_alone, timeout_s=5)
    found = await Video.get(id=poster.video.id)
    assert found.poster_version == 1
    assert found.updated_at > poster.video.updated_at
    assert found.changed_at == found.updated_at
    assert await poster.shade() == pytest.approx(47, abs=0.5)
    page = await poster.client.get(f"/videos/{poster.video.id}")
    assert f"/videos/{poster.video.id}/poster.jpg?v=1" in str(await page.get_data(as_text=True))


async def test_news_of_a_poster_come_with_its_picture(
    poster: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await poster.ask("1")
    look = PosterRequest.get_or_none

    async def look_when_it_is_done(**query: Any) -> PosterRequest | None:
        monkeypatch.setattr(PosterRequest, "get_or_none", look)
        await poster.make()
        return await look(**query)

    monkeypatch.setattr(PosterRequest, "get_or_none", look_when_it_is_done)
    fragment = await poster.fragment("?watched=1")
    assert "This frame is the poster now." in fragment
    assert f"/videos/{poster.video.id}/poster.jpg?v=1" in fragment


@pytest.mark.parametrize(
    ("time_s", "frame"), [(0, 0), (0.1, 1), (0.19, 1), (3.95, 39), (4.0, 40), (5.9, 59), (99, 59)]
)
async def test_frame_is_the_one_that_is_shown_at_that_time(
    poster: Poster, time_s: float, frame: int
) -> None:
    await poster.ask(str(time_s))
    assert (await poster.make()).state is PosterState.DONE
    assert await poster.shade() == pytest.approx(frame, abs=0.5)


async def test_later_request_voids_the_one_that_waits(poster: Poster) -> None:
    await poster.ask("1")
    await poster.ask("2")
    await poster.make(1)
    assert await poster.version() == 0
    assert (await poster.make(2)).state is PosterState.DONE
    assert await poster.stored() == ["poster-2.jpg"]


async def test_job_that_runs_again_writes_nothing_twice_and_tidies_up(poster: Poster) -> None:
    storage = poster.resources.storage
    await poster.ask("1")
    await poster.make()
    # Killed before it had removed the old one.
    await storage.put(poster.key(0), b"old", content_type="image/jpeg")
    written = await storage.head(poster.key(1))
    await poster.make()
    assert await poster.stored() == ["poster-1.jpg"]
    assert await storage.head(poster.key(1)) == written


async def test_request_that_kills_its_workers_fails(poster: Poster) -> None:
    await poster.ask("1")
    await PosterRequest.all().update(state="working", tries=posters.MAX_TRIES)
    request = await poster.make()
    assert (request.state, request.error_code) == (PosterState.FAILED, "worker_lost")
    page = await poster.fragment("?watched=1")
    assert "couldn’t be cut" in page  # noqa: RUF001 - as shown
    assert "hx-get" not in page
    assert "be cut" not in await poster.fragment()
    assert await poster.stored() == ["poster.jpg"]


@pytest.mark.slow
async def test_killed_worker_leaves_its_request_to_the_next(
    poster: Poster, environ: dict[str, str]
) -> None:
    await poster.ask("1")
    await run_sql(
        environ["DATABASE_URL"],
        "UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'portal:poster';"
        "UPDATE poster_requests SET state = 'working', tries = 1,"
        " lease_expires_at = now() - interval '1 s'",
    )

    async def is_done() -> bool:
        return await poster.version() == 1

    async with process("worker", environ):
        await until(is_done, timeout_s=15)


@pytest.mark.slow
async def test_outage_of_storage_is_waited_for_and_counts_as_no_try(poster: Poster) -> None:
    await poster.ask("1")
    async with open_storage(unreachable(poster.resources.config)) as nowhere:
        away = replace(poster, resources=replace(poster.resources, storage=nowhere))
        with pytest.raises(StorageUnavailable):
            await away.make()
    request = await PosterRequest.get(video_id=poster.video.id)
    assert (request.state, request.tries) == (PosterState.WAITING, 0)
    assert (await poster.make()).state is PosterState.DONE


async def test_rendition_that_can_not_be_read_fails_with_words(poster: Poster) -> None:
    storage = poster.resources.storage
    await poster.ask("1")
    keys = await stored(storage, poster.video.id)
    await storage.delete_many([key for key in keys if key.endswith(".m4s")])
    request = await poster.make()
    assert (request.state, request.error_code) == (PosterState.FAILED, "rendition_unreadable")


async def test_poster_of_a_video_that_was_deleted_meanwhile_leaves_nothing(poster: Poster) -> None:
    video, storage, queue = poster.video, poster.resources.storage, poster.resources.queue
    await poster.ask("1")
    await PosterRequest.all().update(state=PosterState.WORKING)
    await deletion.delete_video(video.id, queue=queue)
    await storage.put(poster.key(1), b"late", content_type="image/jpeg")
    await posters._finish(video, 1, poster.key(1), storage, queue)
    promised = await Deletion.get(video_id=video.id)
    assert promised.settles_at > promised.lease_expires_at.now(promised.settles_at.tzinfo)
    await run_sql(poster.resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, storage=storage)
    assert await stored(storage, video.id) == []


async def test_page_follows_a_request_and_tells_its_end(poster: Poster) -> None:
    response = await poster.ask("1", "poster/frame")
    fragment = str(await response.get_data(as_text=True))
    assert "Waiting for the worker" in fragment
    assert f'hx-get="/videos/{poster.video.id}/poster?watched=1"' in fragment
    await poster.make()
    fragment = await poster.fragment("?watched=1")
    assert "This frame is the poster now." in fragment
    assert 'data-poster="1"' in fragment
    assert "hx-get" not in fragment
    assert "poster now." not in await poster.fragment()


async def test_address_of_a_poster_is_kept_only_with_its_version(poster: Poster) -> None:
    address = f"/videos/{poster.video.id}/poster.jpg"
    kept = await poster.client.get(f"{address}?v=0")
    assert "max-age=300" in kept.headers["Cache-Control"]
    await poster.ask("1")
    await poster.make()
    for query in ("", "?v=0"):
        response = await poster.client.get(address + query)
        assert response.headers["Cache-Control"] == "private, no-cache"
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


async def test_segment_that_is_none_can_not_be_cut(tmp_path: Path) -> None:
    for segment in (b"", b"x" * 100, b"\0\0\0\x08moof"):
        with pytest.raises(TranscodeFailed):
            await cut_frame(b"", segment, at_s=0, work_dir=tmp_path)


@pytest.mark.slow
async def test_side_jobs_do_not_wait_for_a_transcode(
    poster: Poster, long_video: Path, environ: dict[str, str]
) -> None:
    await published_file(poster.client, poster.resources, long_video)

    async def is_done() -> bool:
        return await poster.version() == 1

    async with process("worker", environ):
        await until_found(environ["DATABASE_URL"], ENCODING)
        await poster.ask("2")
        await until(is_done, timeout_s=10)
        assert await rows(environ["DATABASE_URL"], ENCODING)
