"""A trimmed file begins and ends at the chosen frames, with its sound in step.

Packets from the key frame before are in the file, and some after the end. The edit lists of its
tracks tell what is shown.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from decoded_media import open_media, packets
from front_end import install_tools, run_node
from numbered_film import FPS, make_numbered, number_in, time_of_tone
from published import Publish, Published, frames, joined, playlist, probe
from running_portal import run_ffmpeg

SCRIPT = Path(__file__).parents[1] / "trim_film.mjs"
REPACK = Path(__file__).parents[2] / "repack" / "repack_file.mjs"
MAX_SHIFT_S = 0.010
GROUP = ("-g", "50", "-keyint_min", "50", "-sc_threshold", "0")
B_FRAMES = ("-bf", "3", "-x264-params", "b-adapt=0:b-pyramid=normal")
OPEN_GROUPS = ("-bf", "3", "-x264-params", "open-gop=1:b-adapt=0")
# Two frames of five are missing, and groups are as long as those of the others.
UNEVEN = ("-vf", "select='not(between(mod(n,5),1,2))'", "-fps_mode", "vfr", "-g", "30")
LATE_S = 0.5
FRAGMENTS = ("-movflags", "+frag_keyframe+delay_moov")


@dataclass(frozen=True)
class Trim:
    """Part of a film from a frame to the one before another."""

    first: int
    until: int

    @property
    def span_s(self) -> tuple[float, float]:
        return self.first / FPS, self.until / FPS


# Ends of each kind among reordered frames, and beginnings at and after key frames.
TRIMS = (Trim(60, 181), Trim(50, 182))


def boxes(content: bytes, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield the kind and the content's position of the boxes on the way to edit lists."""
    while at < end:
        size, kind = struct.unpack_from(">I4s", content, at)
        yield kind, at + 8
        if kind in (b"moov", b"trak", b"mdia", b"edts"):
            yield from boxes(content, at + 8, at + size)
        at += size


def set_edits(path: Path, trim: Trim, *, later: bool) -> None:
    """Set the ends of edits, which each track has one of, and begin them `later`."""
    content = bytearray(path.read_bytes())
    start_s, end_s = trim.span_s
    movie_scale = place = 0
    for kind, at in boxes(content, 0, len(content)):
        if kind == b"mvhd":
            movie_scale = struct.unpack_from(">I", content, at + 12)[0]
        if kind == b"elst":
            place = at
            struct.pack_into(">I", content, at + 8, round((end_s - start_s) * movie_scale))
        if kind == b"mdhd" and later:
            scale = struct.unpack_from(">I", content, at + 12)[0]
            begin = struct.unpack_from(">i", content, place + 12)[0]
            struct.pack_into(">i", content, place + 12, begin + round(start_s * scale))
    path.write_bytes(content)


@pytest.fixture(scope="module", params=["b_frames", "open_groups", "uneven", "late_sound"])
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    options = {
        "b_frames": B_FRAMES,
        "open_groups": OPEN_GROUPS,
        "uneven": (*B_FRAMES, *UNEVEN),
        "late_sound": B_FRAMES,
    }[request.param]
    path = make_numbered(
        folder / f"{request.param}.mp4",
        *GROUP,
        *options,
        "-c:a",
        "aac",
        "-ac",
        "2",
        seconds=8,
        size="320x180",
    )
    if request.param != "late_sound":
        return path
    inputs = ("-i", str(path), "-itsoffset", str(LATE_S), "-i", str(path))
    maps = ("-map", "0:v", "-map", "1:a", "-c", "copy")
    return run_ffmpeg(folder / "late.mp4", *inputs, *maps)


def numbers_at(published: Published, rung: str) -> list[tuple[float, int]]:
    return [
        (float(frame.pts * frame.time_base), number_in(frame.to_ndarray(format="gray")))
        for frame in frames(published.folder, rung)
    ]


def check(published: Published, film: Path, trim: Trim) -> None:
    """Check which frames are shown at which times, and the time of the sound at each second."""
    is_late = film.name == "late.mp4"
    expected = [
        number
        for number in range(trim.first, trim.until)
        if film.stem != "uneven" or number % 5 not in (1, 2)
    ]
    shown = numbers_at(published, published.result.plan.video[-1].name)
    assert [number for _, number in shown] == expected
    for at_s, number in shown[1:]:
        assert at_s == pytest.approx((number - trim.first) / FPS, abs=MAX_SHIFT_S)
    start_s, end_s = trim.span_s
    assert published.result.source.duration_s == pytest.approx(end_s - start_s, abs=0.025)
    sound = published.sounds["audio"]
    for at_s in (1.0, 4.0):
        source_s = time_of_tone(sound.frequency_hz(at_s - 0.5, at_s + 0.5))
        delay_s = LATE_S if is_late else 0
        assert source_s == pytest.approx(start_s + at_s - delay_s, abs=MAX_SHIFT_S)


def check_copied(published: Published, film: Path, trim: Trim, copied: range) -> None:
    """Check that frames and sound are the film's, bit by bit, and that other frames are encoded."""
    rung = published.result.plan.video[-1]
    assert rung.copied
    own_sound = {packet.data for packet in packets(film, "audio")}
    assert own_sound.issuperset(
        packet.data for packet in packets(joined(published.folder, "audio"), "audio")
    )
    with open_media(film) as container:
        own = {
            number_in(frame.to_ndarray(format="gray")): frame.to_ndarray().tobytes()
            for frame in container.decode(video=0)
        }
    same = [
        number
        for frame in frames(published.folder, rung.name)
        if frame.to_ndarray().tobytes() == own[number := number_in(frame.to_ndarray(format="gray"))]
    ]
    assert same == [number for number in own if number in copied]
    files = {path.name for path in (published.folder / rung.name).glob("*.m4s")}
    assert files == {segment.uri for segment in playlist(published.folder, rung.name).segments}


async def test_trim_by_edit_lists_is_exact(film: Path, publish: Publish, tmp_path: Path) -> None:
    install_tools()
    target = tmp_path / "trimmed.mp4"
    trim = TRIMS[1]
    run_node(str(SCRIPT), str(film), str(target), *map(str, trim.span_s))
    set_edits(target, trim, later=False)
    check(await publish(target), film, trim)


# FFmpeg writes late sound with two edits.
@pytest.mark.parametrize("film", ["b_frames", "open_groups", "uneven"], indirect=True)
@pytest.mark.parametrize("trim", TRIMS, ids=str)
async def test_trim_of_fragments_is_exact(
    film: Path, publish: Publish, tmp_path: Path, trim: Trim
) -> None:
    target = run_ffmpeg(tmp_path / "trimmed.mp4", "-i", str(film), "-c", "copy", *FRAGMENTS)
    set_edits(target, trim, later=True)
    check(await publish(target), film, trim)


WITHIN_GROUPS = (Trim(60, 184), range(100, 150))


@pytest.mark.parametrize(
    ("film", "trim", "copied"),
    [
        pytest.param("b_frames", *WITHIN_GROUPS, id="both ends within groups"),
        pytest.param("uneven", *WITHIN_GROUPS, id="both ends, at an uneven rate"),
        pytest.param("late_sound", *WITHIN_GROUPS, id="both ends, with late sound"),
        pytest.param("b_frames", Trim(50, 200), range(50, 200), id="begins at a key frame"),
        pytest.param("b_frames", Trim(0, 150), range(150), id="ends at a key frame"),
        pytest.param("b_frames", Trim(48, 183), range(100, 183), id="no frames depend on the end"),
    ],
    indirect=["film"],
)
async def test_only_the_ends_of_a_trim_of_the_page_are_encoded(
    film: Path, publish: Publish, tmp_path: Path, trim: Trim, copied: range
) -> None:
    install_tools()
    target = tmp_path / "trimmed.mp4"
    start_s, end_s = trim.span_s
    span = {"start_s": start_s, "end_s": end_s}
    run_node(str(REPACK), json.dumps([str(film), str(target), span]))
    published = await publish(target)
    check(published, film, trim)
    check_copied(published, film, trim, copied)


async def test_key_frames_count_from_the_beginning_of_a_trim(tmp_path: Path) -> None:
    film = make_numbered(tmp_path / "film.mp4", *GROUP, *B_FRAMES, "-c:a", "aac", seconds=8)
    target = run_ffmpeg(tmp_path / "trimmed.mp4", "-i", str(film), "-c", "copy", *FRAGMENTS)
    set_edits(target, Trim(110, 160), later=True)
    # From the frame 110 to 150; the other groups are longer.
    assert (await probe(target)).video.max_key_distance_s == pytest.approx(1.6)
