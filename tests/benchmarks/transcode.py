"""Time from the creation of a video to ready and to its full ladder, as ratios to a floor.

    python tests/benchmarks/transcode.py [--source FILE] [--mode encoded copied] [--rounds 1]

Runs, on the same file and machine with equal preset and quality: the portal as users run it, from
`POST /api/videos` on; the floor, one hand-written ffmpeg; and the flows of PeerTube and MediaCMS
(see peers.py for what those are given). In mode `encoded` the source's stream can't be delivered
as it is, in mode `copied` it can; a source of the other kind is encoded once beforehand.
Processor time is of all processes, storage and database included. VMAF of every rendition shows
how equal the qualities are. Choose a quiet machine: what else runs there takes from all, but not
from all alike. Sources of 60 s to five minutes.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encoding_runs import make_clip, run_ffmpeg, vmaf
from peers import Outcome, Task, floor, mediacms, peertube
from portal_flow import portal

from portal.transcoding.planning.ladder import PRESET, Rung, plan_renditions
from portal.transcoding.probing.probe import probe

MADE_S = 66
VMAF_S = 20
VMAF_TOLERANCE = 1.0
# Key frames, and a rate between the usual and what the portal still delivers as it is.
SOURCES = {
    "encoded": ("-crf", "18", "-force_key_frames", "expr:gte(t,n_forced*10)", "-g", "999"),
    "copied": ("-crf", "20", "-maxrate", "8M", "-bufsize", "8M", "-g", "60"),
}


@dataclass(frozen=True, slots=True)
class Aim:
    """A ratio and what it is to be: at most, or at least when `is_minimum`."""

    name: str
    ratio: Callable[[Mapping[str, Outcome]], float]
    aims: Mapping[str, float]
    is_minimum: bool = False


AIMS = (
    Aim("ready / floor", lambda o: o["portal"].ready_s / o["floor"].full_s,
        {"encoded": 0.25, "copied": 0.05}),
    Aim("full ladder / floor", lambda o: o["portal"].full_s / o["floor"].full_s,
        {"encoded": 1.13, "copied": 0.60}),
    Aim("CPU / floor", lambda o: o["portal"].cpu_s / o["floor"].cpu_s,
        {"encoded": 1.15, "copied": 0.60}),
    Aim("PeerTube / portal", lambda o: o["PeerTube"].full_s / o["portal"].full_s,
        {"encoded": 1.8, "copied": 3.0}, is_minimum=True),
    Aim("MediaCMS / portal", lambda o: o["MediaCMS"].full_s / o["portal"].full_s,
        {"encoded": 1.8, "copied": 3.0}, is_minimum=True),
)  # fmt: skip


def main() -> None:
    """Run every flow in each mode and print the tables."""
    options = _options()
    for mode in options.mode:
        with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
            task = asyncio.run(_task(options.source, mode, Path(folder)))
            load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
            print(f"\n== top rung {mode}, {task.probe.duration_s:.0f} s, load {load}")
            outcomes = _outcomes(task, Path(folder), options.rounds)
            _print_outcomes(outcomes)
            _print_aims(outcomes, mode)
            _print_scores(task, {flow: runs[-1] for flow, runs in outcomes.items()})


def _outcomes(task: Task, folder: Path, rounds: int) -> dict[str, list[Outcome]]:
    """Every flow once a round, so that a change of the machine meets them all."""
    outcomes: dict[str, list[Outcome]] = {}
    flows = {"floor": floor, "portal": portal, "PeerTube": peertube, "MediaCMS": mediacms}
    for number in range(rounds):
        for name, flow in flows.items():
            print(f"round {number + 1}: {name} …", file=sys.stderr)
            place = folder / f"{name}-{number}"
            place.mkdir()
            outcomes.setdefault(name, []).append(flow(task, place))
    return outcomes


async def _task(source: Path | None, mode: str, folder: Path) -> Task:
    """The source of this mode with its ladder; made, or encoded anew, when it has to be."""
    file = (source or make_clip(folder / "made.mp4", seconds=MADE_S)).absolute()
    task = await _planned(file)
    if task.top.copied != (mode == "copied"):
        print(f"encoding a source whose top is {mode} …", file=sys.stderr)
        task = await _planned(_encoded(file, folder / f"{mode}.mp4", SOURCES[mode]))
    if task.top.copied != (mode == "copied"):
        sys.exit(f"no source could be made whose top rung is {mode}")
    return task


def _encoded(source: Path, path: Path, options: Sequence[str]) -> Path:
    video = ("-c:v", "libx264", "-preset", "fast", "-profile:v", "high", "-pix_fmt", "yuv420p")
    sound = ("-map", "0:a:0?", "-c:a", "aac", "-b:a", "160k")
    run_ffmpeg(("-i", str(source), "-map", "0:v:0", *video, *options, *sound, str(path)))
    return path


async def _planned(source: Path) -> Task:
    found = await probe(str(source))
    rungs = plan_renditions(found).video
    return Task(source=source, probe=found, rungs=rungs, preset=PRESET)


def _print_outcomes(outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    base = _median(outcomes["floor"])
    print(f"{'':10} {'ready s':>8} {'full s':>8} {'CPU s':>8} {'cores':>6}   to the floor")
    for name, runs in outcomes.items():
        run = _median(runs)
        print(
            f"{name:10} {run.ready_s:8.1f} {run.full_s:8.1f} {run.cpu_s:8.1f}"
            f" {run.cpu_s / run.full_s:6.2f}   ready {run.ready_s / base.full_s:5.2f}"
            f"   full {run.full_s / base.full_s:5.2f}   CPU {run.cpu_s / base.cpu_s:5.2f}"
        )


def _print_aims(outcomes: Mapping[str, Sequence[Outcome]], mode: str) -> None:
    medians = {name: _median(runs) for name, runs in outcomes.items()}
    for aim in AIMS:
        ratio, limit = aim.ratio(medians), aim.aims[mode]
        is_met = ratio >= limit if aim.is_minimum else ratio <= limit
        sign = ">=" if aim.is_minimum else "<="
        print(f"{aim.name:20} {ratio:5.2f}  aim {sign} {limit:4.2f}  {'' if is_met else 'MISSED'}")


def _median(runs: Sequence[Outcome]) -> Outcome:
    return Outcome(
        ready_s=statistics.median(run.ready_s for run in runs),
        full_s=statistics.median(run.full_s for run in runs),
        cpu_s=statistics.median(run.cpu_s for run in runs),
        renditions=runs[-1].renditions,
    )


def _print_scores(task: Task, outcomes: Mapping[str, Outcome]) -> None:
    """VMAF against the source, all enlarged to its size, of the first seconds."""
    print(f"\n{'VMAF':8}" + "".join(f"{flow:>10}" for flow in outcomes) + f"{'kbit/s':>10}")
    for rung in task.rungs:
        scores = {
            flow: vmaf(
                outcome.renditions[rung.name],
                task.source,
                size=(task.top.width, task.top.height),
                seconds=VMAF_S,
            ).screen
            for flow, outcome in outcomes.items()
        }
        size_bytes = outcomes["portal"].renditions[rung.name].stat().st_size
        rate_bps = size_bytes * 8 / task.probe.duration_s
        row = "".join(f"{score:10.1f}" for score in scores.values())
        print(f"{rung.name:8}{row}{rate_bps / 1000:10.0f}  {_verdict(rung, scores)}", flush=True)


def _verdict(rung: Rung, scores: Mapping[str, float]) -> str:
    if rung.copied:
        return "copied by the portal"
    apart = [
        flow for flow, score in scores.items() if abs(score - scores["portal"]) > VMAF_TOLERANCE
    ]
    return f"NOT EQUAL: {', '.join(apart)}" if apart else ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--source", type=Path, help="real footage; else a made clip")
    parser.add_argument("--mode", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--rounds", type=int, default=1, help="runs of every flow")
    return parser.parse_args()


if __name__ == "__main__":
    main()
