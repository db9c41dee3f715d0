"""Simulation of many workers of one core that share one film.

An idle worker looks every second, and takes the next part of the film. Encoding takes as long as
the ladder's plan estimates. Measured on a machine with two cores: ffmpeg starts 0.1 s after its job
and decodes a second of film before its first frame; 40 s of film are ready 0.3 s after their last
segment; one core encodes 57 s of sound in a second.

    python tests/benchmarks/cluster.py
"""

from fractions import Fraction
from random import Random

import benchmark_portal  # noqa: F401  # makes the folder above importable

from portal.films.parts import PassState, part_length
from portal.transcoding.planning.ladder import plan_renditions
from portal.transcoding.probing.facts import Probe, VideoTrack
from portal.transcoding.probing.segment_bounds import SEGMENT_S

LOOK_S = 1.0
# From the job to the first frame.
START_S = 1.5
# Time of a pass after its last part.
ASSEMBLY_S = 1.0
# Time that a second of sound takes.
SOUND_SHARE = 1 / 57
PROCESSORS = 2
WORKERS = (1, 8, 64, 256)
HOURS = (1, 3)
HEIGHTS = (1080, 2160)
BITRATE_MBPS = {1080: 8, 2160: 30}
# Statements of a heartbeat: begin, lock, renewal, segments, commit.
STATEMENTS_PER_S = 5
VIDEOS_A_DAY = 100_000
VIDEO_S = 180
DAY_S = 24 * 3600


def main() -> None:
    print(
        f"{'film':12}{'workers':>8}{'seconds':>9}{'times':>7}{'PUT/s':>7}{'SQL/s':>7}{'Mbit/s':>8}"
    )
    for height in HEIGHTS:
        for hours in HOURS:
            passes, renditions = film(height, 3600.0 * hours)
            segment_count = round(3600 * hours / SEGMENT_S)
            alone_s = make(passes, segment_count, 1, height)
            for workers in WORKERS:
                taken_s = make(passes, segment_count, workers, height)
                times = alone_s / taken_s
                puts = renditions * 3600 * hours / SEGMENT_S / taken_s
                mbps = len(passes) * 3600 * hours * BITRATE_MBPS[height] / taken_s
                name = f"{hours} h {height}p"
                statements = times * STATEMENTS_PER_S
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
    """Return the seconds on one core of each pass over an HEVC film, and its renditions."""
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
    later = [rung.name for rung in plan.video if rung.name not in first]
    passes = [PROCESSORS * plan.encode_s(names) for names in (first, later) if names]
    passes[0] += duration_s * SOUND_SHARE
    return passes, len(plan.video)


def make(passes: list[float], segment_count: int, workers: int, seed: int) -> float:
    """Return the seconds until this number of workers has made all passes."""
    rng = Random(seed)  # noqa: S311
    now_s = 0.0
    for work_s in passes:
        segment_s = work_s / segment_count
        unclaimed = range(segment_count)
        # Times when the workers have made their parts. Helpers look at different times.
        busy_until_s = [
            now_s,
            *(now_s + START_S + rng.uniform(0, LOOK_S) for _ in range(workers - 1)),
        ]
        while unclaimed:
            now_s = min(busy_until_s)
            at_work_s = [until_s - now_s for until_s in busy_until_s if until_s > now_s]
            # Plans estimate the time on two cores.
            state = PassState(
                unclaimed,
                live_parts=len(at_work_s),
                claimed_count=round(sum(at_work_s) / segment_s),
                helper_failures=0,
                share_stored=0.0,
                worker_processes=workers,
            )
            length = part_length(state, segment_s / PROCESSORS)
            worker = busy_until_s.index(now_s)
            busy_until_s[worker] = now_s + START_S + length * segment_s
            unclaimed = unclaimed[length:]
        now_s = max(busy_until_s) + ASSEMBLY_S
    return now_s


if __name__ == "__main__":
    main()
