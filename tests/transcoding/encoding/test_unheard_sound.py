"""Sound that can't be decoded, or is empty, is left out, and the film is published."""

from pathlib import Path

import pytest
from decoded_media import open_media
from media_recipes import MakeMedia, lavfi
from mp4_writer import replace_box, sample_sizes, table
from published import Publish

from portal.transcoding.errors import Note

FILM = lavfi("testsrc2=s=64x48:r=10:d=1")
CODECS = ("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac")


@pytest.fixture
def film(make_media: MakeMedia) -> Path:
    """A film with sound of 500 Hz."""
    return make_media("tone.mp4", *FILM, *lavfi("sine=f=500:d=1:r=48000"), *CODECS)


@pytest.fixture
def film_with_two_sounds(make_media: MakeMedia) -> Path:
    """A film with sound of 500 Hz, and of 900 Hz in its second track."""
    sounds = lavfi("sine=f=500:d=1:r=48000", "sine=f=900:d=1:r=48000")
    return make_media("tones.mp4", *FILM, *sounds, "-map", "0", "-map", "1", "-map", "2", *CODECS)


def without_samples(content: bytes) -> bytes:
    """Empty the last track of a file."""
    for kind in (b"stts", b"stsc", b"stco"):
        content = replace_box(content, kind, table(kind, "II"))
    return replace_box(content, b"stsz", sample_sizes([]))


def as_other_codec(content: bytes, sample_entry: bytes) -> bytes:
    """Rename the codec of the first sound of a file, and hide the `esds` box that names it too."""
    return content.replace(b"mp4a", sample_entry, 1).replace(b"esds", b"free", 1)


def with_garbage(path: Path, number: int) -> bytes:
    """Overwrite the samples of a sound track."""
    content = bytearray(path.read_bytes())
    with open_media(path) as container:
        for entry in container.streams.audio[number].index_entries:
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
    sample_entry: bytes, note: Note, film: Path, publish: Publish, tmp_path: Path
) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(as_other_codec(film.read_bytes(), sample_entry))
    published = await publish(source)
    assert not published.result.audio
    assert published.result.output.notes == (note,)


async def test_sound_without_a_decoder_beside_other_sound_has_no_note(
    film_with_two_sounds: Path, publish: Publish, tmp_path: Path
) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(as_other_codec(film_with_two_sounds.read_bytes(), b"apac"))
    published = await publish(source)
    assert published.sounds["audio"].frequency_hz(0.2, 0.8) == pytest.approx(900, abs=5)
    assert not published.result.output.notes


async def test_an_empty_track_is_left_out(film: Path, publish: Publish, tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(without_samples(film.read_bytes()))
    published = await publish(source)
    assert not published.result.audio
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)


async def test_an_empty_second_track_is_left_out(
    film_with_two_sounds: Path, publish: Publish, tmp_path: Path
) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(without_samples(film_with_two_sounds.read_bytes()))
    published = await publish(source)
    [sound] = published.result.audio
    assert sound.label == "Audio"
    assert published.sounds["audio"].frequency_hz(0.2, 0.8) == pytest.approx(500, abs=5)
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)


async def test_a_track_with_all_samples_beyond_the_end_of_the_file_is_left_out(
    film: Path, publish: Publish, tmp_path: Path
) -> None:
    content = film.read_bytes()
    at = content.rindex(b"stco") + 8
    chunks = int.from_bytes(content[at : at + 4])
    source = tmp_path / "film.mp4"
    source.write_bytes(replace_box(content, b"stco", table(b"stco", "I", *[(2**31,)] * chunks)))
    published = await publish(source)
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)


async def test_a_track_whose_samples_have_no_duration_is_left_out(
    film: Path, publish: Publish, tmp_path: Path
) -> None:
    content = film.read_bytes()
    with open_media(film) as container:
        count = len(container.streams.audio[0].index_entries)
    source = tmp_path / "film.mp4"
    source.write_bytes(replace_box(content, b"stts", table(b"stts", "II", (count, 0))))
    published = await publish(source)
    assert not published.result.audio
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)


async def test_damaged_channels_are_left_out(
    film_with_two_sounds: Path, publish: Publish, tmp_path: Path
) -> None:
    source = tmp_path / "film.mp4"
    source.write_bytes(with_garbage(film_with_two_sounds, 0))
    published = await publish(source)
    assert [sound.channels for sound in published.result.audio] == [1]
    assert published.sounds["audio"].frequency_hz(0.2, 0.8) == pytest.approx(900, abs=5)


async def test_where_nothing_decodes_another_track_becomes_the_default(
    film_with_two_sounds: Path, make_media: MakeMedia, publish: Publish, tmp_path: Path
) -> None:
    languages = ("-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu")
    inputs = ("-i", str(film_with_two_sounds), "-map", "0", "-c", "copy")
    plain = make_media("languages.mp4", *inputs, *languages)
    source = tmp_path / "film.mp4"
    source.write_bytes(with_garbage(plain, 0))
    published = await publish(source)
    [sound] = published.result.audio
    assert (sound.name, sound.language, sound.is_default) == ("audio-2", "de", True)
    assert published.sounds["audio-2"].frequency_hz(0.2, 0.8) == pytest.approx(900, abs=5)
    assert published.result.output.notes == (Note.SOUND_LEFT_OUT,)
