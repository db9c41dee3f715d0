"""Sound of a cut film is that of the whole film, from cut to cut, and silent elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from decoded_media import open_media
from media_recipes import COPYABLE, lavfi
from numpy.typing import NDArray
from published import Published, Studio, playlist

from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sound_pieces import SoundPiece, cut_sound
from portal.transcoding.packaging.cmaf import inspect_segment
from portal.transcoding.planning.kept import Kept

Samples = NDArray[np.float64]
SECONDS = 20
# Encoded sound ends with a frame that may be later than the picture.
END_S = SECONDS + 0.1
LEVEL = 0.4
# Sound is at most half a frame of 1024 samples away from a cut, and fades over 5 ms.
FADED_S = 0.0107 + 0.005
# Encoding some frames again changes the sound by this much.
NOISE = 0.03


async def publish_tone(studio: Studio, rate_hz: int) -> Published:
    """Publish a rising tone; sound at 44.1 kHz is copied, and other sound is encoded at 48 kHz."""
    picture = f"testsrc2=s=160x90:r=10:d={SECONDS}"
    tone = f"aevalsrc='{LEVEL}*sin(2*PI*(200*t+40*t*t))':d={SECONDS}:s={rate_hz}"
    codecs = ("-c:v", "libx264", *COPYABLE, "-c:a", "aac", "-ar", str(rate_hz))
    return await studio.publish(studio.make("tone.mp4", *lavfi(picture, tone), *codecs))


class Stored:
    """Stored sound of a film; `names` are the files that were read."""

    def __init__(self, published: Published) -> None:
        self.folder = published.folder / "audio"
        self.playlist = playlist(published.folder, "audio")
        self.names: list[str] = []

    async def read(self, name: str) -> bytes:
        self.names.append(name)
        return (self.folder / name).read_bytes()

    def whole(self) -> tuple[Samples, int]:
        names = ("init.mp4", *(segment.uri for segment in self.playlist.segments))
        return decode(b"".join((self.folder / name).read_bytes() for name in names))

    async def cut(self, keep: Kept, folder: Path) -> list[list[int | SoundPiece]]:
        files = RenditionFiles(playlist=self.playlist, read=self.read)
        return await cut_sound(files, keep, bitrate_bps=80_000, folder=folder, timeout_s=60)

    def stream(self, intervals: Sequence[Sequence[int | SoundPiece]]) -> bytes:
        """Return what a player decodes, in which media times are those of the whole film."""
        data = (self.folder / "init.mp4").read_bytes()
        for entry in (entry for entries in intervals for entry in entries):
            if isinstance(entry, SoundPiece):
                data += entry.data
            else:
                data += (self.folder / self.playlist.segments[entry].uri).read_bytes()
        return data


def decode(stream: bytes) -> tuple[Samples, int]:
    """Return the first channel by the times of the film, silent where there is none, and its rate.

    Frames that overlap replace those before them, as in players.
    """
    with open_media(stream) as container:
        frames = list(container.decode(audio=0))
    rate_hz = frames[0].sample_rate
    samples = np.zeros((SECONDS + 2) * rate_hz)
    for frame in frames:
        at = round(frame.time * rate_hz)
        values = frame.to_ndarray()[0][max(0, -at) :]
        samples[max(0, at) : max(0, at) + len(values)] = values
    return samples, rate_hz


@pytest.mark.parametrize(("source_hz", "stored_hz"), [(32_000, 48_000), (44_100, 44_100)])
async def test_kept_sound_is_the_same_and_fades_at_cuts(
    studio: Studio, tmp_path: Path, source_hz: int, stored_hz: int
) -> None:
    stored = Stored(await publish_tone(studio, source_hz))
    keep = Kept.of([(1.234, 6.777), (6.9, 7.5), (7.611, 8.3), (12.05, END_S)])
    intervals = await stored.cut(keep, tmp_path)

    whole, rate_hz = stored.whole()
    cut, _ = decode(stored.stream(intervals))
    assert rate_hz == stored_hz
    removed_from_s = 0.0
    for start_s, end_s in keep.intervals:
        is_last = end_s == END_S
        begin_s = start_s + FADED_S
        finish_s = SECONDS if is_last else end_s - FADED_S
        inside = slice(round(begin_s * rate_hz), round(finish_s * rate_hz))
        assert np.abs(cut[inside] - whole[inside]).max() < NOISE
        assert np.abs(whole[inside]).max() > 0.9 * LEVEL
        removed = slice(round(removed_from_s * rate_hz), round(start_s * rate_hz))
        assert np.abs(cut[removed]).max() < NOISE
        for edge_s in (start_s, *(() if is_last else (end_s - 0.001,))):
            edge = slice(round(edge_s * rate_hz), round((edge_s + 0.001) * rate_hz))
            assert np.abs(cut[edge]).max() < 0.2 * LEVEL + NOISE
        removed_from_s = end_s


async def test_sound_is_continuous_over_joins_and_read_at_the_ends_alone(
    studio: Studio, tmp_path: Path
) -> None:
    stored = Stored(await publish_tone(studio, 32_000))
    intervals = await stored.cut(Kept.of([(0, 9.1), (10.3, END_S)]), tmp_path)

    segments = stored.playlist.segments
    assert set(stored.names) == {"init.mp4", *(segments[number].uri for number in (0, 2))}
    reused = [
        [entry for entry in entries if not isinstance(entry, SoundPiece)] for entries in intervals
    ]
    assert reused == [[0, 1], list(range(3, len(segments)))]
    frames = []
    with open_media(stored.stream(intervals)) as container:
        frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    steps = np.abs(np.diff(np.concatenate(frames)))
    assert steps.max() < 1.1 * np.abs(np.diff(stored.whole()[0])).max()
    [*_, last] = intervals[0]
    assert isinstance(last, SoundPiece)
    listed_s = segments[0].duration_s + segments[1].duration_s + last.duration_s
    assert listed_s == pytest.approx(9.1)
    assert last.duration_s == pytest.approx(
        inspect_segment(last.data).sample_count * 1024 / 48_000, abs=0.043
    )


async def test_intervals_after_the_end_of_sound_are_silent(studio: Studio, tmp_path: Path) -> None:
    stored = Stored(await publish_tone(studio, 32_000))
    stored.playlist = replace(stored.playlist, segments=stored.playlist.segments[:3])
    keep = Kept.of([(5, 5.5), (11.9, 12.7), (12.8, 13.3)])
    intervals = await stored.cut(keep, tmp_path)

    lengths_s = [
        sum(entry.duration_s for entry in entries if isinstance(entry, SoundPiece))
        for entries in intervals
    ]
    assert lengths_s == pytest.approx([0.5, 0.8, 0.5])
    cut, rate_hz = decode(stored.stream(intervals))
    assert np.abs(cut[round(11.93 * rate_hz) : round(12.1 * rate_hz)]).max() > 0.9 * LEVEL
    assert np.abs(cut[round(12.15 * rate_hz) :]).max() < NOISE

    [[silence]] = await stored.cut(Kept.of([(14, 14.5)]), tmp_path)
    assert np.abs(decode(stored.stream([[silence]]))[0]).max() < NOISE
