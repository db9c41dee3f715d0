"""Gain of a second worker for one film, or cost of ending the first; each worker has a core.

The film must be one that can't be copied. One worker transcodes it, and then two do, or one that is
ended twice. Prints the seconds until it is ready and until all renditions are complete, and the
processor time of the workers and their children.

    python tests/benchmarks/shared.py FILM [--workers 2 | --ended 2]
"""

import argparse
import asyncio
import os
import resource
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

from benchmark_portal import measured_portal
from running_portal import LivePortal, call, process, until, upload

READY_AIM = 1.75
LADDER_AIM = 1.85
PROCESSOR_AIM = 1.05
ENDED_AIM = 1.05


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("film", type=Path, metavar="FILM")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ended", type=int, default=0, help="how often the only worker is ended")
    arguments = parser.parse_args()
    film = arguments.film
    ends = arguments.ended
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        async with measured_portal(folder, worker=False) as portal:
            alone = await measure(portal, film, workers=1, folder=folder)
            if ends:
                pause_s = alone[1] / (ends + 1)
                ended = await measure(
                    portal, film, workers=1, folder=folder, ends=ends, pause_s=pause_s
                )
                print(f"processor time: {ended[2] / alone[2]:.3f} (aim: {ENDED_AIM})")
                return
            shared = await measure(portal, film, workers=arguments.workers, folder=folder)
    print(f"ready: {alone[0] / shared[0]:.2f} times as soon (aim: {READY_AIM})")
    print(f"all renditions: {alone[1] / shared[1]:.2f} times as soon (aim: {LADDER_AIM})")
    print(f"processor time: {shared[2] / alone[2]:.3f} (aim: {PROCESSOR_AIM})")


async def measure(
    portal: LivePortal,
    film: Path,
    *,
    workers: int,
    folder: Path,
    ends: int = 0,
    pause_s: float = 0.0,
) -> tuple[float, float, float]:
    """Return the seconds to ready, to all renditions, and of processor time.

    The worker is ended and restarted `ends` times, each after a pause.
    """
    cores = sorted(os.sched_getaffinity(0))
    body = {"title": film.stem, "description": "", "categoryIds": [1], "tags": ""}
    body |= {"fileName": film.name, "key": await upload(portal.base_url, film)}
    before_s = processor_s()
    async with AsyncExitStack() as stack:

        async def begin(number: int) -> asyncio.subprocess.Process:
            # Children of the worker inherit its core.
            os.sched_setaffinity(0, {cores[number % len(cores)]})
            settings = {**portal.environ, "WORK_DIR": str(folder / f"work-{number}")}
            logs = folder / f"{workers}-{number}"
            logs.mkdir(exist_ok=True)
            worker = await stack.enter_async_context(process("worker", settings, log_dir=logs))
            os.sched_setaffinity(0, cores)
            return worker

        for number in range(workers):
            worker = await begin(number)
        await asyncio.sleep(5)
        begun = monotonic()
        video = await call("POST", f"{portal.base_url}/api/videos", status=201, json=body)
        address = f"{portal.base_url}/api/videos/{video['id']}"

        async def stage() -> tuple[str, bool]:
            transcode = await call("GET", f"{address}/transcode")
            return transcode["stage"], transcode["remaining"] is None

        async def is_ready() -> bool:
            return (await stage())[0] == "ready"

        async def is_complete() -> bool:
            return (await stage())[1]

        for _ in range(ends):
            await asyncio.sleep(pause_s)
            worker.terminate()
            await worker.wait()
            worker = await begin(0)
        await until(is_ready, timeout_s=3600)
        ready_s = monotonic() - begun
        await until(is_complete, timeout_s=3600)
        whole_s = monotonic() - begun
        await call("DELETE", address, status=202)
    taken_s = processor_s() - before_s
    print(f"{workers}: ready {ready_s:.1f} s, all {whole_s:.1f} s, processor {taken_s:.1f} s")
    return ready_s, whole_s, taken_s


def processor_s() -> float:
    """Return the processor time of ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(main())
