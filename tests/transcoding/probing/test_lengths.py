"""Tracks last as long as their samples and edit lists say, whatever headers claim."""

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from media_recipes import MakeMedia, lavfi
from mp4_writer import replace_box, table
from published import Write, probe, rejection

from portal.transcoding.errors import RejectCode
from portal.transcoding.probing.probe import SourceLimits

FILM_S = 3
UNKNOWN = 2**32 - 1
# Offset of the duration from the end of a box's type.
DURATION_AT = {b"mvhd": 16, b"tkhd": 20, b"mdhd": 16}
HOUR_S = 3600


@pytest.fixture(scope="module")
def film(make_media: MakeMedia) -> bytes:
    """Three seconds of picture at 10 fps, with sound; both have an edit list."""
    inputs = lavfi(f"testsrc2=s=64x48:r=10:d={FILM_S}", f"sine=d={FILM_S}:r=48000")
    codec = ("-c:v", "libx264", "-preset", "ultrafast", "-video_track_timescale", "1000")
    return make_media("lengths.mp4", *inputs, *codec).read_bytes()


def claiming(film: bytes, ticks: int, *kinds: bytes) -> bytes:
    """The film with another duration in these headers, or in all of them."""
    content = bytearray(film)
    for kind in kinds or DURATION_AT:
        for header in re.finditer(kind, film):
            struct.pack_into(">I", content, header.end() + DURATION_AT[kind], ticks)
    return bytes(content)


def without_edits(film: bytes) -> bytes:
    return film.replace(b"edts", b"free")


def with_last_frame(film: bytes, lasts_s: int) -> bytes:
    """The film, whose last frame lasts so long by the table of decoding times."""
    times = table(b"stts", "II", (10 * FILM_S - 1, 100), (1, lasts_s * 1000))
    return replace_box(film, b"stts", times, is_first=True)


CLAIMS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda film: claiming(film, 0),
    "unknown": lambda film: claiming(film, UNKNOWN),
    "too long": lambda film: claiming(film, 2**31),
    "too short": lambda film: claiming(film, 100),
    "too short, without edit lists": lambda film: without_edits(claiming(film, 100)),
    "a wrong movie header": lambda film: claiming(film, 10**9, b"mvhd"),
    "a last frame of an hour": lambda film: with_last_frame(film, HOUR_S),
    "a last frame of 14 hours": lambda film: with_last_frame(film, 14 * HOUR_S),
    "a last frame of an hour, by the header": lambda film: without_edits(
        with_last_frame(film, HOUR_S)
    ),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
async def test_a_film_is_as_long_as_its_samples(
    claim: Callable[[bytes], bytes], film: bytes, write: Write
) -> None:
    source_facts = await probe(write(claim(film)))

    assert source_facts.duration_s == pytest.approx(FILM_S, abs=0.03)
    assert source_facts.video.duration_s == pytest.approx(FILM_S, abs=0.001)
    assert source_facts.audio[0].end_s == pytest.approx(FILM_S, abs=0.03)
    assert source_facts.video.last_frame_s == pytest.approx(FILM_S - 0.1, abs=0.001)
    assert source_facts.video.longest_frame_s == pytest.approx(0.1, abs=0.001)
    assert not source_facts.video.misplaced_frames


async def test_what_nothing_contradicts_counts_and_is_held_against_the_limit(
    film: bytes, write: Write
) -> None:
    """The sample table alone says that the last frame lasts an hour."""
    long = claiming(with_last_frame(film, HOUR_S), 2**31, b"mdhd", b"mvhd")
    source = write(without_edits(long))

    source_facts = await probe(source)

    assert source_facts.duration_s == pytest.approx(HOUR_S + FILM_S - 0.1, abs=0.001)
    limits = SourceLimits(max_duration_s=HOUR_S / 2)
    assert await rejection(source, limits) == RejectCode.TOO_LONG


@pytest.mark.parametrize("number", [12, 29], ids=["amid the others", "the last"])
async def test_a_misplaced_frame_counts_for_nothing(number: int, film: bytes, write: Write) -> None:
    late_ms = [0] * (10 * FILM_S)
    late_ms[number] = 2 * HOUR_S * 1000
    times = table(b"ctts", "II", *((1, late) for late in late_ms))
    at = film.index(b"stsc") - 4
    chunks = film[at : at + int.from_bytes(film[at : at + 4])]
    source = write(replace_box(without_edits(film), b"stsc", times, chunks, is_first=True))

    source_facts = await probe(source)

    assert source_facts.video.misplaced_frames == 1
    assert source_facts.duration_s == pytest.approx(FILM_S, abs=0.15)


@pytest.mark.parametrize("flags", ["frag_keyframe+empty_moov", "dash+delay_moov"])
async def test_fragments_tell_how_long_they_last(
    flags: str, make_media: MakeMedia, write: Write
) -> None:
    inputs = lavfi("testsrc2=s=64x48:r=10:d=5", "sine=d=2:r=48000")
    codec = ("-c:v", "libx264", "-bf", "2", "-g", "10", "-movflags", flags)
    content = make_media("fragments.mp4", *inputs, *codec).read_bytes()
    for ticks in (0, 2**31):
        source_facts = await probe(write(claiming(content, ticks)))

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

    source_facts = await probe(str(write(claiming(source.read_bytes(), 0))))

    assert source_facts.duration_s == pytest.approx(5, abs=0.01)


async def test_frames_begin_and_end_with_the_film(make_media: MakeMedia) -> None:
    """A late first frame is shown from the start, which makes it a long one."""
    late = ("-itsoffset", "3", *lavfi("testsrc2=s=64x48:r=10:d=2"))
    source: Path = make_media("late picture.mp4", *late, *lavfi("sine=d=7"), "-c:v", "mpeg4")

    source_facts = await probe(source)

    assert source_facts.video.duration_s == pytest.approx(5, abs=0.05)
    assert source_facts.video.longest_frame_s == pytest.approx(3.1, abs=0.05)
    assert source_facts.duration_s == pytest.approx(7, abs=0.05)
