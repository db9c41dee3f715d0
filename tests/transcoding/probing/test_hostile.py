"""Files made to do harm: each is dealt with in seconds, within limits, touching nothing else."""

import struct
from pathlib import Path

import pytest
from foreign_references import IMPOSTORS, Neighbourhood, alias, unopened
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

from portal.transcoding.encoding.ffmpeg import run
from portal.transcoding.errors import RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.facts import Probe
from portal.transcoding.probing.probe import probe

# Up to the limit, which takes ten seconds and more.
FILLS_MEMORY = frozenset({"fragments that fill the memory", "50 million samples"})
# Seconds of CPU, which other work on the machine does not lengthen. Most take a tenth of one.
SOON_S, LATE_S = 10, 35


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
