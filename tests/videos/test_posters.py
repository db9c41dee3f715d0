"""The frame under the playhead becomes the poster: the right one, once, and whatever crashes."""

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import pytest
from api_client import ENCODING, Client, rows, run_sql, until_found
from page_rows import READY, make_row
from passes import published_file, ready_video
from quart import Response
from running_portal import process, run_ffmpeg, until
from stored_objects import stored
from werkzeug.datastructures import FileStorage

from portal.database.deletion_models import Deletion
from portal.database.models import PosterRequest, Video
from portal.database.states import PosterState
from portal.processing import removal
from portal.transcoding.encoding.pictures import fit_picture
from portal.transcoding.errors import PictureFault
from portal.transcoding.planning.storyboard import Storyboard
from portal.videos import deletion, posters
from portal.videos.posters import fetch_picture, poster_key
from portal.web.composition import WebContext
from portal.web.pages.poster_views import FAULTS

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

    async def shade(self, version: int = 1) -> float:
        return shade(await self.resources.storage.get(self.key(version)))

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
    assert response.headers["Location"] == f"/videos/{poster.video.id}/edit?watched=1#poster"

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
    assert "The poster was replaced." in fragment
    assert f"/videos/{poster.video.id}/poster.jpg?v=1" in fragment


async def test_frame_is_the_one_that_is_shown_at_that_time(poster: Poster) -> None:
    frames = {0: 0, 0.1: 1, 0.19: 1, 3.95: 39, 4.0: 40, 5.9: 59, 99: 59}
    shown = {}
    for number, time_s in enumerate(frames, start=1):
        await poster.ask(str(time_s))
        assert (await poster.make(number)).state is PosterState.DONE
        shown[time_s] = await poster.shade(number)
    assert shown == pytest.approx(frames, abs=0.5)


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
    assert "Waiting for the worker…" in fragment
    assert f'hx-get="/videos/{poster.video.id}/poster?watched=1"' in fragment
    await poster.make()
    fragment = await poster.fragment("?watched=1")
    assert "The poster was replaced." in fragment
    assert 'data-poster="1"' in fragment
    assert "hx-get" not in fragment
    assert "was replaced" not in await poster.fragment()


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


PICTURES = ("poster/picture", "poster/picture/panel")
# Green on the left and red on the right, in the shape of four to one.
HALVES = "color=0x00ff00:size=400x200,pad=800:200:0:0:red"


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Pictures of each kind, and files that are none."""
    folder = tmp_path_factory.mktemp("pictures")

    def made(name: str, source: str, *options: str) -> bytes:
        arguments = ["-f", "lavfi", "-i", source, "-frames:v", "1", *options]
        return run_ffmpeg(folder / name, *arguments).read_bytes()

    jpeg = made("halves.jpg", HALVES)
    png = made("halves.png", HALVES)
    return {
        "jpeg": jpeg,
        "png": png,
        "webp": made("halves.webp", HALVES, "-c:v", "libwebp"),
        "turned": turned(jpeg),
        "clear": made("clear.png", "color=white@0.0:size=640x360,format=rgba"),
        "thin": made("thin.png", "color=red:size=9000x2"),
        "cut": png[: len(png) // 2],
        "empty": b"",
        "text": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "name only": b"\xff\xd8\xff" + b"x" * 100,
        "playlist": b"\x89PNG\r\n\x1a\n#EXTM3U\nfile:///etc/passwd",
        "many pixels": made("large.jpg", "color=red:size=9000x6000"),
        "animated": made("moving.webp", "testsrc", "-c:v", "libwebp_anim", "-frames:v", "3"),
        "large": jpeg + bytes(10_000_000),
    }


def turned(jpeg: bytes) -> bytes:
    """The same as a camera writes it that was held upright: to be turned clockwise."""
    note = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    return jpeg[:2] + b"\xff\xe1" + (len(note) + 2).to_bytes(2, "big") + note + jpeg[2:]


def colours(picture: bytes) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Width and height, and the colours of a picture left, right, at the top and at the bottom."""
    with av.open(io.BytesIO(picture)) as container:
        plane = next(container.decode(video=0)).reformat(format="rgb24").planes[0]
    data, width, height = bytes(plane), plane.width, plane.height
    places = (
        *((width // 8, height // 2), (width * 7 // 8, height // 2)),
        *((width // 2, height // 8), (width // 2, height * 7 // 8)),
    )
    starts = [y * plane.line_size + 3 * x for x, y in places]
    return width, height, [tuple(data[start : start + 3]) for start in starts]  # type: ignore[misc]  # of three


def is_like(colour: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return all(abs(it - other) < 40 for it, other in zip(colour, wanted, strict=True))


async def send_picture(client: Client, video: Video, picture: bytes, path: str) -> Response:
    file = FileStorage(io.BytesIO(picture), filename="own.jpg", name="picture")
    return await client.post(f"/videos/{video.id}/{path}", files={"picture": file})


GREEN, RED, BLACK = (0, 255, 0), (255, 0, 0), (0, 0, 0)


@pytest.mark.parametrize("path", PICTURES)
async def test_picture_that_is_sent_becomes_the_poster(
    poster: Poster, pictures: dict[str, bytes], path: str
) -> None:
    response = await send_picture(poster.client, poster.video, pictures["jpeg"], path)
    if path == "poster/picture":
        assert response.status_code == 303
        place = f"/videos/{poster.video.id}/edit?watched=1"
        assert response.headers["Location"] == f"{place}#poster"
    else:
        assert "Waiting for the worker…" in str(await response.get_data(as_text=True))
    request = await poster.make()
    assert (request.state, request.time_s) == (PosterState.DONE, None)
    assert await poster.stored() == ["poster-1.jpg"]
    width, height, (left, right, *_) = colours(await poster.resources.storage.get(poster.key(1)))
    assert (width, height) == (320, 180)
    assert is_like(left, GREEN)
    assert is_like(right, RED)
    assert await fetch_picture(poster.video.id) is None
    answer = await poster.client.get(f"/videos/{poster.video.id}/poster?watched=1")
    assert "video-changed" in answer.headers["HX-Trigger"]
    assert "The poster was replaced." in str(await answer.get_data(as_text=True))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("png", [GREEN, RED]),
        ("webp", [GREEN, RED]),
        ("turned", [None, None, GREEN, RED]),
        ("clear", [BLACK, BLACK]),
        ("thin", [RED, RED]),
    ],
)
async def test_picture_is_cut_to_the_shape_of_the_video(
    pictures: dict[str, bytes],
    tmp_path: Path,
    name: str,
    expected: list[tuple[int, int, int] | None],
) -> None:
    made = await fit_picture(pictures[name], shape=(1920, 1080), work_dir=tmp_path)
    width, height, found = colours(made)
    assert (width, height) == (1280, 720)
    for colour, wanted in zip(found, expected, strict=False):
        assert wanted is None or is_like(colour, wanted)


@pytest.mark.parametrize("path", PICTURES)
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("empty", "Choose a picture."),
        ("text", "No JPEG, PNG or still WebP can be read in it. Choose another one."),
        ("large", "This picture is larger than 10 MB and 50 megapixels. Choose a smaller one."),
    ],
)
async def test_file_that_is_no_picture_is_refused_at_its_field(
    client: Client, pictures: dict[str, bytes], path: str, name: str, fault: str
) -> None:
    video = await make_row(**READY)
    response = await send_picture(client, video, pictures[name], path)
    page = str(await response.get_data(as_text=True))
    assert response.status_code == 422
    assert f">{fault}</p>" in page[page.index('id="poster-picture-error"') :]
    assert not await PosterRequest.exists()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("name only", "picture_unreadable"),
        ("cut", "picture_unreadable"),
        ("playlist", "picture_unreadable"),
        ("animated", "picture_unreadable"),
        ("many pixels", "picture_too_large"),
    ],
)
async def test_picture_that_can_not_be_decoded_is_told_at_its_field(
    poster: Poster, pictures: dict[str, bytes], name: str, code: str
) -> None:
    response = await send_picture(poster.client, poster.video, pictures[name], PICTURES[0])
    assert response.status_code == 303
    request = await poster.make()
    assert (request.state, request.error_code) == (PosterState.FAILED, code)
    for path in ("poster", "edit"):
        answer = await poster.client.get(f"/videos/{poster.video.id}/{path}?watched=1")
        page = str(await answer.get_data(as_text=True))
        fault = FAULTS[PictureFault(code)]
        assert f">{fault}</p>" in page[page.index('id="poster-picture-error"') :]
    assert await poster.stored() == ["poster.jpg"]
    assert await fetch_picture(poster.video.id) is None


async def test_frames_of_the_whole_video_are_offered(poster: Poster) -> None:
    key = f"{poster.key(0).rpartition('/')[0]}/storyboard.vtt"
    await poster.resources.storage.put(key, STORYBOARD.encode(), content_type="text/vtt")
    await Video.filter(id=poster.video.id).update(has_storyboard=True)
    page = await poster.fragment()
    times = re.findall(r'name="time"\s+value="([\d.]+)"', page)
    assert times == ["1.502", "3.502", "5.502", "7.502", "9.502", "11.502"]
    assert 'aria-label="Use the frame at 0:10"' in page
    folder = f"/hls/{poster.video.id}/{poster.video.published_attempt}"
    assert f'href="{folder}/storyboard-000.jpg"' in page
    assert 'viewBox="0 108 192 108"' in page
    await poster.ask(times[1])
    assert (await poster.make()).state is PosterState.DONE
    assert await poster.shade() == pytest.approx(35, abs=0.5)


# A thumbnail from the middle of each of twelve seconds.
STORYBOARD = Storyboard(interval_s=1, width=192, height=108).vtt(
    [number + 0.5 for number in range(12)], duration_s=12
)
