"""Decode the samples of a stored sound rendition, make its waveform, and measure its loudness.

The confined ffmpeg decodes the sound, which may be a copy of the untrusted source. The working
folder has room for the sound and its samples.
"""

import asyncio
import struct
from array import array
from itertools import pairwise
from math import ceil
from pathlib import Path

from portal.telemetry.tracing import span
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.continuous import copy_continuously
from portal.transcoding.encoding.loudness import MEASURE, Loudness
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sink import Sink, pass_folder, put_file
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging.cmaf import SegmentError

WAVEFORM_NAME = "waveform.bin"
_SOUND = "sound.mp4"
_SAMPLES = "samples.pcm"
_SAMPLE_BYTES = 2
_WAVEFORM_RATE_HZ = 8000
_PEAKS_PER_S = 10
# Ten for each second of two hours. Longer films have fewer for each second.
_MAX_PEAKS = 72_000
# Mix of the left and right channel to mono. One of them is shifted by a quarter of a period,
# because channels of opposite phase would cancel each other. The filter also delays its input, so
# the other channel passes through it, too. Mono sound counts as both channels.
_MIX = (
    "pan=stereo|FL=FL+FC|FR=FR+FC,channelsplit[left][right]"
    ";[left]aphaseshift=shift=0[plain];[right]aphaseshift=shift=0.5[shifted]"
    ";[plain][shifted]amerge,pan=mono|c0=0.7071*c0+0.7071*c1"
)
_IN_SYNC = "[0:a:0]aresample=async=1:first_pts=0"
_MEASURED_MIX = f"{_IN_SYNC},asplit[measured][mixed];[measured]{MEASURE},anullsink;[mixed]{_MIX}"
# Largest sample of 16 bits, and largest peak.
_FULL_SCALE = 32_767
_FULL_PEAK = 255


async def decode_sound(sound: RenditionFiles, folder: Path, *, rate_hz: int) -> Path:
    """Return a file in the folder with all samples of a film, mono with 16 bits.

    Raises TranscodeFailed, or whatever the rendition's reader raised.
    """
    await _decode(sound, folder, graph=f"{_IN_SYNC},{_MIX}", rate_hz=rate_hz)
    return folder / _SAMPLES


async def make_waveform(
    sound: RenditionFiles, *, duration_s: float, sink: Sink, work_dir: Path
) -> Loudness | None:
    """Put the waveform of a film of this length: peaks from 0 to 255, a byte each.

    They are the peaks of equal parts of the film. Returns the loudness of the sound, unless that is
    silent or very short. Raises TranscodeFailed, DiskFull, or whatever the rendition's reader or
    the sink raised.
    """
    with pass_folder(work_dir) as folder, span("waveform"):
        report = await _decode(sound, folder, graph=_MEASURED_MIX, rate_hz=_WAVEFORM_RATE_HZ)
        peaks = await asyncio.to_thread(_peaks, folder / _SAMPLES, duration_s)
        await put_file(sink, WAVEFORM_NAME, peaks)
    return Loudness.measured(report)


async def _decode(
    sound: RenditionFiles, folder: Path, *, graph: str, rate_hz: int
) -> ffmpeg.RunReport:
    """Write the samples of a film into the folder, and return ffmpeg's report."""
    source = folder / _SOUND
    try:
        await copy_continuously(sound, source, is_sound=True)
    except (SegmentError, struct.error) as exc:
        raise TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=str(exc)) from exc
    arguments = [*command.general_options(), *command.own_file(_SOUND)]
    arguments += ["-filter_complex", graph, *command.BARE]
    arguments += ["-ar", str(rate_hz), "-f", "s16le", _SAMPLES]
    timeout_s = ffmpeg.run_limit_s(sound.playlist.duration_s)
    report = await ffmpeg.run(arguments, timeout_s=timeout_s, cwd=folder)
    await asyncio.to_thread(source.unlink)
    return report


def _peaks(samples: Path, duration_s: float) -> bytes:
    """Return the peaks of a film; those after its sound are 0."""
    count = max(1, min(ceil(duration_s * _PEAKS_PER_S), _MAX_PEAKS))
    bounds = [round(place * duration_s / count * _WAVEFORM_RATE_HZ) for place in range(count + 1)]
    peaks = bytearray()
    with samples.open("rb") as file:
        for start, end in pairwise(bounds):
            part = array("h", file.read((end - start) * _SAMPLE_BYTES))
            peak = max(max(part, default=0), -min(part, default=0))
            # The lowest sample is below the negative of the highest one.
            peaks.append(min(peak * _FULL_PEAK // _FULL_SCALE, _FULL_PEAK))
    return bytes(peaks)
