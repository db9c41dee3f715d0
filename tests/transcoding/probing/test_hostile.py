"""Hostile files are examined in seconds, within limits, and read no other files."""

import ctypes
import os
import resource
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web
from mp4_writer import (
    FILE_TYPE,
    FRAME_MS,
    HERE,
    MIB,
    box,
    index,
    movie,
    picture_entry,
    png,
    sample_sizes,
    table,
    track,
)
from published import Write, probe, rejection
from serving import serving

from portal.transcoding.encoding.ffmpeg import run
from portal.transcoding.errors import RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing import probe as probing
from portal.transcoding.probing.facts import Probe

IN_NONBLOCK = os.O_NONBLOCK
IN_ACCESS = 0x1
IN_OPEN = 0x20
# Limits in seconds of processor time, which doesn't depend on other work of the machine. Most files
# take a tenth of a second.
SOON_S = 10
LATE_S = 35
FREE = struct.pack(">I4s", 8, b"free")
PNG_ENTRY = picture_entry(b"png ", 64, 64)
EMPTY_TRACK = track(PNG_ENTRY, sample_sizes([]), frames=0)


def png_movie(
    width: int,
    height: int,
    *,
    frames: int = 1,
    data_reference: bytes = HERE,
    edits: bytes = b"",
    other_tracks: Sequence[bytes] = (),
) -> bytes:
    """Make a film whose frames are all the same picture, with `other_tracks`."""
    picture = png(width, height)
    film = track(
        picture_entry(b"png ", width, height),
        sample_sizes([len(picture)] * frames),
        frames=frames,
        size=(width, height),
        data_reference=data_reference,
        edits=edits,
    )
    return movie(picture * frames, film, *other_tracks, duration_ms=frames * FRAME_MS)


class Neighbourhood:
    """File and server that a hostile file names but must not read."""

    def __init__(self, folder: Path) -> None:
        self.canary = folder / "canary.txt"
        self.source = folder / "source.mp4"
        self.canary.write_text("secret")
        self.address = ""
        self.asked: list[str] = []

    @property
    def names(self) -> dict[str, str]:
        return {"file": f"file://{self.canary}", "http": f"{self.address}/other.ts"}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/source.mp4":
            return web.FileResponse(self.source)
        self.asked.append(request.path)
        return web.Response(body=b"got in")

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Fail if the file is opened (inotify(7)) or the server gets a request in the context."""
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(IN_NONBLOCK)
        try:
            events = IN_ACCESS | IN_OPEN
            assert libc.inotify_add_watch(watch, os.fsencode(self.canary), events) >= 0
            yield
            with pytest.raises(BlockingIOError):
                os.read(watch, 4096)
        finally:
            os.close(watch)
        assert self.asked == []


@pytest.fixture
async def neighbourhood(tmp_path: Path) -> AsyncIterator[Neighbourhood]:
    around = Neighbourhood(tmp_path)
    async with serving(web.route("*", "/{path:.*}", around.answer)) as around.address:
        yield around


def cpu_of_children_s() -> float:
    """Return the processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def refused(source: Path | str, *, within_s: float = SOON_S) -> RejectCode:
    began_s = cpu_of_children_s()
    code = await rejection(source)
    assert cpu_of_children_s() - began_s < within_s
    return code


IMPOSTORS = {
    "playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{file}\n#EXTINF:4,\n{http}\n",
    "concat script": "ffconcat version 1.0\nfile '{file}'\nfile '{http}'\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period>'
    '<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>{http}'
    "</BaseURL></Representation></AdaptationSet></Period></MPD>",
}


@pytest.mark.parametrize("text", IMPOSTORS.values(), ids=IMPOSTORS)
async def test_a_text_that_names_other_files_reaches_none(
    neighbourhood: Neighbourhood, text: str
) -> None:
    for disguise in (b"", FILE_TYPE):
        neighbourhood.source.write_bytes(disguise + text.format(**neighbourhood.names).encode())
        with neighbourhood.untouched():
            assert await refused(neighbourhood.source) == RejectCode.NOT_A_VIDEO


def alias(path: bytes) -> bytes:
    """A QuickTime data reference, as its reference movies have them, with the path in full."""
    fixed = struct.pack(">I4sHHHB27s", 0, bytes(4), 200, 2, 0, 3, b"Disk".ljust(27, b"\0"))
    names = struct.pack(">IHIB63s", 0, 0, 0, len(path[:63]), path[:63].ljust(63, b"\0"))
    paths = struct.pack(">HH", 18, len(path)) + path + bytes(len(path) % 2)
    tail = bytes(4 + 4 + 4 + 4) + struct.pack(">HH", 0, 0) + bytes(4 + 2 + 10)
    return box(b"alis", bytes(4), fixed[4:], names, tail, paths, struct.pack(">HH", 0xFFFF, 0))


@pytest.mark.parametrize("kind", ["url", "alias"])
@pytest.mark.parametrize("scheme", ["file", "http"])
async def test_media_in_other_files_are_read_neither_by_the_probe_nor_by_ffmpeg(
    neighbourhood: Neighbourhood, write: Write, kind: str, scheme: str
) -> None:
    place = neighbourhood.names[scheme].encode()
    reference = box(b"url ", bytes(4), place, b"\0") if kind == "url" else alias(place)
    source = write(png_movie(64, 64, data_reference=reference))
    reading = ("-nostdin", "-progress", "pipe:1", "-protocol_whitelist", "file", "-f", "mov")
    with neighbourhood.untouched():
        assert await refused(source) == RejectCode.ZERO_DURATION
        with suppress(TranscodeFailed):  # a run without pictures may succeed or fail
            await run((*reading, "-i", f"file:{source}", "-f", "null", "-"), timeout_s=8)


ELSEWHERE = box(b"url ", bytes(4), b"file:///etc/passwd", b"\0")


def beside(handler: bytes, reference: bytes) -> bytes:
    """A track of no samples that is to be shown or heard with the picture."""
    entry = box(b"sowt" if handler == b"soun" else b"text", bytes(60))
    return track(
        entry, sample_sizes([]), frames=0, handler=handler, number=2, data_reference=reference
    )


@pytest.mark.parametrize("handler", [b"soun", b"text"])
async def test_a_track_beside_the_picture_may_not_lie_elsewhere(
    write: Write, handler: bytes
) -> None:
    source = write(png_movie(64, 64, other_tracks=[beside(handler, HERE)]))
    assert (await probe(source)).video.frame_count == 1
    source = write(png_movie(64, 64, other_tracks=[beside(handler, ELSEWHERE)]))
    assert await refused(source) == RejectCode.EXTERNAL_MEDIA


def before_index(film: bytes, padding: bytes) -> bytes:
    at = film.index(b"moov") - 4
    return film[:at] + padding + film[at:]


async def test_boxes_before_the_index_hide_nothing(neighbourhood: Neighbourhood) -> None:
    async def probed(film: bytes) -> Probe:
        neighbourhood.source.write_bytes(before_index(film, FREE * 50_000))
        return await probe(f"{neighbourhood.address}/source.mp4")

    assert (await probed(png_movie(64, 64))).video.frame_count == 1
    for hidden, code in (
        (png_movie(64, 64, data_reference=ELSEWHERE), RejectCode.ZERO_DURATION),
        (png_movie(64, 64, other_tracks=[beside(b"soun", ELSEWHERE)]), RejectCode.EXTERNAL_MEDIA),
        (png_movie(64, 64).replace(b"png ", b"encv"), RejectCode.ENCRYPTED),
    ):
        with pytest.raises(SourceRejected, match=code):
            await probed(hidden)


@pytest.mark.parametrize("where", ["in the index", "far apart"])
async def test_an_index_beyond_the_limits_is_refused(
    neighbourhood: Neighbourhood, where: str
) -> None:
    film = png_movie(64, 64)
    code = RejectCode.NOT_A_VIDEO
    if where == "in the index":
        at = film.index(b"moov") - 4
        padding = FREE * 1_000_000
        code = RejectCode.DAMAGED
        size = int.from_bytes(film[at : at + 4]) + len(padding)
        film = film[:at] + struct.pack(">I4s", size, b"moov") + padding + film[at + 8 :]
    else:
        film = before_index(film, box(b"free", bytes(8192)) * 1_500)
    neighbourhood.source.write_bytes(film)
    assert await refused(f"{neighbourhood.address}/source.mp4", within_s=LATE_S) == code


def nested(kind: bytes, depth: int) -> bytes:
    return b"".join(struct.pack(">I4s", 8 * (depth - level), kind) for level in range(depth))


def claiming(frames: int) -> bytes:
    """Make a film of a few bytes that claims to have this number of samples."""
    film = track(PNG_ENTRY, sample_sizes([], count=frames, same=1), frames=frames)
    return movie(bytes(100), film, duration_ms=2**32 - 1)


def sequence_parameters(width: int, height: int) -> bytes:
    """An H.264 Baseline SPS (ITU-T H.264, 7.3.2.1.1) for a picture of any size."""

    def golomb(value: int) -> str:
        bits = f"{value + 1:b}"
        return "0" * (len(bits) - 1) + bits

    values = [0, 0, 2, 1]  # id, log2 of frame numbers, order type, references
    bits = "".join(golomb(value) for value in values) + "0"
    bits += golomb(width // 16 - 1) + golomb(height // 16 - 1) + "1100" + "1"
    bits += "0" * (-len(bits) % 8)
    return b"\x67\x42\x00\x33" + int(bits, 2).to_bytes(len(bits) // 8, "big")


def huge_picture_in_a_small_entry() -> bytes:
    sps = sequence_parameters(65536, 65536)
    pps = b"\x68\xce\x3c\x80"
    config = b"\x01\x42\x00\x33\xff\xe1" + struct.pack(">H", len(sps)) + sps
    config += b"\x01" + struct.pack(">H", len(pps)) + pps
    slice_ = b"\x65\x88\x84\x00\x10\xff\xfe\xf6\xf0\xfe\x05\x36\x56\x04\x50\x96\x7b\x3f"
    media = struct.pack(">I", len(slice_)) + slice_
    entry = picture_entry(b"avc1", 64, 64, box(b"avcC", config))
    return movie(media, track(entry, sample_sizes([len(media)]), frames=1))


def repeated(frames: int, times: int) -> bytes:
    """Make a film that repeats its frames by an edit list."""
    edits = table(b"elst", "IIHH", *[(frames * FRAME_MS, 0, 1, 0)] * times)
    return png_movie(64, 64, frames=frames, edits=box(b"edts", edits))


def one_fragment(samples: int) -> bytes:
    extends = box(b"mvex", box(b"trex", struct.pack(">IIIIII", 0, 1, 1, FRAME_MS, 1, 0)))
    header = box(b"tfhd", struct.pack(">II", 0x020000, 1))
    piece = box(b"traf", header, box(b"trun", struct.pack(">II", 0, samples)))
    fragment = box(b"moof", box(b"mfhd", bytes(8)), piece)
    return FILE_TYPE + index(EMPTY_TRACK, extends) + fragment + box(b"mdat", bytes(100))


HOSTILE: dict[RejectCode, dict[str, Callable[[], bytes]]] = {
    RejectCode.TOO_LARGE: {
        "huge sample entry": lambda: movie(
            bytes(64), track(picture_entry(b"avc1", 65535, 65535), sample_sizes([64]), frames=1)
        ),
        "huge picture in a small entry": huge_picture_in_a_small_entry,
        "long and low": lambda: png_movie(40_000, 8),
        "a picture of 1.2 GB in 1.2 MB": lambda: png_movie(20_000, 20_000),
    },
    RejectCode.DAMAGED: {
        "100 000 tracks": lambda: movie(b"", *[EMPTY_TRACK] * 100_000),
        "boxes in each other": lambda: FILE_TYPE + box(b"moov", nested(b"udta", 200_000)),
        "a fragment of 2^31 samples": lambda: one_fragment(2**31 - 1),
        "a thousand frames five thousand times": lambda: repeated(1000, 5000),
    },
    RejectCode.ZERO_DURATION: {"2^31 samples of one byte": lambda: claiming(2**31 - 1)},
    RejectCode.TRUNCATED: {
        "a box larger than any disk": lambda: (
            FILE_TYPE + struct.pack(">I4sQ", 1, b"moov", 2**63 - 1) + bytes(1000)
        ),
    },
    RejectCode.NOT_A_VIDEO: {
        "a million free boxes": lambda: FILE_TYPE + FREE * 1_000_000,
    },
}


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(make, code, id=name)
        for code, files in HOSTILE.items()
        for name, make in files.items()
    ],
)
async def test_a_hostile_file_is_refused_within_seconds(
    write: Write, make: Callable[[], bytes], code: RejectCode
) -> None:
    assert await refused(write(make())) == code


async def test_a_file_that_fills_the_memory_is_damaged(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is refused, and the probe is not retried."""
    monkeypatch.setattr(probing, "_MEMORY_BYTES", 512 * MIB)
    assert await refused(write(one_fragment(20_000_000))) == RejectCode.DAMAGED
