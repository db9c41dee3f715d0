"""Passes that are killed: what is made again, and what the joins cost.

    python tests/benchmarks/continued.py [SOURCE] [--kills 10] [--seconds 60] [--ladder]

Makes the lowest rendition of a source, or all, in one go, and again in a pass that is ended at
random moments and gone on with each time. Tells for each end how many seconds of the source are
made again, and whether a pass's percentage fell; the processor time of all against the unbroken
pass; and how much VMAF the segment after each join loses. Without a source it makes a clip.
"""

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from encoding_runs import make_clip, run_ffmpeg, vmaf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "transcoding"))

from continued import Record
from published import FolderSink, Result, everything, joined, make_pass, playlist

from portal.transcoding.encoding.continuation import NotContinuable
from portal.transcoding.encoding.progress import Stage, share_done
from portal.transcoding.packaging.master import FinishedRendition
from portal.transcoding.planning.ladder import Plan

AIMS = {"vmaf_points": 1.0, "cpu": 1.03}


@dataclass
class Progress:
    """What one pass reports."""

    percents: list[float] = field(default_factory=list)

    async def __call__(self, stage: Stage, percent: float, seconds_left: float | None) -> None:
        self.percents.append(percent)

    @property
    def falls(self) -> bool:
        return any(a > b for a, b in pairwise(self.percents))


@dataclass(frozen=True)
class Run:
    """Passes over one source into one sink."""

    source: Path
    sink: FolderSink
    record: Record
    wanted: dict[str, Any]

    async def make(self, number: int, progress: Progress) -> Result:
        """Carry a pass out, after what those before it have left."""
        kept = self.record.kept(self.sink, f"{number}-") if self.record.whole() else None
        return await make_pass(
            self.source,
            sink=self.sink,
            on_made=self.record,
            on_progress=progress,
            kept=kept,
            **self.wanted,
        )

    async def end_after(self, number: int, seconds: float, duration_s: float) -> tuple[float, bool]:
        """End a pass; answers the seconds of the source that are lost, and if its percentage fell.

        Nothing is lost when it has not encoded anything yet.
        """
        progress = Progress()
        making = asyncio.create_task(self.make(number, progress))
        await asyncio.wait({making}, timeout=seconds)
        making.cancel()
        with suppress(asyncio.CancelledError, NotContinuable):
            await making
        encoded_s = share_done(max(progress.percents, default=0.0)) * duration_s
        made_s = 0.0
        if self.record.whole():
            rendition = next(iter(self.record.kept(self.sink, "").renditions.values()))
            made_s = float(rendition.time_s(rendition.segments[-1].facts.until_ticks))
        return max(0.0, encoded_s - made_s), progress.falls


def main() -> None:
    """Print one line for each figure, with its aim."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        source = options.source or make_clip(folder / "made.mp4", seconds=options.seconds)
        asyncio.run(_compare(source, folder, options))


async def _compare(source: Path, folder: Path, options: argparse.Namespace) -> None:
    choose = everything if options.ladder else _lowest
    wanted = {"may_copy": False, "choose": choose, "work_dir": folder}
    whole, parts = FolderSink(folder / "whole"), FolderSink(folder / "parts")
    began_at, began_cpu_s = time.monotonic(), _cpu_s()
    unbroken = await make_pass(source, sink=whole, **wanted)
    wall_s, unbroken_s = time.monotonic() - began_at, _cpu_s() - began_cpu_s
    began_cpu_s, chance = _cpu_s(), random.Random(options.seed)  # noqa: S311 - repeatable
    run = Run(source, parts, Record(), wanted)
    for number in range(1, options.kills + 1):
        after_s = chance.uniform(0, 2 * wall_s / options.kills)
        lost_s, falls = await run.end_after(number, after_s, unbroken.duration_s)
        fell = "fell" if falls else "never fell"
        print(f"ended after {after_s:5.1f} s: {lost_s:4.1f} s made again, percentage {fell}")
    await run.make(options.kills + 1, Progress())
    _tell(
        "processor time to that of an unbroken pass", (_cpu_s() - began_cpu_s) / unbroken_s, "cpu"
    )
    lost = _lost_at_joins(unbroken.renditions[0], source, whole.folder, parts.folder)
    _tell("most points of VMAF lost in the segment after a join", lost, "vmaf_points")


def _lowest(plan: Plan) -> list[str]:
    return [plan.video[0].name]


def _lost_at_joins(rendition: FinishedRendition, source: Path, whole: Path, parts: Path) -> float:
    """How much worse the first segment of a run is than in the unbroken pass, at most."""
    made, name = playlist(parts, rendition.name), rendition.name
    runs = [segment.uri.rpartition("-")[0] for segment in made.segments]
    joins = [number for number, (a, b) in enumerate(pairwise(runs), start=1) if a != b]
    size = (rendition.width or 0, rendition.height or 0)
    worst = 0.0
    for number in joins:
        start_s, length_s = made.starts_s[number], made.segments[number].duration_s
        reference = parts / "reference.mp4"
        cut = ("-ss", str(start_s), "-t", str(length_s), "-i", str(source), "-an")
        run_ffmpeg((*cut, "-c:v", "libx264", "-qp", "0", "-preset", "ultrafast", str(reference)))
        scores = []
        for folder in (whole, parts):
            segment = folder / "segment.mp4"
            segment.write_bytes(joined(folder, name, number))
            scores.append(vmaf(segment, reference, size=size).screen)
        print(f"join at {start_s:6.1f} s: VMAF {scores[1]:.1f}, unbroken {scores[0]:.1f}")
        worst = max(worst, scores[0] - scores[1])
    return worst


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tell(what: str, figure: float, aim: str) -> None:
    print(f"{what}: {figure:.2f} (aim: at most {AIMS[aim]:g})")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ladder", action="store_true", help="make all renditions")
    return parser.parse_args()


if __name__ == "__main__":
    main()
