"""Sound that can't be decoded, or is empty, is left out, and the film is published."""

from collections.abc import Callable
from pathlib import Path

import pytest
from decoded_media import open_media
from media_recipes import MakeMedia, lavfi
from mp4_writer import replace_box, sample_sizes, table
from published import Publish, Studio, Write, probe

from portal.transcoding.encoding.output_validation import notes_for
from portal.transcoding.errors import Note

TONES_HZ = (500, 900)


@pytest.fixture
def films(make_media: MakeMedia) -> tuple[Path, Path]:
    """Films with sound of 500 Hz, the second one with 900 Hz in German in another track."""
    inputs = lavfi("testsrc2=s=64x48:r=10:d=1", *(f"sine=f={hz}:d=1:r=48000" for hz in TONES_HZ))
    options = ("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac")
    options += ("-metadata:s:a:1", "language=deu")
    maps = ("-map", "0", "-map", "1", "-map", "2")
    single = make_media("tone.mp4", *inputs, *maps[:4], *options)
    return single, make_media("tones.mp4", *inputs, *maps, *options)


def without_samples(path: Path) -> bytes:
    """Empty the last track of a file."""
    content = path.read_bytes()
    for kind in (b"stts", b"stsc", b"stco"):
        content = replace_box(content, kind, table(kind, "II"))
    return replace_box(content, b"stsz", sample_sizes([]))


def beyond_the_end(path: Path) -> bytes:
    content = path.read_bytes()
    at = content.rindex(b"stco") + 8
    chunks = int.from_bytes(content[at : at + 4])
    return replace_box(content, b"stco", table(b"stco", "I", *[(2**31,)] * chunks))


def without_durations(path: Path) -> bytes:
    with open_media(path) as container:
        count = len(container.streams.audio[0].index_entries)
    return replace_box(path.read_bytes(), b"stts", table(b"stts", "II", (count, 0)))


def as_other_codec(path: Path, sample_entry: bytes = b"apac") -> bytes:
    """Rename the codec of the first sound of a file, and hide the `esds` box that names it too."""
    return path.read_bytes().replace(b"mp4a", sample_entry, 1).replace(b"esds", b"free", 1)


def with_garbage(path: Path) -> bytes:
    """Overwrite the samples of the first sound track."""
    content = bytearray(path.read_bytes())
    with open_media(path) as container:
        for entry in container.streams.audio[0].index_entries:
            content[entry.pos : entry.pos + entry.size] = b"\xff" * entry.size
    return bytes(content)


@pytest.mark.parametrize(
    ("sample_entry", "note"),
    [
        (b"apac", Note.APPLE_SPATIAL_UNSUPPORTED),
        (b"mhm1", Note.MPEG_H_UNSUPPORTED),
        (b"ac-4", Note.AC_4_UNSUPPORTED),
        (b"zzzz", Note.SOUND_UNSUPPORTED),
    ],
)
async def test_sound_without_a_decoder_is_named(
    sample_entry: bytes, note: Note, films: tuple[Path, Path], write: Write
) -> None:
    facts = await probe(write(as_other_codec(films[0], sample_entry)))
    assert not facts.audio
    assert notes_for(facts, damaged_share=0) == (note,)


@pytest.mark.parametrize("spoil", [without_samples, beyond_the_end, without_durations])
async def test_the_only_track_is_left_out(
    spoil: Callable[[Path], bytes], films: tuple[Path, Path], publish: Publish, write: Write
) -> None:
    published = await publish(write(spoil(films[0])))
    assert not published.result.audio
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)


@pytest.mark.parametrize(
    ("spoil", "name", "hz", "notes"),
    [
        (as_other_codec, "audio", 900, ()),
        (without_samples, "audio", 500, (Note.SOUND_LEFT_OUT,)),
        # The other track becomes the default if nothing of this one can be decoded.
        (with_garbage, "audio-2", 900, (Note.SOUND_LEFT_OUT,)),
    ],
)
async def test_one_of_two_tracks_is_left_out(
    spoil: Callable[[Path], bytes],
    name: str,
    hz: int,
    notes: tuple[Note, ...],
    films: tuple[Path, Path],
    publish: Publish,
    write: Write,
) -> None:
    published = await publish(write(spoil(films[1])))
    [sound] = published.result.audio
    language = "de" if hz == TONES_HZ[1] else None
    assert (sound.name, sound.language, sound.is_default) == (name, language, True)
    assert published.sounds[name].frequency_hz(0.2, 0.8) == pytest.approx(hz, abs=5)
    assert published.result.output.notes == notes


async def test_damaged_channels_are_left_out(
    films: tuple[Path, Path], studio: Studio, write: Write
) -> None:
    """Mono tracks of one language are channels of one sound."""
    alike = studio.make(
        "alike.mp4", "-i", str(films[1]), "-map", "0", "-c", "copy", "-metadata:s:a", "language=und"
    )
    published = await studio.publish(write(with_garbage(alike)))
    assert [sound.channels for sound in published.result.audio] == [1]
    assert published.sounds["audio"].frequency_hz(0.2, 0.8) == pytest.approx(900, abs=5)
