"""The waveform shows the level of a film's sound over the length of the film."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from media_recipes import MakeMedia, lavfi
from published import FolderSink, Publish, playlist

from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME, make_waveform

QUIET = 0.1
LOUD = 0.5


def assert_level(peaks: Sequence[int], level: float) -> None:
    assert list(peaks) == pytest.approx([level * 255] * len(peaks), abs=8)


async def test_waveform_has_ten_peaks_a_second_over_the_length_of_the_film(
    make_media: MakeMedia, publish: Publish, tmp_path: Path
) -> None:
    # The second segment begins after 4 s.
    level = f"if(between(t,4.5,5.5),{LOUD},{QUIET})"
    tone = f"aevalsrc='{level}*sin(2*PI*440*t)':d=7:s=48000"
    options = ("-c:v", "libx264", "-c:a", "aac")
    source = make_media("levels.mp4", *lavfi("testsrc2=s=160x90:r=10:d=7", tone), *options)
    folder = (await publish(source)).folder

    async def read(name: str) -> bytes:
        return (folder / "audio" / name).read_bytes()

    async def peaks_of(files: RenditionFiles, duration_s: float) -> bytes:
        sink = FolderSink(tmp_path / "sink")
        await make_waveform(files, duration_s=duration_s, sink=sink, work_dir=tmp_path)
        return (sink.folder / WAVEFORM_NAME).read_bytes()

    whole = RenditionFiles(playlist=playlist(folder, "audio"), read=read)
    peaks = await peaks_of(whole, duration_s=9)
    assert len(peaks) == 90
    assert_level(peaks[1:44], QUIET)
    assert_level(peaks[46:53], LOUD)
    assert not any(peaks[71:])

    # A cut film begins with its first interval.
    segments = whole.playlist.segments[1:]
    later = replace(whole, playlist=replace(whole.playlist, segments=segments))
    peaks = await peaks_of(later, duration_s=3)
    assert_level(peaks[1:4], QUIET)
    assert_level(peaks[6:13], LOUD)


async def test_channels_of_opposite_phase_are_heard(
    make_media: MakeMedia, publish: Publish, tmp_path: Path
) -> None:
    tone = f"{LOUD}*sin(2*PI*440*t)"
    sound = f"aevalsrc='{tone}|-{tone}':d=4:s=48000"
    options = ("-c:v", "libx264", "-c:a", "aac")
    source = make_media("phase.mp4", *lavfi("testsrc2=s=160x90:r=10:d=4", sound), *options)
    folder = (await publish(source)).folder

    async def read(name: str) -> bytes:
        return (folder / "audio" / name).read_bytes()

    files = RenditionFiles(playlist=playlist(folder, "audio"), read=read)
    sink = FolderSink(tmp_path / "sink")
    await make_waveform(files, duration_s=4, sink=sink, work_dir=tmp_path)
    assert_level((sink.folder / WAVEFORM_NAME).read_bytes()[1:39], LOUD)
