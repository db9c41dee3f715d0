"""Files made to do harm: each is dealt with in seconds, within limits, touching nothing else."""

import ctypes
import os
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hostile_kit import HOSTILE, PLAYABLE, SLOW
from mp4_kit import (
    FILE_TYPE,
    HERE,
    MEDIA_AT,
    box,
    movie,
    picture_entry,
    png,
    png_movie,
    sample_sizes,
    track,
)

from portal.transcoding.encoding.ffmpeg import FfmpegProgress, run
from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import probe

IN_NONBLOCK, IN_ACCESS, IN_OPEN = os.O_NONBLOCK, 0x1, 0x20
# Nearly all take a tenth of a second; what is slow fills memory up to the limit.
SOON_S, LATE_S = 10, 35


class Neighbourhood:
    """What a file may name and must not get at: a file and a server."""

    def __init__(self, folder: Path) -> None:
        self.canary, self.source = folder / "canary.txt", folder / "source.mp4"
        self.canary.write_text("secret")
        self.address = ""
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/source.mp4":
            return web.FileResponse(self.source)
        self.asked.append(request.path)
        return web.Response(body=b"got in")


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


@contextmanager
def unopened(path: Path) -> Iterator[None]:
    """Fail when anyone opens the file meanwhile (inotify(7))."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(IN_NONBLOCK)
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(path), IN_ACCESS | IN_OPEN) >= 0
        yield
        with pytest.raises(BlockingIOError):
            os.read(watch, 4096)
    finally:
        os.close(watch)


def test_the_watch_on_a_file_notices(tmp_path: Path) -> None:
    path = tmp_path / "canary.txt"
    path.write_text("secret")
    with pytest.raises(pytest.fail.Exception), unopened(path):
        path.read_bytes()


async def rejection(source: Path | str, *, within_s: float = SOON_S) -> RejectCode:
    began = time.monotonic()
    with pytest.raises(SourceRejected) as caught:
        await probe(str(source))
    assert time.monotonic() - began < within_s
    return caught.value.code


IMPOSTORS = {
    "playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{file}\n#EXTINF:4,\n{http}\n",
    "master": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{http}\n"
    "#EXT-X-STREAM-INF:BANDWIDTH=2\n{file}",
    "concat script": "ffconcat version 1.0\nfile '{file}'\nfile '{http}'\n",
    "old concat script": "file '{file}'\nfile '{http}'\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
    '<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>{http}'
    "</BaseURL></Representation></AdaptationSet></Period></MPD>",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink">'
    '<image x:href="{file}"/><image x:href="{http}"/></svg>',
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    "smil": '<smil><body><video src="{http}"/><video src="{file}"/></body></smil>',
    "sheet": "subtitles:{file}\nconcat:{file}|{http}\n",
}


async def ignore(progress: FfmpegProgress) -> None:
    pass


async def through_ffmpeg(source: Path) -> str:
    """Decode all of it as the engine does, and tell how that ended."""
    arguments = ("-nostdin", "-progress", "pipe:1", "-protocol_whitelist", "file", "-f", "mov")
    try:
        await run(
            (*arguments, "-i", f"file:{source}", "-map", "0:v:0", "-f", "null", "-"),
            on_progress=ignore,
            timeout_s=8,
        )
    except TranscodeFailed as failure:
        return str(failure.code)
    return "done"


LOCAL_AND_SERVED = [
    pytest.param(False, id="local"),
    pytest.param(True, id="served", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("over_http", LOCAL_AND_SERVED)
@pytest.mark.parametrize("disguise", [b"", FILE_TYPE], ids=["bare", "behind a file type"])
@pytest.mark.parametrize("text", IMPOSTORS.values(), ids=IMPOSTORS)
async def test_a_text_that_names_other_files_reaches_none(
    neighbourhood: Neighbourhood, text: str, disguise: bytes, over_http: bool
) -> None:
    names = {"file": f"file://{neighbourhood.canary}", "http": f"{neighbourhood.address}/other.ts"}
    neighbourhood.source.write_bytes(disguise + text.format(**names).encode())
    address = f"{neighbourhood.address}/source.mp4" if over_http else neighbourhood.source
    with unopened(neighbourhood.canary):
        assert await rejection(address) == RejectCode.NOT_A_VIDEO
    assert neighbourhood.asked == []


def alias(path: bytes) -> bytes:
    """A QuickTime data reference, as its reference movies have them, with the path in full."""
    fixed = struct.pack(">I4sHHHB27s", 0, bytes(4), 200, 2, 0, 3, b"Disk".ljust(27, b"\0"))
    names = struct.pack(">IHIB63s", 0, 0, 0, len(path[:63]), path[:63].ljust(63, b"\0"))
    paths = struct.pack(">HH", 18, len(path)) + path + bytes(len(path) % 2)
    tail = bytes(4 + 4 + 4 + 4) + struct.pack(">HH", 0, 0) + bytes(4 + 2 + 10)
    return box(b"alis", bytes(4), fixed[4:], names, tail, paths, struct.pack(">HH", 0xFFFF, 0))


@pytest.mark.parametrize("kind", ["url", "alias"])
@pytest.mark.parametrize("scheme", ["file", "http"])
async def test_media_that_lie_elsewhere_are_not_fetched(
    neighbourhood: Neighbourhood, tmp_path: Path, kind: str, scheme: str
) -> None:
    place = {
        "file": f"file://{neighbourhood.canary}",
        "http": f"{neighbourhood.address}/other.mp4",
    }[scheme].encode()
    reference = box(b"url ", bytes(4), place, b"\0") if kind == "url" else alias(place)
    source = tmp_path / "video.mp4"
    source.write_bytes(png_movie(64, 64, data_reference=reference))
    with unopened(neighbourhood.canary):
        assert await rejection(source) == RejectCode.ZERO_DURATION
        await through_ffmpeg(source)
    assert neighbourhood.asked == []


ELSEWHERE = box(b"url ", bytes(4), b"file:///etc/passwd", b"\0")
FREE = struct.pack(">I4s", 8, b"free")
HANDLERS = {"sound": b"soun", "text": b"text", "subtitles": b"sbtl", "time code": b"tmcd"}


def beside(handler: bytes, reference: bytes) -> bytes:
    """A track of no samples that is to be shown or heard with the picture."""
    entry = box(b"sowt" if handler == b"soun" else b"text", bytes(60))
    return track(
        entry, sample_sizes([]), frames=0, handler=handler, number=2, data_reference=reference
    )


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
async def test_a_track_beside_the_picture_may_not_lie_elsewhere(
    tmp_path: Path, handler: bytes
) -> None:
    source = tmp_path / "video.mp4"
    source.write_bytes(png_movie(64, 64, others=[beside(handler, HERE)]))
    assert (await probe(str(source))).video.frame_count == 1
    source.write_bytes(png_movie(64, 64, others=[beside(handler, ELSEWHERE)]))
    assert await rejection(source) == RejectCode.EXTERNAL_MEDIA


async def test_a_reference_counts_wherever_the_handler_stands(tmp_path: Path) -> None:
    picture = png(64, 64)
    film = track(
        picture_entry(b"png ", 64, 64),
        sample_sizes([len(picture)]),
        frames=1,
        media_at=MEDIA_AT,
        data_reference=ELSEWHERE,
        handler_last=True,
    )
    source = tmp_path / "video.mp4"
    source.write_bytes(movie(picture, film))
    assert await rejection(source) == RejectCode.ZERO_DURATION


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "served"])
async def test_boxes_before_the_index_hide_nothing(
    neighbourhood: Neighbourhood, over_http: bool
) -> None:
    source = neighbourhood.source
    address = f"{neighbourhood.address}/source.mp4" if over_http else str(source)

    async def probed(data: bytes) -> Probe:
        source.write_bytes(data)
        return await probe(address)

    assert (await probed(png_movie(64, 64, before_index=FREE * 50_000))).video.frame_count == 1
    for hidden, code in (
        (png_movie(64, 64, data_reference=ELSEWHERE), RejectCode.ZERO_DURATION),
        (png_movie(64, 64, others=[beside(b"soun", ELSEWHERE)]), RejectCode.EXTERNAL_MEDIA),
        (png_movie(64, 64).replace(b"png ", b"encv"), RejectCode.ENCRYPTED),
    ):
        at = hidden.index(b"moov") - 4
        with pytest.raises(SourceRejected) as caught:
            await probed(hidden[:at] + FREE * 50_000 + hidden[at:])
        assert caught.value.code == code


@pytest.mark.parametrize("where", ["before the index", "in the index", "far apart"])
async def test_an_index_that_is_not_reached_is_not_taken(
    neighbourhood: Neighbourhood, where: str
) -> None:
    film = png_movie(64, 64)
    at = film.index(b"moov") - 4
    padding = {"far apart": box(b"free", bytes(8192)) * 1_500}.get(where, FREE * 1_000_000)
    if where == "in the index":
        size = int.from_bytes(film[at : at + 4]) + len(padding)
        film = film[:at] + struct.pack(">I4s", size, b"moov") + padding + film[at + 8 :]
    else:
        film = film[:at] + padding + film[at:]
    neighbourhood.source.write_bytes(film)
    code = RejectCode.DAMAGED if where == "in the index" else RejectCode.NOT_A_VIDEO
    assert await rejection(f"{neighbourhood.address}/source.mp4", within_s=LATE_S) == code


async def test_a_reference_without_flag_and_name_is_no_reference(tmp_path: Path) -> None:
    source = tmp_path / "video.mp4"
    source.write_bytes(png_movie(64, 64, frames=5, data_reference=box(b"url ", bytes(4))))
    assert (await probe(str(source))).video.frame_count == 5


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_file_is_refused_soon(tmp_path: Path, case: str) -> None:
    make, code = HOSTILE[case]
    source = tmp_path / "video.mp4"
    source.write_bytes(make())
    assert await rejection(source, within_s=LATE_S if case in SLOW else SOON_S) == code


@pytest.mark.parametrize("case", PLAYABLE)
async def test_a_hostile_film_is_decoded_within_limits(tmp_path: Path, case: str) -> None:
    source = tmp_path / "video.mp4"
    source.write_bytes(PLAYABLE[case]())
    began = time.monotonic()
    await probe(str(source))
    assert time.monotonic() - began < SOON_S
    ending = await through_ffmpeg(source)
    assert ending in {"done", FailCode.TIMED_OUT, FailCode.OUT_OF_MEMORY, FailCode.FFMPEG_FAILED}
    assert time.monotonic() - began < LATE_S
