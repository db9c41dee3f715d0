"""A film shows what the edit lists of its tracks show, and nothing else of them."""

import struct
from collections.abc import Sequence
from pathlib import Path

import av
import pytest
from decoded_media import Heard
from media_recipes import MakeMedia, lavfi
from mp4_writer import box, replace_box
from published import FolderSink, Publish, Result, Studio, Write, make_pass, shown

from portal.transcoding.encoding.parts import Part
from portal.transcoding.errors import Note

# Duration in seconds, media time in seconds (None for a gap), and rate.
Edit = tuple[float, float | None, float]
FILM_S = 16
MOVIE_TICKS = 48_000
PICTURE_TICKS = 12_800
SOUND_HZ = 48_000
# Each second of the film has a luma and a pitch of its own. The encoder fails at flat pictures.
LUMA = "geq=lum='40+10*floor(T)':cb=128:cr=128,drawgrid=w=32:h=36:c=gray"
PITCH = f"aevalsrc='0.5*sin(2*PI*(500+100*floor(t))*t)':s={SOUND_HZ}:d={FILM_S}"
PRIMING_S = 1024 / SOUND_HZ
GAP: tuple[Edit, ...] = ((3, 5, 1), (4, None, 1), (3, 12, 1))
FREEZE: tuple[Edit, ...] = ((3, 5, 1), (4, 8, 0), (3, 12, 1))
SLOW: tuple[Edit, ...] = ((3, 5, 1), (4, 8, 0.5), (3, 12, 1))


@pytest.fixture
def film(make_media: MakeMedia) -> Path:
    codecs = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "20", "-c:a", "aac")
    picture = f"color=c=black:s=320x180:r=10:d={FILM_S},{LUMA}"
    ticks = ("-video_track_timescale", str(PICTURE_TICKS))
    return make_media("seconds.mp4", *lavfi(picture, PITCH), *codecs, "-qp", "10", *ticks)


def with_edits(
    film: Path, picture: Sequence[Edit], sound: Sequence[Edit], text: Sequence[Edit] = ()
) -> bytes:
    """Return a film with other edit lists."""
    content = film.read_bytes()
    tracks = ((text, 1_000_000, 0), (sound, SOUND_HZ, PRIMING_S), (picture, PICTURE_TICKS, 0.2))
    for edits, ticks, delay_s in tracks if text else tracks[1:]:
        rows = b"".join(
            struct.pack(
                ">Iii",
                round(duration_s * MOVIE_TICKS),
                -1 if media_s is None else round((media_s + delay_s) * ticks),
                round(rate * 65536),
            )
            for duration_s, media_s, rate in edits
        )
        # The list of the sound comes last. Under another name, it isn't found again.
        replaced = box(b"done", struct.pack(">II", 0, len(edits)), rows)
        content = replace_box(content, b"elst", replaced)
    return content.replace(b"done", b"elst")


def seconds_shown(result: Result, folder: Path) -> list[int]:
    """Return of which second of the original the picture is, in the middle of each second."""
    pictures = shown(folder, result.renditions[-1].name)
    middles = [number + 0.55 for number in range(round(result.output.duration_s))]
    latest = [
        max((each for each in pictures if each.time_s <= at), key=lambda p: p.time_s)
        for at in middles
    ]
    return [round((picture.centre_luma - 40) / 10) for picture in latest]


def seconds_heard(sound: Heard, duration_s: float) -> list[int | None]:
    """Return of which second of the original the sound is; None for silence."""
    spans = [(number + 0.2, number + 0.8) for number in range(round(duration_s))]
    return [
        None if sound.level(*span) < 0.001 else round((sound.frequency_hz(*span) - 500) / 100)
        for span in spans
    ]


@pytest.mark.parametrize(
    ("picture", "sound", "frames", "heard", "notes"),
    [
        (GAP, GAP, [5, 6, 7, 7, 7, 7, 7, 12, 13, 14], [5, 6, 7, *[None] * 4, 12, 13, 14], ()),
        (
            FREEZE,
            [(10, 0, 1)],
            [5, 6, 7, 8, 8, 8, 8, 12, 13, 14],
            [*range(10)],
            (),
        ),
        (
            SLOW,
            SLOW,
            [5, 6, 7, 8, 9, 9, 9, 12, 13, 14],
            [5, 6, 7, 8, 9, None, None, 12, 13, 14],
            (Note.EDITS_UNFOLLOWED,),
        ),
        ([(0, 0, 1)], [(0, 0, 1)], [*range(16)], [*range(16)], ()),
        ([(0, 6, 1)], [(0, 6, 1)], [*range(6, 16)], [*range(6, 16)], ()),
    ],
    ids=["gap", "still picture", "slow", "to the end", "from the middle to the end"],
)
async def test_what_a_list_leaves_out_is_neither_seen_nor_heard(
    film: Path,
    write: Write,
    publish: Publish,
    picture: Sequence[Edit],
    sound: Sequence[Edit],
    frames: list[int],
    heard: list[int | None],
    notes: tuple[Note, ...],
) -> None:
    source = write(with_edits(film, picture, sound))
    published = await publish(source)
    result = published.result
    assert result.output.duration_s == pytest.approx(len(frames), abs=0.15)
    assert result.output.notes == notes
    assert seconds_shown(result, published.folder) == frames
    assert seconds_heard(published.sounds["audio"], len(heard)) == heard


@pytest.mark.parametrize(
    ("edits", "frames"),
    [
        ([(6, 0, 1), (5, None, 1), (3, 12, 1)], [*range(6), *[5] * 5, 12, 13, 14]),
        ([(2, 0, 1), (2, None, 1), (10, 4, 1)], [0, 1, 1, 1, *range(4, 14)]),
    ],
)
async def test_parts_show_the_same_as_the_whole(
    film: Path, write: Write, tmp_path: Path, edits: Sequence[Edit], frames: list[int]
) -> None:
    source = write(with_edits(film, edits, edits))
    sink = FolderSink(tmp_path / "sink")
    parts = [Part(first=number, until=number + 1) for number in range(4)]
    result = await make_pass(source, sink=sink, work_dir=tmp_path / "work", parts=parts)
    assert seconds_shown(result, sink.folder) == frames


async def test_subtitles_and_posters_of_a_gap_are_hidden(
    film: Path, studio: Studio, write: Write, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.srt"
    lines.write_text(
        "\n".join(f"{n}\n00:00:{n:02},100 --> 00:00:{n:02},900\nNumber {n}\n" for n in range(16))
    )
    inputs = ("-i", str(film), "-i", str(lines), "-map", "0", "-map", "1")
    ticks = ("-video_track_timescale", str(PICTURE_TICKS))
    subtitled = studio.make("texts.mp4", *inputs, "-c", "copy", "-c:s", "mov_text", *ticks)
    edits: tuple[Edit, ...] = ((1, 5, 1), (8, None, 1), (1, 12, 1))
    published = await studio.publish(write(with_edits(subtitled, edits, edits, edits)))
    [cues] = published.result.output.captions.values()
    assert {cue.text for cue in cues} <= {"Number 5", "Number 12"}
    with av.open(published.folder / "poster.jpg") as poster:
        picture = next(poster.decode(video=0)).to_ndarray(format="gray")
    # The poster has the full range.
    luma = 16 + float(picture[90, 176]) * 219 / 255
    assert round((luma - 40) / 10) in (5, 12)
