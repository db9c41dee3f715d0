"""Tracks that end early are extended: sound by silence, the picture by its last frame.

Players stall if one track ends long before the other, and if segments are very long.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from decoded_media import look
from media_recipes import COPYABLE, EXACT_TIMES, MakeMedia, as_yuv, card, lavfi
from published import FolderSink, Published, Studio, make_pass, playlist

SEGMENT_S = 4
TICK_S = 0.001
FILM_S = 9.0
SMALL = "64x48"
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-g", "20", "-pix_fmt", "yuv420p")
ENCODED = (*X264, "-level:v", "5.1")
# The kind of file that browsers and streaming software record. No header has its length.
FRAGMENTED = (*X264, "-bf", "0", "-movflags", "frag_keyframe+empty_moov+default_base_moof")


def check_length(published: Published, film_s: float) -> None:
    """Check that each track lasts as long as the film, to a frame of sound."""
    assert published.result.source.duration_s == pytest.approx(film_s, abs=0.03)
    assert published.result.output.duration_s == pytest.approx(film_s, abs=0.06)
    for each in (*published.result.renditions, *published.result.audio):
        assert playlist(published.folder, each.name).duration_s == pytest.approx(film_s, abs=0.06)


@pytest.mark.parametrize(
    "codec",
    [(*X264, *COPYABLE), ENCODED, FRAGMENTED],
    ids=["copied", "encoded", "fragmented"],
)
async def test_sound_that_begins_late_or_ends_early_is_filled_up_by_silence(
    codec: Sequence[str], studio: Studio
) -> None:
    inputs = (*lavfi(f"testsrc2=s={SMALL}:r=10:d={FILM_S}", "sine=d=2,volume=2"), "-itsoffset", "3")
    maps = ("-map", "0", "-map", "1", "-map", "2", "-ac", "2")

    late = lavfi("sine=d=3:r=44100,volume=2")
    published = await studio.publish(studio.make("sounds.mp4", *inputs, *late, *maps, *codec))

    assert published.result.renditions[-1].copied == (codec is not ENCODED)
    check_length(published, FILM_S)
    for name, begins_s, ends_s in (("audio", 0, 2), ("audio-2", 3, 6)):
        sound = published.sounds[name]
        assert abs(sound.start_s) < TICK_S
        assert sound.onsets_s()[0] == pytest.approx(begins_s, abs=0.03)
        assert sound.level(begins_s + 0.5, ends_s - 0.2) > 0.03
        silent = [(ends_s + 0.2, FILM_S - 0.1), *([(0, begins_s - 0.1)] if begins_s else [])]
        assert all(sound.level(*span) < 0.001 for span in silent)


@pytest.mark.parametrize(
    ("picture_s", "codec"), [(0.1, (*X264, *COPYABLE)), (4.5, (*X264, *COPYABLE)), (2, FRAGMENTED)]
)
async def test_the_last_frame_stays_until_the_sound_ends(
    picture_s: float, codec: Sequence[str], studio: Studio
) -> None:
    inputs = lavfi(f"testsrc2=s={SMALL}:r=10:d={picture_s}", f"sine=d={FILM_S}")

    published = await studio.publish(studio.make("picture ends.mp4", *inputs, *codec))

    assert not published.result.renditions[-1].copied
    check_length(published, FILM_S)
    own = [n / 10 for n in range(round(picture_s * 10))]
    # The picture of fragments without an edit list begins a little later.
    if codec != FRAGMENTED:
        check_held(published, own)
    for pictures in published.pictures.values():
        assert [picture.time_s for picture in pictures][len(own) :] == [
            at for at in (4.0, 8.0) if at > own[-1]
        ]


class Clock(FolderSink):
    """Sink that records when ffmpeg finished each segment."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.written_ns: dict[str, int] = {}

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        if isinstance(data, Path):
            self.written_ns[name] = data.stat().st_mtime_ns
        await super().put(name, data, content_type)


@pytest.mark.parametrize(("picture_s", "sound_s"), [(60, 2), (2, 60)])
async def test_a_track_that_ended_is_extended_while_the_other_is_being_encoded(
    picture_s: int, sound_s: int, make_media: MakeMedia, tmp_path: Path
) -> None:
    inputs = lavfi(f"testsrc2=s={SMALL}:r=50:d={picture_s}", f"sine=d={sound_s}")
    sink = Clock(tmp_path / "sink")
    source = make_media("uneven.mp4", *inputs, *ENCODED)

    result = await make_pass(source, sink=sink, work_dir=tmp_path)

    names = ("audio", result.renditions[0].name)
    longer, shorter = reversed(names) if picture_s > sound_s else names
    assert sink.written_ns[f"{shorter}/00001.m4s"] < sink.written_ns[f"{longer}/00014.m4s"]


def check_held(published: Published, own_times_s: Sequence[float]) -> None:
    """Check that frames have their times, and are repeated where segments begin without one."""
    film_s = published.result.output.duration_s
    sources = look(published.path)
    starts_s = [float(at) for at in range(0, int(film_s), SEGMENT_S)]
    begun_s = [at for at in starts_s if any(at - 0.004 <= own <= at for own in own_times_s)]
    repeated_s = sorted({*starts_s} - {*begun_s})
    for name, pictures in published.pictures.items():
        times_s = [picture.time_s for picture in pictures]
        assert times_s == pytest.approx(sorted([*own_times_s, *repeated_s]), abs=TICK_S)
        assert playlist(published.folder, name).starts_s == pytest.approx(starts_s, abs=0.005)
        assert {picture.tags for picture in pictures} == {(1, 1, 1, 1)}, "BT.709"
        for picture in pictures:
            source = [each for each in sources if each.time_s <= picture.time_s + TICK_S][-1]
            assert picture.centre_luma == pytest.approx(source.centre_luma, abs=6)


# Frame times with bursts and long pauses, one at the end; one is close to the start of a segment.
GAPS_S = (0.0, 0.1, 0.7, 3.997, 13.5, 13.55, 20.003, 21.0)


def recording(make_media: MakeMedia, times_s: Sequence[float] = GAPS_S) -> Path:
    """Make a screen recording whose centre is bright in every second frame."""
    number = "+".join(f"gte(T,{at - 0.0005})" for at in times_s[1:])
    shown = "+".join(f"lt(abs(t-{at}),0.0005)" for at in times_s)
    picture = f"color=c=black:s={SMALL}:r=1000:d={times_s[-1] + 0.01},select='{shown}'"
    lit = f"geq=lum='40+150*mod({number},2)':cb=128:cr=128"
    end = ("-bsf:v", "setts=duration='if(eq(NEXT_PTS,NOPTS),4.2/TB,DURATION)'")
    codec = (*ENCODED, "-bf", "0", "-g", "999", *EXACT_TIMES, *end)
    return make_media("recording.mp4", *lavfi(picture), "-vf", lit, *codec)


async def test_a_frame_is_repeated_where_a_segment_begins(studio: Studio) -> None:
    published = await studio.publish(recording(studio.make))

    assert published.result.plan.is_held
    check_length(published, 25.2)
    check_held(published, GAPS_S)


async def test_slides_are_repeated(studio: Studio) -> None:
    picture = card(size=SMALL, rate="1/5", duration_s=20, flashes_s=[5, 15], flash_s=5)

    published = await studio.publish(
        studio.make("slides.mp4", *lavfi(picture), "-vf", as_yuv(), *ENCODED, "-bf", "0")
    )

    check_length(published, 20)
    check_held(published, (0, 5, 10, 15))
