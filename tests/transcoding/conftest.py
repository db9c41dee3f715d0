"""Small media made on the spot, a sink that keeps files in a folder, and a look at /proc."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import web
from media_recipes import ENCODED, MakeMedia
from published import FolderSink, Publish, Published, Studio, Write, transcode
from running_portal import run_ffmpeg
from serving import Handler, Hanging, Serve, serving


@pytest.fixture(scope="session")
def make_media(tmp_path_factory: pytest.TempPathFactory) -> MakeMedia:
    """Run ffmpeg with the given arguments and return the file it wrote."""
    folder = tmp_path_factory.mktemp("media")

    def make(name: str, *arguments: str) -> Path:
        # Tests may give the same name to different files.
        path = folder / sha256(repr(arguments).encode()).hexdigest()[:16] / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            run_ffmpeg(path, *arguments)
        return path

    return make


@pytest.fixture(scope="session")
def make_video(make_media: MakeMedia) -> MakeMedia:
    """A test picture, with a tone unless `audio_s` is zero."""

    def make(
        name: str,
        *options: str,
        size: str = "640x360",
        rate: str = "30",
        duration_s: float = 2,
        audio_s: float | None = None,
    ) -> Path:
        audio_s = duration_s if audio_s is None else audio_s
        picture = ("-f", "lavfi", "-i", f"testsrc2=s={size}:r={rate}:d={duration_s}")
        sound = ("-f", "lavfi", "-i", f"sine=d={audio_s}:r=44100") if audio_s else ()
        codecs = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", *ENCODED)
        return make_media(name, *picture, *sound, *codecs, *options)

    return make


@pytest.fixture(scope="session")
def plain(make_video: MakeMedia) -> Path:
    """Ten seconds of 29.97 fps with sound: three segments."""
    return make_video("plain.mp4", rate="30000/1001", duration_s=10)


@pytest.fixture(scope="session")
def publish(tmp_path_factory: pytest.TempPathFactory) -> Publish:
    """Publish a source completely, once a session."""
    done: dict[Path, Published] = {}

    async def run(path: Path) -> Published:
        if path not in done:
            folder = tmp_path_factory.mktemp("published")
            sink = FolderSink(folder / "sink")
            result = await transcode(path, sink=sink, work_dir=folder / "work")
            done[path] = Published(path, result, sink)
        return done[path]

    return run


@pytest.fixture(scope="session")
def studio(make_media: MakeMedia, publish: Publish) -> Studio:
    return Studio(make_media, publish)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Make a file of these bytes; each time the same one."""
    source = tmp_path / "video.mp4"

    def run(content: bytes) -> Path:
        source.write_bytes(content)
        return source

    return run


@pytest.fixture
def sink(tmp_path: Path) -> FolderSink:
    return FolderSink(tmp_path / "sink")


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    path = tmp_path / "work 100%"
    path.mkdir()
    return path


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve one path over http, by a file (with range requests) or a handler."""
    async with AsyncExitStack() as servers:

        async def start(source: Path | Handler) -> str:
            async def handle(request: web.Request) -> web.StreamResponse:
                if isinstance(source, Path):
                    return web.FileResponse(source)
                return await source(request)

            route = web.get("/source.mp4", handle)
            return f"{await servers.enter_async_context(serving(route))}/source.mp4"

        yield start


@pytest.fixture
async def hanging(serve: Serve) -> Hanging:
    requested = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        requested.set()
        await asyncio.sleep(60)
        return web.Response()

    return Hanging(await serve(hang), requested)
