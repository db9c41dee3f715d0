"""Time from the creation of a video to ready and to its full ladder, as ratios to a floor.

    python tests/benchmarks/transcode.py [--source FILE] [--mode encoded copied] [--rounds 1]

Runs, on the same file and machine with equal preset and quality: the portal as users run it, from
`POST /api/videos` on; the floor, one hand-written ffmpeg; and the flows of PeerTube and MediaCMS
(see peers.py). In mode `encoded` the source's stream can't be copied, in mode `copied` it can; a
source of the other kind is encoded once beforehand. Processor time is that of all processes,
including storage and database. The VMAF of every rendition shows that the qualities are equal.
Use an idle machine, because other work does not slow all flows equally, and sources of 60 s to
five minutes.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from urllib.parse import urljoin

import aiohttp
import psutil
from benchmark_portal import measured_portal
from peers import Outcome, Task, floor, mediacms, peertube, run_ffmpeg
from running_portal import call, create, final_status, make_video, read, upload

from portal.transcoding.planning.ladder import plan_renditions
from portal.transcoding.probing.probe import SourceLimits, examine, judge

MADE_S = 66
VMAF_S = 20
# Key frames and rates of sources that the portal has to encode, or can copy.
SOURCES = {
    "encoded": ("-crf", "18", "-force_key_frames", "expr:gte(t,n_forced*12)", "-g", "999"),
    "copied": ("-crf", "20", "-maxrate", "8M", "-bufsize", "8M", "-g", "60"),
}


# Interval of polls until the video is ready.
POLL_S = 0.1
# Interval until all renditions are complete; longer, because the processor time of polls counts.
COMPLETE_POLL_S = 0.5
# Time limit of a benchmark that hangs.
LIMIT_S = 3600
# Without this ffmpeg would convert colours between a tagged and an untagged picture.
UNTAGGED = "setparams=colorspace=unknown:color_primaries=unknown:color_trc=unknown:range=unknown"

# Ratios and their aims by mode: a maximum for the portal, a minimum for the peers.
Ratio = Callable[[Mapping[str, Outcome]], float]
AIMS: tuple[tuple[str, Ratio, Mapping[str, float]], ...] = (
    ("ready / floor", lambda o: o["portal"].ready_s / o["floor"].full_s,
        {"encoded": 0.25, "copied": 0.05}),
    ("full ladder / floor", lambda o: o["portal"].full_s / o["floor"].full_s,
        {"encoded": 1.12, "copied": 0.62}),
    ("CPU / floor", lambda o: o["portal"].cpu_s / o["floor"].cpu_s,
        {"encoded": 1.10, "copied": 0.62}),
    ("PeerTube / portal", lambda o: o["PeerTube"].full_s / o["portal"].full_s,
        {"encoded": 1.5, "copied": 3.0}),
    ("MediaCMS / portal", lambda o: o["MediaCMS"].full_s / o["portal"].full_s,
        {"encoded": 1.5, "copied": 3.0}),
)  # fmt: skip


def main() -> None:
    """Run every flow in each mode and print the tables."""
    options = _options()
    for mode in options.mode:
        with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
            task = _task(options.source, mode, Path(folder))
            load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
            print(f"\n== top rung {mode}, {task.probe.duration_s:.0f} s, load {load}")
            outcomes = _outcomes(task, Path(folder), options.rounds)
            _print_times(outcomes, mode)
            _print_scores(task, outcomes)


def _outcomes(task: Task, folder: Path, rounds: int) -> dict[str, Outcome]:
    """Return medians; every flow runs once a round, so that disturbances affect all flows."""
    flows = {"floor": floor, "portal": portal, "PeerTube": peertube, "MediaCMS": mediacms}
    outcomes: dict[str, list[Outcome]] = {name: [] for name in flows}
    for number in range(rounds):
        for name, flow in flows.items():
            print(f"round {number + 1}: {name} …", file=sys.stderr)
            place = folder / f"{name}-{number}"
            place.mkdir()
            outcomes[name].append(flow(task, place))
    return {name: _median(runs) for name, runs in outcomes.items()}


def _task(source: Path | None, mode: str, folder: Path) -> Task:
    """Return a source of this mode with its ladder, encoded for the mode if necessary."""
    file = source.absolute() if source else _made_clip(folder / "made.mp4")
    task = _planned(file)
    if task.top.copied != (mode == "copied"):
        print(f"encoding a source whose top is {mode} …", file=sys.stderr)
        video = ("-c:v", "libx264", "-preset", "fast", "-profile:v", "high", "-pix_fmt", "yuv420p")
        sound = ("-map", "0:a:0?", "-c:a", "aac", "-b:a", "160k")
        encoded = folder / f"{mode}.mp4"
        run_ffmpeg("-i", str(file), "-map", "0:v:0", *video, *SOURCES[mode], *sound, str(encoded))
        task = _planned(encoded)
    if task.top.copied != (mode == "copied"):
        sys.exit(f"no source could be made whose top rung is {mode}")
    return task


def _planned(source: Path) -> Task:
    limits = SourceLimits()
    probe = judge(asyncio.run(examine(str(source), limits=limits)), limits)
    return Task(source=source, probe=probe, rungs=plan_renditions(probe).video)


def _print_times(outcomes: Mapping[str, Outcome], mode: str) -> None:
    base = outcomes["floor"]
    print(f"{'':10} {'ready s':>8} {'full s':>8} {'CPU s':>8} {'cores':>6}   to the floor")
    for name, run in outcomes.items():
        print(
            f"{name:10} {run.ready_s:8.1f} {run.full_s:8.1f} {run.cpu_s:8.1f}"
            f" {run.cpu_s / run.full_s:6.2f}   ready {run.ready_s / base.full_s:5.2f}"
            f"   full {run.full_s / base.full_s:5.2f}   CPU {run.cpu_s / base.cpu_s:5.2f}"
        )
    for name, ratio_of, aims in AIMS:
        ratio = ratio_of(outcomes)
        limit = aims[mode]
        sign = ">=" if name.endswith("/ portal") else "<="
        is_met = ratio >= limit if sign == ">=" else ratio <= limit
        print(f"{name:20} {ratio:5.2f}  aim {sign} {limit:4.2f}  {'' if is_met else 'MISSED'}")


def _median(runs: Sequence[Outcome]) -> Outcome:
    times = {
        name: statistics.median(getattr(run, name) for run in runs)
        for name in ("ready_s", "full_s", "cpu_s")
    }
    return Outcome(**times, renditions=runs[-1].renditions)


def _print_scores(task: Task, outcomes: Mapping[str, Outcome]) -> None:
    """Print the VMAF of the first seconds against the source, enlarged to its size."""
    print(f"\n{'VMAF':8}" + "".join(f"{flow:>10}" for flow in outcomes) + f"{'kbit/s':>10}")
    for rung in task.rungs:
        size = (task.top.width, task.top.height)
        files = {flow: outcome.renditions[rung.name] for flow, outcome in outcomes.items()}
        scores = {flow: vmaf(file, task.source, size=size) for flow, file in files.items()}
        rate_bps = files["portal"].stat().st_size * 8 / task.probe.duration_s
        apart = [flow for flow, score in scores.items() if abs(score - scores["portal"]) > 1]
        verdict = f"NOT EQUAL: {', '.join(apart)}" if apart else ""
        row = "".join(f"{score:10.1f}" for score in scores.values())
        remark = "copied by the portal" if rung.copied else verdict
        print(f"{rung.name:8}{row}{rate_bps / 1000:10.0f}  {remark}", flush=True)


def _made_clip(path: Path) -> Path:
    """Make a clip of 1080p30 with sound: a grainy zoom into a fractal."""
    zoom = "mandelbrot=size=1920x1080:rate=30:maxiter=300:end_pts=1500"
    run_ffmpeg(
        *("-f", "lavfi", "-i", "sine=frequency=300:sample_rate=48000"),
        *("-f", "lavfi", "-i", f"{zoom},format=yuv420p,noise=c0s=5:c0f=t,setsar=1"),
        *("-t", str(MADE_S), "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-g", "60"),
        *("-c:a", "aac", "-b:a", "128k", str(path)),
    )
    return path


def vmaf(distorted: Path, reference: Path, *, size: tuple[int, int]) -> float:
    """Return the VMAF of the first seconds of a video against its source, both scaled to `size`."""
    width, height = size
    same = f"{UNTAGGED},scale={width}:{height}:flags=bicubic,format=yuv420p,setpts=PTS-STARTPTS"
    excerpt = ("-t", str(VMAF_S))
    with tempfile.NamedTemporaryFile() as log:
        # Every fourth frame is scored; all are decoded, so that motion is measured correctly.
        measure = f"libvmaf=model=version=vmaf_v0.6.1:n_threads={os.cpu_count()}:n_subsample=4"
        run_ffmpeg(
            *(*excerpt, "-i", str(distorted), *excerpt, "-i", str(reference), "-filter_complex"),
            f"[0:v]{same}[made];[1:v]{same}[given];"
            f"[made][given]{measure}:log_fmt=json:log_path={log.name}",
            *("-f", "null", "-"),
        )
        score: float = json.load(log)["pooled_metrics"]["vmaf"]["mean"]
    return score


def portal(task: Task, folder: Path) -> Outcome:
    """Run the portal as users do, after a first small video.

    The clock starts when the creation of the video is sent, with the file uploaded, and stops for
    `ready` when the portal reports it, and for the full ladder when the master playlist has it all.
    """

    async def published() -> Outcome:
        async with measured_portal(folder / "services", worker=True) as portal:
            small = await create(portal.base_url, make_video(folder / "small.mp4"))
            if await final_status(portal.base_url, small["id"]) != "ready":
                sys.exit("the portal could not publish a small video")
            async with asyncio.timeout(LIMIT_S):
                return await _published(portal.base_url, task, folder)

    return asyncio.run(published())


async def _published(base_url: str, task: Task, folder: Path) -> Outcome:
    body = {"title": "Benchmark", "description": "", "categoryIds": [1], "tags": ""}
    body |= {"fileName": task.source.name, "key": await upload(base_url, task.source)}
    cpu_before_s = _descendants_cpu_s()
    started_at = monotonic()
    video_id = (await call("POST", f"{base_url}/api/videos", status=201, json=body))["id"]
    ready_s = 0.0
    while True:
        record = await call("GET", f"{base_url}/api/videos/{video_id}/transcode")
        videos = [row for row in record["renditions"] if row["kind"] == "video"]
        states = {row["state"] for row in videos}
        if record["stage"] == "failed" or "failed" in states:
            sys.exit(f"the portal failed: {record}")
        if record["stage"] == "ready":
            ready_s = ready_s or monotonic() - started_at
            if states == {"complete"}:
                break
        await asyncio.sleep(COMPLETE_POLL_S if ready_s else POLL_S)
    master_url = (await read(base_url, video_id))["playbackUrl"]
    variants: list[tuple[str, str]] = []
    async with aiohttp.ClientSession() as session:
        while len(variants) < len(task.rungs):
            async with session.get(master_url) as response:
                text = await response.text()
            variants = re.findall(r"^#EXT-X-STREAM-INF:.*RESOLUTION=(\d+x\d+).*\n(.+)$", text, re.M)
            await asyncio.sleep(POLL_S)
    full_s = monotonic() - started_at
    cpu_s = _descendants_cpu_s() - cpu_before_s
    files = {rung.name: folder / f"{rung.name}.mp4" for rung in task.rungs}
    for rung in task.rungs:
        url = urljoin(master_url, dict(variants)[f"{rung.width}x{rung.height}"])
        run_ffmpeg("-i", url, "-c", "copy", str(files[rung.name]))
    return Outcome(ready_s=ready_s, full_s=full_s, cpu_s=cpu_s, renditions=files)


def _descendants_cpu_s() -> float:
    """Return the processor time of all descendants, ended ones included."""
    total_s = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total_s += sum(child.cpu_times()[:4])  # user, system, and its ended children's
    return total_s


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--source", type=Path, help="real footage; else a made clip")
    parser.add_argument("--mode", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--rounds", type=int, default=1, help="runs of every flow")
    return parser.parse_args()


if __name__ == "__main__":
    main()
