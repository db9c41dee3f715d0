"""Frame timing: what jitter costs in bytes, and how truly uneven times are kept.

    python tests/benchmarks/timing.py [SOURCE] [--seconds 10]

The first part makes two sources of the same frames, one with times that jitter by milliseconds
and one on an exact grid, encodes both with the portal's own arguments at several qualities, and
compares the bytes at equal VMAF: with frames moved to the grid, and with their own times as beside
a copied rendition. The second publishes a source of uneven frames that flashes and beeps at its
start and end, and tells the largest deviation of a frame's time, and how much the offset of sound
to picture changes. Without a source it makes a clip.
"""

import argparse
import asyncio
import io
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from encoding_runs import make_clip, run_ffmpeg, vmaf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "transcoding"))

from decoded_media import flashes_s, listen, look
from media_recipes import EXACT_TIMES, as_yuv, beeps, card, jittering, lavfi
from published import FolderSink, joined, make_pass

from portal.transcoding.encoding.command import Encode, encode_arguments
from portal.transcoding.planning.ladder import plan_ladder
from portal.transcoding.probing.probe import probe

JITTER_US = 6000
QUALITIES = (21, 23, 25)
UNCAPPED_BPS = 200_000_000
RATE = 30
UNEVEN_S = 60
AIMS = {"bytes": 1.02, "deviation_ms": 1.0, "offset_ms": 20.0}


@dataclass(frozen=True, slots=True)
class Point:
    """One quality of a rendition."""

    size_bytes: int
    score: float


def main() -> None:
    """Print one line for each figure, with its aim."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        source = options.source or make_clip(folder / "made.mp4", seconds=options.seconds)
        snapped, own = _cost_of_jitter(source, folder, options)
        _tell("bytes of jittering times to exact ones", snapped, "bytes")
        _tell("the same beside a copied rendition", own, "bytes")
        deviation_ms, offset_ms = asyncio.run(_uneven(folder))
        _tell("largest deviation of an uneven frame, ms", deviation_ms, "deviation_ms")
        _tell("largest change of sound to picture, ms", offset_ms, "offset_ms")


def _tell(what: str, value: float, aim: str) -> None:
    verdict = "" if value <= AIMS[aim] else " (missed)"
    print(f"{what:42} {value:7.3f}   aim {AIMS[aim]}{verdict}", flush=True)


def _cost_of_jitter(source: Path, folder: Path, options: argparse.Namespace) -> tuple[float, float]:
    """Bytes at equal scores, as ratios to the exact source's: snapped, and with own times."""
    exact = _with_times(source, folder / "exact.mp4", "null", options)
    uneven = _with_times(source, folder / "jitter.mp4", jittering("null", JITTER_US), options)
    curve, snapped, own = (
        [_encode(path, exact, crf, folder, keeps_times=keeps) for crf in QUALITIES]
        for path, keeps in ((exact, False), (uneven, False), (uneven, True))
    )
    return _ratio(snapped, curve), _ratio(own, curve)


def _ratio(points: Sequence[Point], base: Sequence[Point]) -> float:
    """The mean over qualities, in logarithms."""
    logs = [math.log(_bytes_at(points, each.score) / each.size_bytes) for each in base]
    return math.exp(sum(logs) / len(logs))


def _with_times(source: Path, path: Path, times: str, options: argparse.Namespace) -> Path:
    """The same frames, without loss, at even times and then at others."""
    even = f"settb=1/{RATE},setpts=N,format=yuv420p"
    run_ffmpeg(
        (
            *("-ss", str(options.start), "-t", str(options.seconds), "-i", str(source.absolute())),
            *("-map", "0:v:0", "-vf", f"{even},{times}", *EXACT_TIMES),
            *("-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", str(path)),
        )
    )
    return path


def _encode(source: Path, reference: Path, crf: int, folder: Path, *, keeps_times: bool) -> Point:
    """The top rendition, uncapped."""
    found = asyncio.run(probe(str(source)))
    rung = replace(plan_ladder(found)[-1], copied=False, crf=crf, max_bitrate_bps=UNCAPPED_BPS)
    task = Encode(
        source_url=str(source),
        probe=found,
        rungs=(rung,),
        audio=(),
        subtitles=(),
        storyboard=None,
        starts_s=None,
        keeps_times=keeps_times,
    )
    with tempfile.TemporaryDirectory(dir=folder) as name:
        output = Path(name) / rung.name
        output.mkdir()
        run_ffmpeg(encode_arguments(task), cwd=Path(name))
        size_bytes = sum(path.stat().st_size for path in output.glob("*.m4s"))
        playlist, size = output / "playlist.m3u8", (rung.width, rung.height)
        score = vmaf(playlist, reference, size=size, times=f"settb=1/{RATE},setpts=N").screen
    return Point(size_bytes, score)


def _bytes_at(points: Sequence[Point], score: float) -> float:
    """Where a curve crosses a score; its nearest stretch is prolonged."""
    rising = sorted(points, key=lambda point: point.score)
    upper = next((i for i, point in enumerate(rising) if point.score >= score), len(rising) - 1)
    low, high = rising[max(0, upper - 1)], rising[max(1, upper)]
    share = (score - low.score) / ((high.score - low.score) or math.inf)
    return math.exp(math.log(low.size_bytes) * (1 - share) + math.log(high.size_bytes) * share)


async def _uneven(folder: Path) -> tuple[float, float]:
    """In milliseconds, over all frames; and from the first to the last flash and beep."""
    flashes = (0.5, UNEVEN_S - 2.0)
    source = folder / "uneven.mp4"
    picture = card(size="640x360", rate="240", duration_s=UNEVEN_S, flashes_s=flashes, flash_s=0.5)
    # Between 15 and 60 frames a second, each at a time of its own, and every frame of a flash.
    chosen = "select='eq(n,0)+gte(t-prev_selected_t,0.0165+0.045*mod(n*7919,1000)/1000)'"
    run_ffmpeg(
        (
            *lavfi(picture, beeps(duration_s=UNEVEN_S, at_s=flashes)),
            *("-vf", jittering(f"{chosen},{as_yuv('yuv422p')}", 900), *EXACT_TIMES),
            *("-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-c:a", "aac", str(source)),
        )
    )
    sink = FolderSink(folder / "sink")
    result = await make_pass(source, sink=sink, work_dir=folder / "work")
    before, before_s = look(source), listen(source).onsets_s()
    after_s = listen(io.BytesIO(joined(sink.folder, result.audio[0].name))).onsets_s()
    deviations_s, offsets_s = [], []
    for rendition in result.renditions:
        after = look(io.BytesIO(joined(sink.folder, rendition.name)))
        pairs = zip(before, after, strict=True)
        deviations_s += [abs(a.time_s - b.time_s) for a, b in pairs]
        seen = zip(flashes_s(before), before_s, flashes_s(after), after_s, strict=True)
        offsets_s += [abs((c - d) - (a - b)) for a, b, c, d in seen]
    return max(deviations_s) * 1000, max(offsets_s) * 1000


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("source", nargs="?", type=Path, help="real footage; else a made clip")
    parser.add_argument("--start", type=float, default=0, help="where the excerpt begins, s")
    parser.add_argument("--seconds", type=float, default=10, help="how long the excerpt is")
    return parser.parse_args()


if __name__ == "__main__":
    main()
