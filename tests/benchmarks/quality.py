"""Bitrate, encode time and VMAF of every rung at several settings: what ladder.py is chosen by.

    python tests/benchmarks/quality.py [SOURCE] [--crf 21 23 25] [--presets veryfast fast]

Encodes an excerpt of the source with the portal's own arguments, one rung at a time, and compares
it with the excerpt. Three scores, all by vmaf_v0.6.1, because what matters differs by rung:
`screen` is the picture enlarged (bicubic) to the source's size on a television, for the top
rungs; `phone` is the same seen on a phone, for the others; `own` leaves the loss by scaling out
and shows the encoder's alone. Without a source it makes a clip, which is good for trying the
command and no ground for choosing settings: give it real footage. SDR at a constant frame rate.
"""

import argparse
import asyncio
import itertools
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from encoding_runs import Cost, Scores, make_clip, run_ffmpeg, vmaf

from portal.transcoding.encoding.command import Encode, encode_arguments
from portal.transcoding.planning.ladder import Rung, plan_ladder
from portal.transcoding.probing.probe import probe

UNCAPPED_BPS = 200_000_000
SCREEN_SHORT_SIDE = 1080


@dataclass(frozen=True, slots=True)
class Setting:
    """What is varied."""

    preset: str
    crf: int
    is_capped: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What an encode with one setting came to."""

    setting: Setting
    bitrate_bps: float
    cpu_s: float
    shown: Scores
    own: Scores


def main() -> None:
    """Print a table for every rung, and a comparison of the presets if there are several."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        source = options.source or make_clip(Path(folder) / "made.mp4", seconds=12)
        excerpt = cut_excerpt(
            source, Path(folder) / "excerpt.mp4", from_s=options.start, seconds=options.seconds
        )
        tasks = [
            task
            for task in asyncio.run(_tasks(excerpt))
            if not options.rungs or task.rungs[0].name in options.rungs
        ]
        for task in tasks:
            _measure_rung(task, excerpt, Path(folder), options)


def _measure_rung(task: Encode, excerpt: Path, folder: Path, options: argparse.Namespace) -> None:
    [rung] = task.rungs
    print(f"\n{rung.name} {rung.width}x{rung.height}, cap {rung.max_bitrate_bps / 1000:.0f} kbit/s")
    print(f"{'preset':10} {'crf':>3} {'cap':>4} {'kbit/s':>7} {'CPU s':>6}", end="")
    print(f" {'screen':>7} {'phone':>6} {'own':>6}")
    base_s = _decode_cost(task, folder).cpu_s
    results = []
    caps = (True, False) if options.uncapped else (True,)
    for preset, crf, is_capped in itertools.product(options.presets, options.crf, caps):
        result = _measure(task, Setting(preset, crf, is_capped), excerpt, folder)
        results.append(replace(result, cpu_s=result.cpu_s - base_s))
        _print_row(results[-1])
    if len(options.presets) > 1 and len(options.crf) > 1:
        _compare_presets(rung, results)


def _measure(task: Encode, setting: Setting, excerpt: Path, folder: Path) -> Result:
    [rung] = task.rungs
    cap_bps = rung.max_bitrate_bps if setting.is_capped else UNCAPPED_BPS
    varied = replace(rung, crf=setting.crf, max_bitrate_bps=cap_bps)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        output = Path(name) / rung.name
        output.mkdir()
        arguments = with_preset(encode_arguments(replace(task, rungs=(varied,))), setting.preset)
        cost = run_ffmpeg(arguments, cwd=Path(name))
        size_bytes = sum(path.stat().st_size for path in output.glob("*.m4s"))
        playlist, own_size = output / "playlist.m3u8", (rung.width, rung.height)
        shown = vmaf(playlist, excerpt, size=_screen_size(task))
        is_full = own_size == _screen_size(task)
        return Result(
            setting=setting,
            bitrate_bps=size_bytes * 8 / task.probe.duration_s,
            cpu_s=cost.cpu_s,
            shown=shown,
            own=shown if is_full else vmaf(playlist, excerpt, size=own_size),
        )


def _print_row(result: Result) -> None:
    setting = result.setting
    print(
        f"{setting.preset:10} {setting.crf:3} {'yes' if setting.is_capped else 'no':>4}"
        f" {result.bitrate_bps / 1000:7.0f} {result.cpu_s:6.1f}"
        f" {result.shown.screen:7.1f} {result.shown.phone:6.1f} {result.own.screen:6.1f}",
        flush=True,
    )


def _compare_presets(rung: Rung, results: Sequence[Result]) -> None:
    """Bitrate and time of each preset where it reaches what the first one does in the middle.

    Without caps where those were measured, because a cap levels what it cuts.
    """
    uncapped = [each for each in results if not each.setting.is_capped] or results
    groups = {
        preset: [each for each in uncapped if each.setting.preset == preset]
        for preset in dict.fromkeys(each.setting.preset for each in uncapped)
    }
    first = next(iter(groups.values()))
    aim = sorted(each.own.screen for each in first)[len(first) // 2]
    base_bps, base_s = _at_score(first, aim)
    print(f"{rung.name} at equal VMAF ({aim:.1f} own), against {next(iter(groups))}:")
    for preset, group in groups.items():
        bitrate_bps, cpu_s = _at_score(group, aim)
        print(f"  {preset:10} bitrate {bitrate_bps / base_bps:5.2f}   CPU {cpu_s / base_s:5.2f}")


def _at_score(results: Sequence[Result], score: float) -> tuple[float, float]:
    """Bitrate and CPU time where a curve crosses a score; its nearest stretch is prolonged."""
    points = sorted(results, key=lambda each: each.own.screen)
    upper = next((i for i, each in enumerate(points) if each.own.screen >= score), len(points) - 1)
    low, high = points[max(0, upper - 1)], points[max(1, upper)]
    gap = (high.own.screen - low.own.screen) or math.inf
    share = (score - low.own.screen) / gap
    log_rate = math.log(low.bitrate_bps) * (1 - share) + math.log(high.bitrate_bps) * share
    return math.exp(log_rate), low.cpu_s * (1 - share) + high.cpu_s * share


async def _tasks(excerpt: Path) -> list[Encode]:
    """The portal's task of encoding the excerpt, for each rung alone, lowest first."""
    found = await probe(str(excerpt))
    return [
        Encode(
            source_url=str(excerpt),
            probe=found,
            rungs=(replace(rung, copied=False),),
            audio=(),
            subtitles=(),
            starts_s=None,
        )
        for rung in plan_ladder(found)
    ]


def _decode_cost(task: Encode, folder: Path) -> Cost:
    """What an encode takes without the encoder: reading the excerpt and scaling it."""
    arguments = encode_arguments(task)
    before_codec = arguments[: arguments.index("-c:v")]
    return run_ffmpeg((*before_codec, "-f", "null", "-"), cwd=folder)


def _screen_size(task: Encode) -> tuple[int, int]:
    video = task.probe.video
    shrink = min(1.0, SCREEN_SHORT_SIDE / min(video.width, video.height))
    return round(video.width * shrink) // 2 * 2, round(video.height * shrink) // 2 * 2


def with_preset(arguments: Sequence[str], preset: str) -> tuple[str, ...]:
    """The same arguments with every x264 preset replaced."""
    return tuple(
        preset if before == "-preset" else argument
        for before, argument in itertools.pairwise(("", *arguments))
    )


def cut_excerpt(source: Path, path: Path, *, from_s: float, seconds: float) -> Path:
    """A lossless excerpt that begins at zero, so that frames can be compared one by one.

    It is tagged as what is delivered: no run converts colours, which would be compared, too.
    """
    colours = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709")
    run_ffmpeg(
        (
            *("-ss", str(from_s), "-i", str(source.absolute()), "-t", str(seconds)),
            *("-map", "0:v:0", "-c:v", "libx264", "-preset", "ultrafast", "-qp", "0"),
            *("-pix_fmt", "yuv420p", "-color_range", "tv", *colours, str(path)),
        )
    )
    return path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("source", nargs="?", type=Path, help="real footage; else a made clip")
    parser.add_argument("--start", type=float, default=0, help="where the excerpt begins, s")
    parser.add_argument("--seconds", type=float, default=12, help="how long the excerpt is")
    parser.add_argument("--crf", type=int, nargs="+", default=[21, 23, 25])
    parser.add_argument("--presets", nargs="+", default=["veryfast"])
    parser.add_argument("--rungs", nargs="+", help="only these, such as 360p")
    parser.add_argument("--uncapped", action="store_true", help="each also without its rate cap")
    return parser.parse_args()


if __name__ == "__main__":
    main()
