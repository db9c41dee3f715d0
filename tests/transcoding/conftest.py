"""Small media made on the spot, a sink that keeps files in a folder, and a look at /proc."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from foreign_references import Neighbourhood
from media_recipes import MakeMedia
from published import FolderSink, Publish, Published, Reports, transcode

from portal.transcoding.encoding.ffmpeg import ffmpeg_path


@pytest.fixture(scope="session")
def make_media(tmp_path_factory: pytest.TempPathFactory) -> MakeMedia:
    """Run ffmpeg with the given arguments and return the file it wrote."""
    folder = tmp_path_factory.mktemp("media")

    def make(name: str, *arguments: str) -> Path:
        path = folder / name
        if not path.exists():
            command = [ffmpeg_path(), "-nostdin", "-loglevel", "error", "-y", *arguments, str(path)]
            subprocess.run(command, check=True, timeout=60, stdin=subprocess.DEVNULL)
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
        codecs = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
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
            result = await transcode(str(path), sink=sink, work_dir=folder / "work")
            done[path] = Published(path, result, sink)
        return done[path]

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
def reports() -> Reports:
    return Reports()


@pytest.fixture
def processes_naming() -> Callable[[str], list[int]]:
    """The ids of all processes with this text among their arguments."""

    def find(text: str) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:  # it ended while we looked
                continue
            if text.encode() in arguments:
                found.append(int(entry.name))
        return found

    return find


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Wait until a condition holds, and fail when it doesn't in time."""

    async def wait(condition: Callable[[], object], *, timeout_s: float = 15) -> None:
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - /proc and folders announce nothing
                await asyncio.sleep(0.02)

    return wait


@pytest.fixture
async def neighbourhood(tmp_path: Path) -> AsyncIterator[Neighbourhood]:
    around = Neighbourhood(tmp_path)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", around.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    around.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield around
    await runner.cleanup()


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., object]]:
    """Serve one path over http, by a file (with range requests) or a handler."""
    runners: list[web.AppRunner] = []

    async def start(source: Path | Callable[[web.Request], object]) -> str:
        async def handle(request: web.Request) -> web.StreamResponse:
            if isinstance(source, Path):
                return web.FileResponse(source)
            return await source(request)

        app = web.Application()
        app.router.add_get("/source.mp4", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/source.mp4"

    yield start
    for runner in runners:
        await runner.cleanup()
