"""Files made to do harm: each is dealt with in seconds, within limits, touching nothing else."""

import ctypes
import os
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hostile_files import HOSTILE, SLOW
from mp4_writer import (
    FILE_TYPE,
    HERE,
    box,
    png_movie,
    sample_sizes,
    track,
)
from published import Write, cpu_of_children_s, rejection
from serving import serving

from portal.transcoding.encoding.ffmpeg import run
from portal.transcoding.errors import RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import probe

IN_NONBLOCK, IN_ACCESS, IN_OPEN = os.O_NONBLOCK, 0x1, 0x20
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


# Up to the limit, which takes ten seconds and more.
FILLS_MEMORY = frozenset({"fragments that fill the memory", "50 million samples"})
# Seconds of CPU, which other work on the machine does not lengthen. Most take a tenth of one.
SOON_S, LATE_S = 10, 35


class Neighbourhood:
    """What a file may name and must not get at: a file and a server."""

    def __init__(self, folder: Path) -> None:
        self.canary, self.source = folder / "canary.txt", folder / "source.mp4"
        self.canary.write_text("secret")
        self.address = ""
        self.asked: list[str] = []

    @property
    def names(self) -> dict[str, str]:
        """The addresses of both."""
        return {"file": f"file://{self.canary}", "http": f"{self.address}/other.ts"}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/source.mp4":
            return web.FileResponse(self.source)
        self.asked.append(request.path)
        return web.Response(body=b"got in")


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


def alias(path: bytes) -> bytes:
    """A QuickTime data reference, as its reference movies have them, with the path in full."""
    fixed = struct.pack(">I4sHHHB27s", 0, bytes(4), 200, 2, 0, 3, b"Disk".ljust(27, b"\0"))
    names = struct.pack(">IHIB63s", 0, 0, 0, len(path[:63]), path[:63].ljust(63, b"\0"))
    paths = struct.pack(">HH", 18, len(path)) + path + bytes(len(path) % 2)
    tail = bytes(4 + 4 + 4 + 4) + struct.pack(">HH", 0, 0) + bytes(4 + 2 + 10)
    return box(b"alis", bytes(4), fixed[4:], names, tail, paths, struct.pack(">HH", 0xFFFF, 0))


@pytest.fixture
async def neighbourhood(tmp_path: Path) -> AsyncIterator[Neighbourhood]:
    around = Neighbourhood(tmp_path)
    async with serving(web.route("*", "/{path:.*}", around.answer)) as around.address:
        yield around


async def refused(source: Path | str, *, within_s: float = SOON_S) -> RejectCode:
    began_s = cpu_of_children_s()
    code = await rejection(source)
    assert cpu_of_children_s() - began_s < within_s
    return code


async def through_ffmpeg(source: Path) -> str:
    """Decode all of it as the engine does, and tell how that ended."""
    arguments = ("-nostdin", "-progress", "pipe:1", "-protocol_whitelist", "file", "-f", "mov")
    try:
        await run(
            (*arguments, "-i", f"file:{source}", "-map", "0:v:0", "-f", "null", "-"), timeout_s=8
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
@pytest.mark.slow
async def test_a_text_that_names_other_files_reaches_none(
    neighbourhood: Neighbourhood, text: str, disguise: bytes, over_http: bool
) -> None:
    neighbourhood.source.write_bytes(disguise + text.format(**neighbourhood.names).encode())
    address = f"{neighbourhood.address}/source.mp4" if over_http else neighbourhood.source
    with unopened(neighbourhood.canary):
        assert await refused(address) == RejectCode.NOT_A_VIDEO
    assert neighbourhood.asked == []


@pytest.mark.parametrize("kind", ["url", "alias"])
@pytest.mark.parametrize("scheme", ["file", "http"])
async def test_media_that_lie_elsewhere_are_not_fetched(
    neighbourhood: Neighbourhood, write: Write, kind: str, scheme: str
) -> None:
    place = neighbourhood.names[scheme].encode()
    reference = box(b"url ", bytes(4), place, b"\0") if kind == "url" else alias(place)
    source = write(png_movie(64, 64, data_reference=reference))
    with unopened(neighbourhood.canary):
        assert await refused(source) == RejectCode.ZERO_DURATION
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
    write: Write, handler: bytes
) -> None:
    source = write(png_movie(64, 64, others=[beside(handler, HERE)]))
    assert (await probe(str(source))).video.frame_count == 1
    source = write(png_movie(64, 64, others=[beside(handler, ELSEWHERE)]))
    assert await refused(source) == RejectCode.EXTERNAL_MEDIA


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
        with pytest.raises(SourceRejected, match=code):
            await probed(hidden[:at] + FREE * 50_000 + hidden[at:])


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
    assert await refused(f"{neighbourhood.address}/source.mp4", within_s=LATE_S) == code


@pytest.mark.parametrize(
    "case",
    [pytest.param(it, marks=pytest.mark.slow if it in FILLS_MEMORY else ()) for it in HOSTILE],
)
async def test_a_hostile_file_is_refused_soon(write: Write, case: str) -> None:
    make, code = HOSTILE[case]
    assert await refused(write(make()), within_s=LATE_S if case in SLOW else SOON_S) == code
