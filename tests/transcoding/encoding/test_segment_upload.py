"""A pass whose sink fails, whose source goes away, or whose sink falls behind."""

import asyncio
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from aiohttp import web
from media_recipes import MakeMedia
from published import FolderSink, everything, transcode
from serving import Serve, begin_range, children_naming, cut, eventually

from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.master import MASTER_NAME
from portal.transcoding.planning.ladder import Plan
from portal.transcoding.probing import probe as probing


@pytest.fixture
def long_video(make_video: MakeMedia) -> Path:
    """A video that takes long enough to be interrupted."""
    return make_video("long.mp4", duration_s=40, size="544x306", rate="10")


class FailingSink:
    """Sink that stores two files and fails at the third."""

    count = 0

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        self.count += 1
        if self.count > 2:
            raise ConnectionError("storage went away")


async def test_a_failing_sink_stops_ffmpeg_and_says_why(long_video: Path, work_dir: Path) -> None:
    with pytest.raises(ConnectionError, match="storage went away"):
        await transcode(long_video, sink=FailingSink(), work_dir=work_dir)
    assert not children_naming(str(long_video))
    assert not list(work_dir.iterdir())


@pytest.mark.slow
async def test_a_storage_that_dies_halfway_is_a_failure_and_not_a_short_video(
    serve: Serve,
    long_video: Path,
    sink: FolderSink,
    work_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(probing._PERSISTENT, "reconnect_delay_max", "1")
    content = long_video.read_bytes()
    half = len(content) // 2
    examined = asyncio.Event()

    def everything_once_examined(plan: Plan) -> list[str]:
        examined.set()
        return everything(plan)

    async def serve_until_segments_arrive(request: web.Request) -> web.StreamResponse:
        if sink.names:
            return web.Response(status=503)
        start, response = await begin_range(request, len(content))
        with suppress(ConnectionError):
            if not examined.is_set() or start > half:  # the index is at the end
                await response.write(content[start:])
            else:
                await response.write(content[start:half])
                # The other half is never sent, however slow the encoder is.
                await eventually(lambda: sink.names)
                cut(request)
        return response

    address = await serve(serve_until_segments_arrive)
    with pytest.raises(TranscodeFailed, match=FailCode.SOURCE_UNREACHABLE):
        await transcode(address, sink=sink, work_dir=work_dir, choose=everything_once_examined)
    assert MASTER_NAME not in sink.names


class SlowSink(FolderSink):
    """Sink that stores nothing until it is opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.opened = asyncio.Event()

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        await self.opened.wait()
        await super().put(name, data, content_type)


@pytest.mark.slow
async def test_a_slow_sink_holds_ffmpeg_up_instead_of_filling_the_disk(
    long_video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.transcoding.encoding.sink._PAUSE_BACKLOG_FILES", 6)
    monkeypatch.setattr("portal.transcoding.encoding.sink._RESUME_BACKLOG_FILES", 3)
    sink = SlowSink(tmp_path / "sink")
    written_s = [0.0]

    async def remember(seconds: float) -> None:
        written_s.append(seconds)

    def is_held_up() -> bool:
        with suppress(psutil.NoSuchProcess):
            children = children_naming(str(long_video))
            return any(child.status() == psutil.STATUS_STOPPED for child in children)
        return False

    work_dir = tmp_path / "work"
    task = asyncio.create_task(
        transcode(long_video, sink=sink, work_dir=work_dir, on_progress=remember)
    )
    await eventually(is_held_up)
    assert not task.done()
    assert written_s[-1] < 40
    sink.opened.set()
    result = await task
    assert result.output.duration_s == pytest.approx(40, abs=0.2)
    # Ten segments, an init segment and two playlists.
    assert len([name for name in sink.names if name.startswith("240p/")]) == 10 + 3
