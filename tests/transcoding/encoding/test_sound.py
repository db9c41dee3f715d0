"""Sound tracks are published with their languages, in one or two channels."""

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from decoded_media import Heard
from media_recipes import CORNERS, MakeMedia, card, lavfi, make_card
from mp4_writer import box, channel_layout, replace_box
from published import Studio, Write, playlist, probe
from published_checks import check_published

from portal.transcoding.errors import Note

TONES_HZ = {"und": 440, "eng": 660, "deu": 990}


async def test_each_alternate_holds_its_own_sound(studio: Studio) -> None:
    """Three tones; the second track is the default one."""
    picture = card(size="320x180", flashes_s=())
    mute = make_card(studio.make, "mute card.mp4", picture=picture, sound=None)
    tracks: list[str] = []
    for number, language in enumerate(TONES_HZ):
        tracks += ["-map", f"{number + 1}:a", f"-metadata:s:a:{number}", f"language={language}"]
        tracks += [f"-disposition:a:{number}", "default" if language == "eng" else "0"]
    source = studio.make(
        "three languages.mp4",
        *("-i", str(mute), *lavfi(*(f"sine=f={hz}:d=7:r=48000" for hz in TONES_HZ.values()))),
        *("-map", "0:v", *tracks, "-c:v", "copy", "-c:a", "aac"),
    )

    published = await studio.publish(source)

    heard = {
        rendition.language: published.sounds[rendition.name].frequency_hz(1, 3)
        for rendition in published.result.audio
    }
    expected = {"en": TONES_HZ["eng"], "de": TONES_HZ["deu"], None: TONES_HZ["und"]}
    assert heard == {language: pytest.approx(hz, abs=3) for language, hz in expected.items()}
    check_published(published, corners=CORNERS)


async def test_a_hole_in_the_sound_does_not_move_what_follows(studio: Studio) -> None:
    """Some packets are missing, as if a recorder had dropped sound."""
    picture = card(size="320x180")
    path = str(make_card(studio.make, "card.mp4", picture=picture))
    hole = "noise=drop='gt(pts*tb,2)*lt(pts*tb,3.5)'"
    source = studio.make("hole.mp4", "-i", path, "-c", "copy", "-bsf:a", hole)
    check_published(await studio.publish(source), corners=CORNERS, in_sync=True)


TINY = lavfi("testsrc2=s=64x48:r=10:d=1")
UNCOMPRESSED = ("-c:v", "libx264", "-preset", "ultrafast", "-c:a", "pcm_s16le")
TONE_AMPLITUDE = 0.2
MPEG_5_1_C = 123 << 16 | 6
# QuickTime's labels of channels.
L, R, C, LFE, LS, RS = range(1, 7)


def tone_hz(channel: int) -> int:
    return 400 + 200 * channel


def tone_levels(heard: Heard, hz: int) -> tuple[float, ...]:
    """Return the amplitude of a tone in each channel, as a share of that in the source."""
    # All tones have whole periods in these 0.2 s.
    turns = np.exp(2j * np.pi * hz * np.arange(9_600) / 48_000)
    parts = heard.channels[:, 12_000:21_600]
    return tuple(2 * np.abs(parts @ turns) / len(turns) / TONE_AMPLITUDE)


USUAL_ORDER = {0: (1, 0), 1: (0, 1), 2: (0.7, 0.7), 3: (0, 0), 4: (0.7, 0), 5: (0, 0.7)}
# Google's spatial audio box: order, ordering of channels, normalization, and their numbers.
SPATIAL = box(b"SA3D", struct.pack(">BBIBBI4I", 0, 0, 1, 0, 0, 4, 0, 1, 2, 3))
FILM_ORDER = {0: (1, 0), 1: (0.7, 0.7), 2: (0, 1), 3: (0.7, 0), 4: (0, 0.7), 5: (0, 0)}


@pytest.mark.parametrize(
    ("label", "levels", "note"),
    [
        (None, USUAL_ORDER, Note.SURROUND_DOWNMIXED),
        (channel_layout(0, L, C, R, LS, RS, LFE), FILM_ORDER, Note.SURROUND_DOWNMIXED),
        (channel_layout(MPEG_5_1_C), FILM_ORDER, Note.SURROUND_DOWNMIXED),
        (SPATIAL, {0: (1, 1), 1: None, 2: None, 3: None}, Note.SPATIAL_DOWNMIXED),
    ],
    ids=["usual order", "film order", "tag", "ambisonic"],
)
async def test_each_channel_is_heard_on_its_side(
    label: bytes | None,
    levels: Mapping[int, Sequence[float] | None],
    note: Note,
    studio: Studio,
    write: Write,
) -> None:
    tones = "|".join(f"{TONE_AMPLITUDE}*sin(2*PI*{tone_hz(n)}*t)" for n in levels)
    sound = f"aevalsrc=exprs='{tones}':c={'5.1' if len(levels) == 6 else 'quad'}:s=48000:d=1"
    content = studio.make("tones.mov", *TINY, *lavfi(sound), *UNCOMPRESSED).read_bytes()
    source = write(replace_box(content, b"chan", label) if label else content)
    published = await studio.publish(source)
    for channel, expected in levels.items():
        if expected:
            heard = tone_levels(published.sounds["audio"], tone_hz(channel))
            assert heard == pytest.approx(expected, abs=0.08), channel
    assert published.result.output.notes == (note,)


async def test_nine_channels_do_not_fail_a_film(studio: Studio) -> None:
    noise = studio.make("noise.wav", *lavfi("anoisesrc=d=1:a=0.1"), "-ac", "1")
    raw = ("-f", "s16le", "-ar", "48000", "-ch_layout", "9 channels", "-i", str(noise))
    published = await studio.publish(studio.make("nine.mov", *TINY, *raw, *UNCOMPRESSED))
    [track] = published.result.source.audio
    assert track.channels == 9
    assert len(published.sounds["audio"].channels) == 2
    assert Note.CHANNELS_LEFT_OUT in published.result.output.notes


async def test_samples_that_are_no_numbers_do_not_fail_a_film(studio: Studio) -> None:
    sound = "aevalsrc=exprs='if(between(t,0.5,0.6),0/0,0.1)':s=48000:d=1"
    options = (*UNCOMPRESSED, "-c:a", "pcm_f32le")
    published = await studio.publish(
        studio.make("not a number.mov", *TINY, *lavfi(sound), *options)
    )
    assert published.sounds["audio"].level(0.1, 0.4) == pytest.approx(0.1, rel=0.1)


async def test_loud_surround_is_not_clipped(studio: Studio) -> None:
    loud = "|".join(["0.9*sin(2*PI*500*t)"] * 6)
    sound = f"aevalsrc=exprs='{loud}':c=5.1:s=48000:d=1"
    published = await studio.publish(studio.make("loud.mov", *TINY, *lavfi(sound), *UNCOMPRESSED))
    heard = published.sounds["audio"]
    # The peak of a sine is 3 dB above its mean; a clipped one comes nearer.
    assert 0.6 < heard.level(0.3, 0.7) < math.sqrt(0.5)


@pytest.mark.parametrize("duration_s", [4, 8.04])
async def test_a_few_frames_of_sound_at_the_end_are_no_segment(
    duration_s: float, studio: Studio
) -> None:
    film = lavfi(f"testsrc2=s=64x48:r=25:d={duration_s}", f"sine=d={duration_s}:r=48000")
    published = await studio.publish(studio.make(f"{duration_s}.mov", *film, *UNCOMPRESSED))
    written = playlist(published.folder, "audio")
    assert len(written.segments) == round(duration_s / 4)
    assert written.duration_s == pytest.approx(duration_s, abs=0.05)


def tone(hz: int, when: str = "1") -> str:
    return f"aevalsrc=exprs='0.3*sin(2*PI*{hz}*t)*({when})':c=mono:s=48000:d=2"


def film_with(make_media: MakeMedia, sounds: Sequence[str], *options: str) -> Path:
    """Make a film with a track for each sound."""
    tracks = [option for number in range(len(sounds) + 1) for option in ("-map", str(number))]
    return make_media("tracks.mov", *TINY, *lavfi(*sounds), *tracks, *UNCOMPRESSED, *options)


async def test_two_mono_tracks_become_left_and_right(studio: Studio) -> None:
    silence = "anullsrc=cl=mono:r=48000:d=2"
    names = ("-metadata:s:a:0", "handler_name=Mono", "-metadata:s:a:1", "handler_name=Track 2")
    sounds = (tone(400), tone(900), silence, silence)
    published = await studio.publish(film_with(studio.make, sounds, *names, "-c:a", "aac"))
    assert [(sound.label, sound.channels) for sound in published.result.audio] == [("Audio", 2)]
    heard = published.sounds["audio"]
    assert heard.frequency_hz(0.5, 1.5, 0) == pytest.approx(400, abs=5)
    assert heard.frequency_hz(0.5, 1.5, 1) == pytest.approx(900, abs=5)
    assert heard.level(0.5, 1.5, 0) == pytest.approx(0.3 * 0.5**0.5, rel=0.1)
    assert not published.result.output.notes


async def test_sound_that_is_heard_at_times_is_not_silent(make_media: MakeMedia) -> None:
    scratch = "anullsrc=cl=stereo:r=48000:d=2"
    source = film_with(make_media, [scratch, tone(400), tone(900, "between(t,1.4,1.7)")])
    silent = [track.is_silent for track in (await probe(source)).audio]
    assert silent == [True, False, False]
