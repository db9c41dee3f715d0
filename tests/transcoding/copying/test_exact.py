"""A copy holds every packet of its source at its own time, whatever the timing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from copied import SOUND, VIDEO, copy
from media_recipes import MakeMedia, with_late
from published import frames

GROUPS = ("-g", "60", "-bf", "2")
JITTER = "settb=1/90000,setpts='PTS+600*random(1)'"
FINE = ("-fps_mode", "passthrough", "-enc_time_base", "1:90000", "-video_track_timescale", "90000")
SPARSE = "select='lt(mod(n,11),5)+not(mod(n,3))'"

Make = Callable[[MakeMedia, MakeMedia], Path]


def made(name: str, *options: str) -> object:
    """Twelve seconds of a test picture with a tone, as ffmpeg writes it: the index at the end."""

    def make(video: MakeMedia, media: MakeMedia) -> Path:
        return video(f"exact {name}.mp4", *GROUPS, *options, duration_s=12)

    return pytest.param(make, id=name)


def late(track: str) -> object:
    def make(video: MakeMedia, media: MakeMedia) -> Path:
        whole = video("exact plain.mp4", *GROUPS, duration_s=12)
        return with_late(media, f"exact late {track[-1]}.mp4", whole, track, 0.4)

    return pytest.param(make, id=f"late {track}")


@pytest.mark.parametrize(
    "make",
    [
        made("plain"),
        made("index first", "-movflags", "+faststart"),
        made("B-frames in pyramids", "-bf", "5", "-b_strategy", "2", "-b-pyramid", "normal"),
        made("stereo at 48 kHz", "-ac", "2", "-ar", "48000"),
        made("variable", "-vf", SPARSE, "-fps_mode", "vfr"),
        made("jittering", "-vf", JITTER, *FINE),
        made("a coarse time scale", "-video_track_timescale", "600"),
        late("0:v"),
        late("0:a"),
    ],
)
async def test_every_packet_keeps_its_bytes_and_its_times(
    make: Make, make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    copied = await copy(make(make_video, make_media), tmp_path)
    assert not copied.report.dropped

    video, own_video = copied.units(VIDEO), copied.source_units(VIDEO)
    assert [unit.data for unit in video] == [unit.data for unit in own_video]
    assert video[1:] == own_video[1:]
    assert video[0].shown_s == 0, "shown from the beginning, however late it is in the source"
    assert copied.report.frames == len(video)
    sound, own_sound = copied.units(SOUND), copied.source_units(SOUND)
    assert [unit.data for unit in sound] == [unit.data for unit in own_sound]
    # To half a sample, where the source's ticks are no samples.
    for unit, own in zip(sound, own_sound, strict=True):
        assert abs(unit.shown_s - own.shown_s) * 44_100 <= 40
    assert copied.report.duration_s == pytest.approx(copied.playlist(VIDEO).duration_s)


async def test_segments_begin_where_the_rule_says(make_video: MakeMedia, tmp_path: Path) -> None:
    keys = ("-g", "999", "-force_key_frames", "0,1,3.9,7,9.5,10,11,14", "-bf", "2")
    copied = await copy(make_video("irregular keys.mp4", *keys, duration_s=16), tmp_path)

    assert copied.starts_s() == pytest.approx([0, 3.9, 9.5, 14], abs=0.001)
    assert copied.playlist(VIDEO).starts_s == pytest.approx([0, 3.9, 9.5, 14], abs=0.001)
    # Half a frame of 1024 samples.
    assert copied.playlist(SOUND).starts_s == pytest.approx([0, 3.9, 9.5, 14], abs=0.012)


async def test_each_segment_decodes_after_the_init_segment_alone(
    make_video: MakeMedia, tmp_path: Path
) -> None:
    copied = await copy(make_video("exact plain.mp4", *GROUPS, duration_s=12), tmp_path)

    for name, each in ((VIDEO, 120), (SOUND, 172)):
        for segment in range(3):
            assert len(frames(tmp_path, name, segment)) == pytest.approx(each, abs=2)
    for name in (VIDEO, SOUND):
        written = {path.name for path in (tmp_path / name).iterdir()}
        segments = {segment.uri for segment in copied.playlist(name).segments}
        assert written == segments | {"init.mp4", "playlist.m3u8"}


async def test_nothing_of_the_sources_metadata_is_copied(
    make_video: MakeMedia, tmp_path: Path
) -> None:
    about = ("-metadata", "title=Secret", "-metadata", "location=+48.2+16.3/")
    track = ("-metadata:s:v", "handler_name=Secret", "-metadata:s:a", "language=deu")
    source = make_video("secret.mp4", *GROUPS, *about, *track, duration_s=2)
    assert b"Secret" in source.read_bytes()

    await copy(source, tmp_path)

    for name in (VIDEO, SOUND):
        init = (tmp_path / name / "init.mp4").read_bytes()
        assert b"Secret" not in init
        assert b"+48.2" not in init
        assert b"\x55\xc4" in init, "the language is undetermined"
