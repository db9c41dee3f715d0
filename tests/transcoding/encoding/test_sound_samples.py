"""The waveform shows the level of a film's sound over the length of the film."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from media_recipes import lavfi
from published import FolderSink, Studio

from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME, make_waveform

QUIET = 0.1
LOUD = 0.5


def assert_level(peaks: Sequence[int], level: float) -> None:
    assert list(peaks) == pytest.approx([level * 255] * len(peaks), abs=8)


async def test_waveform_has_ten_peaks_a_second_over_the_length_of_the_film(
    studio: Studio, sink: FolderSink, tmp_path: Path
) -> None:
    """The channels are of opposite phase, so that their mean would be silent."""
    # The second segment begins after 4 s.
    tone = f"if(between(t,4.5,5.5),{LOUD},{QUIET})*sin(2*PI*440*t)"
    sound = f"aevalsrc='{tone}|-{tone}':d=7:s=48000"
    options = ("-c:v", "libx264", "-c:a", "aac")
    source = studio.make("levels.mp4", *lavfi("testsrc2=s=160x90:r=10:d=7", sound), *options)
    whole = (await studio.publish(source)).files("audio")

    async def peaks_of(files: RenditionFiles, duration_s: float) -> bytes:
        await make_waveform(files, duration_s=duration_s, sink=sink, work_dir=tmp_path)
        return (sink.folder / WAVEFORM_NAME).read_bytes()

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
