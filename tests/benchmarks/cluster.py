"""What many workers of one core bring to one film: the rules of sharing, simulated.

A worker that is idle looks every 2 s, and takes the later half of what is left of the longest run,
if half a minute is left for each. What encoding takes is what the ladder is planned by. Measured on
a machine with two cores: ffmpeg begins 0.1 s after a job is there and decodes a second of film
before what it is to make; 40 s of film are ready 0.3 s after their last segment; one core encodes
57 s of sound in a second.

    python tests/benchmarks/cluster.py
"""

from dataclasses import dataclass
from fractions import Fraction
from random import Random

import benchmark_portal  # noqa: F401  # finds the folder above

from portal.processing.runs import PART_S
from portal.transcoding.planning.ladder import plan_renditions
from portal.transcoding.probing.cuts import SEGMENT_S
from portal.transcoding.probing.facts import Probe, VideoTrack

STEP_S = 0.1
LOOK_S = 2.0
# From the job to the first frame, and until the rest of a run is known.
START_S, ESTIMATE_S = 1.5, 3.5
# What a pass takes after its last run, and how many more the sound of a second takes.
ASSEMBLY_S, SOUND_SHARE = 1.0, 1 / 57
PROCESSORS = 2
WORKERS, HOURS, HEIGHTS = (1, 8, 64, 256), (1, 3), (1080, 2160)
BITRATE_MBPS = {1080: 8, 2160: 30}
# A heartbeat: begin, lock, renewal, segments, commit.
STATEMENTS_PER_S = 5
VIDEOS_A_DAY, VIDEO_S = 100_000, 180
DAY_S = 24 * 3600


@dataclass
class Part:
    """A run: what is left of it, and when it begins to be made and is known to last."""

    left_s: float
    begins_s: float
    known_s: float


def main() -> None:
    print(
        f"{'film':12}{'workers':>8}{'seconds':>9}{'times':>7}{'PUT/s':>7}{'SQL/s':>7}{'Mbit/s':>8}"
    )
    for height in HEIGHTS:
        for hours in HOURS:
            passes, renditions = film(height, 3600.0 * hours)
            alone_s = make(passes, 1, height)
            for workers in WORKERS:
                taken_s = make(passes, workers, height)
                times = alone_s / taken_s
                puts = renditions * 3600 * hours / SEGMENT_S / taken_s
                mbps = len(passes) * 3600 * hours * BITRATE_MBPS[height] / taken_s
                name, statements = f"{hours} h {height}p", times * STATEMENTS_PER_S
                print(
                    f"{name:12}{workers:8}{taken_s:9.0f}{times:7.1f}"
                    f"{puts:7.0f}{statements:7.0f}{mbps:8.0f}"
                )
    passes, renditions = film(1080, VIDEO_S)
    cores = sum(passes) * VIDEOS_A_DAY / DAY_S
    puts = renditions * VIDEO_S / SEGMENT_S * VIDEOS_A_DAY / DAY_S
    print(
        f"{VIDEOS_A_DAY} videos of {VIDEO_S} s of 1080p a day: {cores:.0f} cores, "
        f"{puts:.0f} PUT/s, {cores * STATEMENTS_PER_S:.0f} statements a second"
    )


def film(height: int, duration_s: float) -> tuple[list[float], int]:
    """Seconds on one core of each pass over a film of HEVC, and how many renditions it has."""
    size = {"width": height * 16 // 9, "height": height}
    video = VideoTrack(
        index=0,
        codec="hevc",
        **size,
        coded_width=size["width"],
        coded_height=height,
        rotation=0,
        sar=Fraction(1),
        fps=Fraction(30),
        constant_rate=True,
        pix_fmt="yuv420p",
        interlaced=False,
        duration_s=duration_s,
        color_space=1,
        color_transfer=1,
        color_primaries=1,
        profile=None,
        level=None,
        has_alpha=False,
        start_s=0.0,
    )
    probe = Probe(
        duration_s=duration_s,
        size_bytes=0,
        readable_share=1.0,
        video=video,
        audio=(),
        subtitles=(),
    )
    plan = plan_renditions(probe)
    first = plan.first_pass()
    rest = [rung.name for rung in plan.video if rung.name not in first]
    passes = [PROCESSORS * plan.encode_s(names) for names in (first, rest) if names]
    passes[0] += duration_s * SOUND_SHARE
    return passes, len(plan.video)


def make(passes: list[float], workers: int, seed: int) -> float:
    """Seconds until all passes are made by so many workers."""
    rng, now_s = Random(seed), 0.0  # noqa: S311
    for work_s in passes:
        runs = [Part(work_s, now_s + START_S, now_s + START_S + ESTIMATE_S)]
        while runs:
            now_s += STEP_S
            for run in runs:
                if now_s >= run.begins_s:
                    run.left_s -= STEP_S
            runs = [run for run in runs if run.left_s > 0]
            known = [run for run in runs if now_s >= run.known_s]
            longest = max(known, key=lambda run: run.left_s, default=None)
            idle = workers - len(runs)
            is_seen = rng.random() < 1 - (1 - STEP_S / LOOK_S) ** idle
            if longest and longest.left_s >= 2 * PART_S and idle and is_seen:
                longest.left_s /= 2
                runs.append(Part(longest.left_s, now_s + START_S, now_s))
        now_s += ASSEMBLY_S
    return now_s


if __name__ == "__main__":
    main()
