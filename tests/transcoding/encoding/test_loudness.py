"""The loudness of sound is measured in the decode that makes the waveform."""

from pathlib import Path

import pytest
from media_recipes import lavfi
from published import FolderSink, Studio

from portal.transcoding.encoding.loudness import Loudness
from portal.transcoding.encoding.sound_samples import make_waveform

TARGET_LUFS = -16.0
# Encoders raise the peak at which a tone begins.
OVERSHOOT_DB = 1.5
COPIED = ("-c:a", "aac", "-b:a", "160k")
ENCODED = ("-c:a", "libopus", "-b:a", "160k")


def tone(level: str, *, is_mono: bool = False) -> str:
    """Return a tone, whose loudness on two loudspeakers is its level. That may change in time."""
    wave = f"{level}*sin(2*PI*997*t)"
    return f"aevalsrc='{wave if is_mono else f'{wave}|{wave}'}':s=48000"


async def measure(
    studio: Studio,
    sound: str,
    folder: Path,
    *,
    codec: tuple[str, ...] = COPIED,
    length_s: float = 7,
) -> Loudness | None:
    inputs = lavfi("testsrc2=s=160x90:r=10", sound)
    options = ("-t", str(length_s), "-c:v", "libx264", *codec)
    files = (await studio.publish(studio.make("tone.mp4", *inputs, *options))).files("audio")
    sink = FolderSink(folder)
    return await make_waveform(files, duration_s=length_s, sink=sink, work_dir=folder)


@pytest.mark.parametrize(
    ("sound", "codec", "lufs", "peak_dbtp", "gain_db"),
    [
        pytest.param(tone("0.1"), COPIED, -20, -20, 4, id="quiet"),
        pytest.param(tone("0.1", is_mono=True), COPIED, -20, -20, 4, id="mono on two loudspeakers"),
        pytest.param(tone("0.5"), ENCODED, -6, -6, -10, id="loud"),
        pytest.param(tone("0.01"), ENCODED, -40, -40, 12, id="12 dB at most"),
    ],
)
async def test_gain_leads_to_the_target_within_its_limits(
    studio: Studio,
    tmp_path: Path,
    sound: str,
    codec: tuple[str, ...],
    lufs: float,
    peak_dbtp: float,
    gain_db: float,
) -> None:
    loudness = await measure(studio, sound, tmp_path, codec=codec)
    assert loudness is not None
    assert loudness.integrated_lufs == pytest.approx(lufs, abs=0.5)
    assert loudness.true_peak_dbtp == pytest.approx(peak_dbtp, abs=OVERSHOOT_DB)
    assert loudness.gain_db(TARGET_LUFS) == pytest.approx(gain_db, abs=0.5)


async def test_gain_keeps_peaks_at_most_at_their_limit(studio: Studio, tmp_path: Path) -> None:
    loudness = await measure(studio, tone("if(between(t,3,3.01),0.7,0.05)"), tmp_path)
    assert loudness is not None
    gain_db = loudness.gain_db(TARGET_LUFS)
    assert 0 < gain_db < TARGET_LUFS - loudness.integrated_lufs
    assert loudness.true_peak_dbtp + gain_db == pytest.approx(-1, abs=0.01)


@pytest.mark.parametrize(("level", "length_s"), [("0", 7), ("0.5", 0.3)])
async def test_silence_and_very_short_sound_are_not_measured(
    studio: Studio, tmp_path: Path, level: str, length_s: float
) -> None:
    assert await measure(studio, tone(level), tmp_path, length_s=length_s) is None


@pytest.mark.parametrize(
    ("integrated_lufs", "true_peak_dbtp", "gain_db"),
    [(-20, 0.3, 0), (-15, 0.3, -1), (-16, -9, 0), (-40, -1.5, 0.5), (-20.04, -20, 4)],
)
def test_sound_whose_peaks_are_high_is_not_raised(
    integrated_lufs: float, true_peak_dbtp: float, gain_db: float
) -> None:
    loudness = Loudness(
        integrated_lufs=integrated_lufs, loudness_range_lu=3, true_peak_dbtp=true_peak_dbtp
    )
    assert loudness.gain_db(TARGET_LUFS) == gain_db
