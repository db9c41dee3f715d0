"""Tracks last as long as their samples and edit lists say, whatever headers claim."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from media_recipes import MakeMedia, lavfi
from published import Write, probe, rejection

from portal.transcoding.errors import RejectCode
from portal.transcoding.probing.probe import SourceLimits

FILM_S = 3
UNKNOWN = 2**32 - 1
# Offset of the duration from the end of a box's type.
DURATION_AT = {b"mvhd": 16, b"tkhd": 20, b"mdhd": 16}
HOUR_S = 3600


@pytest.fixture(scope="module")
def film(make_media: MakeMedia) -> bytearray:
    """Three seconds of picture at 10 fps, with sound; both have an edit list."""
    inputs = lavfi(f"testsrc2=s=64x48:r=10:d={FILM_S}", f"sine=d={FILM_S}:r=48000")
    codec = ("-c:v", "libx264", "-preset", "ultrafast", "-video_track_timescale", "1000")
    return bytearray(make_media("lengths.mp4", *inputs, *codec).read_bytes())


def places(content: bytes, kind: bytes) -> list[int]:
    """Return where the content of boxes of a kind begins."""
    parts = content.split(kind)
    return [sum(map(len, parts[:n])) + n * len(kind) for n in range(1, len(parts))]


def claiming(film: bytearray, kinds: Sequence[bytes], ticks: int) -> bytearray:
    """The film with another duration in these headers."""
    content = bytearray(film)
    for kind in kinds:
        for at in places(content, kind):
            struct.pack_into(">I", content, at + DURATION_AT[kind], ticks)
    return content


def without_edits(film: bytearray) -> bytearray:
    return bytearray(film.replace(b"edts", b"free"))


def with_last_frame(film: bytearray, lasts_s: int) -> bytearray:
    """The film, whose last frame lasts so long by the table of decoding times."""
    content = bytearray(film)
    at = places(content, b"stts")[0] - 8
    [size] = struct.unpack_from(">I", content, at)
    rows = struct.pack(">IIIIII", 0, 2, 10 * FILM_S - 1, 100, 1, lasts_s * 1000)
    grown = struct.pack(">I4s", 8 + len(rows), b"stts") + rows
    return _replaced(content, at, size, grown)


def _replaced(content: bytearray, at: int, size: int, grown: bytes) -> bytearray:
    """Replace a box of the first track's sample table."""
    for kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        place = places(content, kind)[0] - len(kind) - 4
        [before] = struct.unpack_from(">I", content, place)
        struct.pack_into(">I", content, place, before + len(grown) - size)
    content[at : at + size] = grown
    return content


CLAIMS: dict[str, Callable[[bytearray], bytearray]] = {
    "none": lambda film: claiming(film, tuple(DURATION_AT), 0),
    "unknown": lambda film: claiming(film, tuple(DURATION_AT), UNKNOWN),
    "too long": lambda film: claiming(film, tuple(DURATION_AT), 2**31),
    "too short": lambda film: claiming(film, tuple(DURATION_AT), 100),
    "too short, without edit lists": lambda film: without_edits(
        claiming(film, tuple(DURATION_AT), 100)
    ),
    "a wrong movie header": lambda film: claiming(film, [b"mvhd"], 10**9),
    "a last frame of an hour": lambda film: with_last_frame(film, HOUR_S),
    "a last frame of 14 hours": lambda film: with_last_frame(film, 14 * HOUR_S),
    "a last frame of an hour, by the header": lambda film: without_edits(
        with_last_frame(film, HOUR_S)
    ),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
async def test_a_film_is_as_long_as_its_samples(
    claim: Callable[[bytearray], bytearray], film: bytearray, write: Write
) -> None:
    source_facts = await probe(str(write(bytes(claim(film)))))

    assert source_facts.duration_s == pytest.approx(FILM_S, abs=0.03)
    assert source_facts.video.duration_s == pytest.approx(FILM_S, abs=0.001)
    assert source_facts.audio[0].end_s == pytest.approx(FILM_S, abs=0.03)
    assert source_facts.video.last_frame_s == pytest.approx(FILM_S - 0.1, abs=0.001)
    assert source_facts.video.longest_frame_s == pytest.approx(0.1, abs=0.001)
    assert not source_facts.video.misplaced_frames


async def test_what_nothing_contradicts_counts_and_is_held_against_the_limit(
    film: bytearray, write: Write
) -> None:
    """The sample table alone says that the last frame lasts an hour."""
    long = without_edits(claiming(with_last_frame(film, HOUR_S), [b"mdhd", b"mvhd"], 2**31))
    source = write(bytes(long))

    source_facts = await probe(str(source))

    assert source_facts.duration_s == pytest.approx(HOUR_S + FILM_S - 0.1, abs=0.001)
    limits = SourceLimits(max_duration_s=HOUR_S / 2)
    assert await rejection(source, limits) == RejectCode.TOO_LONG


@pytest.mark.parametrize("number", [12, 29], ids=["amid the others", "the last"])
async def test_a_misplaced_frame_counts_for_nothing(
    number: int, film: bytearray, write: Write
) -> None:
    late_ms = [0] * (10 * FILM_S)
    late_ms[number] = 2 * HOUR_S * 1000
    rows = b"".join(struct.pack(">II", 1, late) for late in late_ms)
    table = struct.pack(">I4sII", 16 + len(rows), b"ctts", 0, len(late_ms)) + rows
    content = without_edits(film)
    at = places(content, b"stsc")[0] - 8
    source = write(bytes(_replaced(content, at, 0, table)))

    source_facts = await probe(str(source))

    assert source_facts.video.misplaced_frames == 1
    assert source_facts.duration_s == pytest.approx(FILM_S, abs=0.15)


@pytest.mark.parametrize("flags", ["frag_keyframe+empty_moov", "dash+delay_moov"])
async def test_fragments_tell_how_long_they_last(
    flags: str, make_media: MakeMedia, write: Write
) -> None:
    inputs = lavfi("testsrc2=s=64x48:r=10:d=5", "sine=d=2:r=48000")
    codec = ("-c:v", "libx264", "-bf", "2", "-g", "10", "-movflags", flags)
    content = bytearray(make_media("fragments.mp4", *inputs, *codec).read_bytes())
    for ticks in (0, 2**31):
        source_facts = await probe(str(write(bytes(claiming(content, tuple(DURATION_AT), ticks)))))

        assert source_facts.duration_s == pytest.approx(5, abs=0.21)
        assert source_facts.video.duration_s == source_facts.duration_s
        assert source_facts.video.last_frame_s == pytest.approx(
            source_facts.duration_s - 0.1, abs=0.001
        )
        # Without an edit list all begins later, by the delay of decoding.
        assert source_facts.audio[0].end_s == pytest.approx(2, abs=0.21)


async def test_many_frames_in_a_short_header_are_no_attack(
    make_media: MakeMedia, write: Write
) -> None:
    source = make_media("dense.mp4", *lavfi("testsrc2=s=16x16:r=240:d=5"), "-c:v", "mpeg4")
    unknown = claiming(bytearray(source.read_bytes()), tuple(DURATION_AT), 0)

    source_facts = await probe(str(write(bytes(unknown))))

    assert source_facts.duration_s == pytest.approx(5, abs=0.01)


async def test_frames_begin_and_end_with_the_film(make_media: MakeMedia) -> None:
    """A late first frame is shown from the start, which makes it a long one."""
    late = ("-itsoffset", "3", *lavfi("testsrc2=s=64x48:r=10:d=2"))
    source: Path = make_media("late picture.mp4", *late, *lavfi("sine=d=7"), "-c:v", "mpeg4")

    source_facts = await probe(str(source))

    assert source_facts.video.duration_s == pytest.approx(5, abs=0.05)
    assert source_facts.video.longest_frame_s == pytest.approx(3.1, abs=0.05)
    assert source_facts.duration_s == pytest.approx(7, abs=0.05)
