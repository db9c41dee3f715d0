"""Mono tracks of a camera become stereo, and silent ones are left out."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from media_recipes import MakeMedia, lavfi
from published import Publish, probe

PICTURE = "testsrc2=s=64x48:r=10:d=2"
X264 = ("-c:v", "libx264", "-preset", "ultrafast")
SILENCE = "anullsrc=cl=mono:r=48000:d=2"


def tone(hz: int, when: str = "1") -> str:
    return f"aevalsrc=exprs='0.3*sin(2*PI*{hz}*t)*({when})':c=mono:s=48000:d=2"


def film(make_media: MakeMedia, name: str, sounds: Sequence[str], *options: str) -> Path:
    """Make a film with a track for each sound."""
    tracks = [option for number in range(len(sounds) + 1) for option in ("-map", str(number))]
    return make_media(name, *lavfi(PICTURE, *sounds), *tracks, *X264, *options)


async def test_two_mono_tracks_become_left_and_right(
    make_media: MakeMedia, publish: Publish
) -> None:
    sounds = [tone(400), tone(900), SILENCE, SILENCE]
    names = ("-metadata:s:a:0", "handler_name=Mono", "-metadata:s:a:1", "handler_name=Track 2")
    source = film(make_media, "two.mov", sounds, *names, "-c:a", "aac")
    published = await publish(source)
    assert [(sound.label, sound.channels) for sound in published.result.audio] == [("Audio", 2)]
    heard = published.sounds["audio"]
    assert heard.frequency_hz(0.5, 1.5, 0) == pytest.approx(400, abs=5)
    assert heard.frequency_hz(0.5, 1.5, 1) == pytest.approx(900, abs=5)
    assert heard.level(0.5, 1.5, 0) == pytest.approx(0.3 * 0.5**0.5, rel=0.1)
    assert not published.result.output.notes


async def test_a_silent_stereo_track_is_left_out(make_media: MakeMedia) -> None:
    scratch = "anullsrc=cl=stereo:r=48000:d=2"
    source = film(make_media, "scratch.mp4", [scratch, tone(900)], "-c:a", "aac")
    assert [track.is_silent for track in (await probe(str(source))).audio] == [True, False]


async def test_sound_that_is_heard_at_times_is_not_silent(make_media: MakeMedia) -> None:
    sounds = [tone(400), tone(900, "between(t,1.4,1.7)")]
    source = film(make_media, "at times.mov", sounds, "-c:a", "pcm_s16le")
    assert not any(track.is_silent for track in (await probe(str(source))).audio)
