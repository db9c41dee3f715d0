"""The poster that an editor chooses, a frame or a picture: the right one, once, and on failure."""

import io
import re
from dataclasses import dataclass
from pathlib import Path

import av
import pytest
from api_client import Client, run_sql
from page_rows import READY, make_row
from page_texts import page, shown
from passes import ready_video, tools_for
from quart import Response
from running_portal import run_ffmpeg
from stored_objects import stored
from werkzeug.datastructures import FileStorage

from portal.database.connection import fetch_rows
from portal.database.event_models import Event
from portal.database.models import PosterRequest, PosterState, Video
from portal.features.deletion import service as deletion
from portal.features.posters import service as posters
from portal.features.posters.pages import FAULTS
from portal.films import removal
from portal.http.composition import WebContext
from portal.storage.objects import output_root
from portal.transcoding.encoding.pictures import fit_picture
from portal.transcoding.errors import PictureFault, PictureRejected
from portal.transcoding.planning.storyboard import Storyboard

pytestmark = pytest.mark.shared_app

SHADES = 60


@pytest.fixture(scope="session")
def shaded_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds of ten frames each, every one a shade lighter than the one before."""
    path = tmp_path_factory.mktemp("media") / "shaded.mp4"
    source = f"color=black:size=320x180:rate=10:duration={SHADES / 10},format=gray"
    arguments = ["-f", "lavfi", "-i", f"{source},geq=lum='20+N*3'", "-pix_fmt", "yuv420p"]
    return run_ffmpeg(path, *arguments, "-c:v", "libx264", "-crf", "10")


def shade(picture: bytes) -> float:
    """Return the number of a frame of the source, by its brightness."""
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

    async def ask(self, time_s: float) -> None:
        path = f"/videos/{self.video.id}/poster"
        response = await self.client.post(path, form={"time": str(time_s)})
        assert response.status_code == 303
        assert response.headers["Location"].startswith(f"/videos/{self.video.id}/edit?watched=")

    async def make(self, number: int = 1) -> PosterRequest:
        tools = tools_for(self.resources, self.work_dir)
        await posters.make_poster(self.video.id, number, tools)
        return await PosterRequest.get(video_id=self.video.id)

    def key(self, version: int) -> str:
        return output_root(self.video.id) + posters.requested_path(version)

    async def stored(self) -> list[str]:
        keys = await stored(self.resources.storage, self.video.id)
        return [key.rpartition("/")[2] for key in keys if "/posters/" in key]

    async def fragment(self, query: str = "") -> str:
        return await page(self.client, f"/videos/{self.video.id}/poster{query}")


@pytest.fixture
async def poster(
    client: Client, resources: WebContext, shaded_video: Path, tmp_path: Path
) -> Poster:
    video = await ready_video(client, resources, shaded_video, tmp_path)
    return Poster(video, client, resources, tmp_path)


async def test_poster_is_replaced_by_the_frame_that_is_shown_at_the_time_asked_for(
    poster: Poster,
) -> None:
    assert await poster.stored() == []
    frames = {0: 0, 0.19: 1, 3.95: 39, 4.0: 40, 99: 59}
    shades = {}
    for number, time_s in enumerate(frames, start=1):
        await poster.ask(time_s)
        assert (await poster.make(number)).state is PosterState.DONE
        assert await poster.stored() == [f"poster-{number}.jpg"]
        shades[time_s] = shade(await poster.resources.storage.get(poster.key(number)))
    assert shades == pytest.approx(frames, abs=0.5)
    changed = await Video.get(id=poster.video.id)
    assert changed.poster_version == len(frames)
    assert changed.changed_at == changed.updated_at > poster.video.updated_at
    assert await Event.filter(video_id=changed.id, type="video.updated").count() == len(frames)
    text = await page(poster.client, f"/videos/{changed.id}")
    assert f"/videos/{changed.id}/poster.jpg?v={changed.published_attempt}-5" in text


async def test_request_is_carried_out_once_and_voids_the_one_that_waits(poster: Poster) -> None:
    storage = poster.resources.storage
    await poster.ask(1)
    await poster.ask(2)
    await poster.make(1)
    assert await poster.stored() == []
    assert (await poster.make(2)).state is PosterState.DONE
    # Killed before it had removed the old one.
    await storage.put(poster.key(0), b"old", content_type="image/jpeg")
    written = await storage.head(poster.key(2))
    await poster.make(2)
    assert await poster.stored() == ["poster-2.jpg"]
    assert await storage.head(poster.key(2)) == written
    # The fault of an unreadable picture is shown.
    keys = await stored(storage, poster.video.id)
    await storage.delete_many([key for key in keys if key.endswith(".m4s")])
    await poster.ask(1)
    request = await poster.make(3)
    assert (request.state, request.error_code) == (PosterState.FAILED, "rendition_unreadable")


async def test_poster_of_a_video_that_was_deleted_meanwhile_leaves_nothing(poster: Poster) -> None:
    video = poster.video
    storage = poster.resources.storage
    await poster.ask(1)
    await PosterRequest.all().update(state=PosterState.WORKING)
    await deletion.delete_video(video.id)
    await storage.put(poster.key(1), b"late", content_type="image/jpeg")
    await posters._set_poster(video, 1, poster.key(1), storage)
    await run_sql(poster.resources.config.database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(video.id, tools_for(poster.resources))
    assert await stored(storage, video.id) == []


async def test_page_follows_a_request_and_an_address_is_kept_only_with_its_version(
    poster: Poster,
) -> None:
    address = f"/videos/{poster.video.id}/poster.jpg"
    former = f"?v={poster.video.published_attempt}-0"
    versioned = await poster.client.get(address + former)
    assert "max-age=300" in versioned.headers["Cache-Control"]
    await poster.ask(1)
    again = f'hx-get="/videos/{poster.video.id}/poster?watched=1"'
    assert again in await poster.fragment("?watched=1")
    await poster.make()
    fragment = await poster.fragment("?watched=1")
    assert "Poster updated." in fragment
    assert again not in fragment
    for query in ("", former):
        response = await poster.client.get(address + query)
        assert response.headers["Cache-Control"] == "private, no-cache"
        assert "/poster-1.jpg?" in response.headers["Location"]


# Green on the left and red on the right, in the shape of four to one.
HALVES = "color=0x00ff00:size=400x200,pad=800:200:0:0:red"
NAMES = {(0, 1, 0): "green", (1, 0, 0): "red", (0, 0, 0): "black"}


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Pictures of each kind, and files that are none."""
    folder = tmp_path_factory.mktemp("pictures")

    def made(name: str, source: str, *options: str) -> bytes:
        arguments = ["-f", "lavfi", "-i", source, "-frames:v", "1", *options]
        return run_ffmpeg(folder / name, *arguments).read_bytes()

    jpeg = made("halves.jpg", HALVES)
    return {
        "jpeg": jpeg,
        "webp": made("halves.webp", HALVES, "-c:v", "libwebp"),
        "turned": turned(jpeg),
        "clear": made("clear.png", "color=white@0.0:size=640x360,format=rgba"),
        "cut": made("halves.png", HALVES)[:500],
        "empty": b"",
        "text": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "playlist": b"\x89PNG\r\n\x1a\n#EXTM3U\nfile:///etc/passwd",
        "many pixels": made("large.jpg", "color=red:size=9000x6000"),
        "animated": made("moving.webp", "testsrc", "-c:v", "libwebp_anim", "-frames:v", "3"),
        "large": jpeg + bytes(10_000_000),
    }


def turned(jpeg: bytes) -> bytes:
    """The same as a camera writes it that was held upright: to be turned clockwise."""
    note = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    return jpeg[:2] + b"\xff\xe1" + (len(note) + 2).to_bytes(2, "big") + note + jpeg[2:]


def colours(picture: bytes) -> tuple[int, int, list[str]]:
    """Width and height, and the colours of a picture left, right, at the top and at the bottom."""
    with av.open(io.BytesIO(picture)) as container:
        plane = next(container.decode(video=0)).reformat(format="rgb24").planes[0]
    data = bytes(plane)
    width = plane.width
    height = plane.height
    places = [(1, 4), (7, 4), (4, 1), (4, 7)]
    starts = [y * height // 8 * plane.line_size + 3 * (x * width // 8) for x, y in places]
    shares = [tuple(round(value / 255) for value in data[start : start + 3]) for start in starts]
    return width, height, [NAMES.get(share, "mixed") for share in shares]


async def send_picture(client: Client, video: Video, picture: bytes) -> Response:
    file = FileStorage(io.BytesIO(picture), filename="own.jpg", name="picture")
    return await client.post(f"/videos/{video.id}/poster/picture", files={"picture": file})


async def test_picture_that_is_sent_becomes_the_poster_or_its_fault_is_told(
    poster: Poster, pictures: dict[str, bytes]
) -> None:
    client = poster.client
    video = poster.video
    assert (await send_picture(client, video, pictures["cut"])).status_code == 303
    request = await poster.make()
    assert (request.state, request.error_code) == (PosterState.FAILED, "picture_unreadable")
    text = await poster.fragment("?watched=1")
    fault = FAULTS[PictureFault.UNREADABLE]
    assert f">{fault}</p>" in text[text.index('id="poster-picture-error"') :]
    assert await poster.stored() == []

    assert (await send_picture(client, video, pictures["jpeg"])).status_code == 303
    request = await poster.make(2)
    assert (request.state, request.time_s) == (PosterState.DONE, None)
    assert await poster.stored() == ["poster-2.jpg"]
    width, height, names = colours(await poster.resources.storage.get(poster.key(2)))
    assert (width, height, names[:2]) == (320, 180, ["green", "red"])
    assert await fetch_rows(posters.PICTURE, poster.video.id) == []


@pytest.mark.parametrize(
    ("name", "places", "expected"),
    [
        ("webp", slice(0, 2), ["green", "red"]),
        ("turned", slice(2, 4), ["green", "red"]),
        ("clear", slice(0, 4), ["black"] * 4),
    ],
)
async def test_picture_is_cut_to_the_shape_of_the_video(
    pictures: dict[str, bytes], tmp_path: Path, name: str, places: slice, expected: list[str]
) -> None:
    poster = await fit_picture(pictures[name], shape=(1920, 1080), work_dir=tmp_path)
    width, height, names = colours(poster)
    assert (width, height, names[places]) == (1280, 720, expected)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("playlist", PictureFault.UNREADABLE),
        ("animated", PictureFault.UNREADABLE),
        ("many pixels", PictureFault.TOO_LARGE),
    ],
)
async def test_what_is_no_picture_to_be_cut_is_rejected(
    pictures: dict[str, bytes], tmp_path: Path, name: str, fault: PictureFault
) -> None:
    with pytest.raises(PictureRejected) as raised:
        await fit_picture(pictures[name], shape=(1920, 1080), work_dir=tmp_path)
    assert raised.value.code == fault


async def test_what_can_be_no_poster_is_refused_at_its_field(
    client: Client, pictures: dict[str, bytes]
) -> None:
    video = await make_row(**READY)
    for time in ("", "x", "nan", "inf"):
        response = await client.post(f"/videos/{video.id}/poster", form={"time": time})
        assert response.status_code == 422, time
    for name in ("empty", "text", "large"):
        text = await shown(await send_picture(client, video, pictures[name]), 422)
        assert re.search(r'id="poster-picture-error"[^>]*>\w', text), name
    assert not await PosterRequest.exists()


async def test_frames_of_the_whole_video_are_offered(client: Client, resources: WebContext) -> None:
    video = await make_row(**READY, has_storyboard=True)
    key = f"{output_root(video.id)}{video.published_attempt}/storyboard.vtt"
    await resources.storage.put(key, STORYBOARD.encode(), content_type="text/vtt")
    text = await page(client, f"/videos/{video.id}/poster")
    times = re.findall(r'name="time"\s+value="([\d.]+)"', text)
    assert times == ["1.502", "3.502", "5.502", "7.502", "9.502", "11.502"]
    assert 'aria-label="Use the frame at 0:09"' in text
    assert f'href="/hls/{video.id}/{video.published_attempt}/storyboard-000.jpg"' in text
    assert 'viewBox="0 108 192 108"' in text


# A thumbnail from the middle of each of twelve seconds.
STORYBOARD = Storyboard(interval_s=1, width=192, height=108, only_keys=True).vtt(
    [number + 0.5 for number in range(12)], duration_s=12
)
