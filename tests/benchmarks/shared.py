"""What a second worker brings to one film: both have one core of their own.

The film must be one that can't be copied. It is made by one worker, and then by two. Told are the
seconds until it is ready and until all renditions are there, and the processor time of the workers
and what they ran.

    python tests/benchmarks/shared.py FILM [--workers 2]
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

READY_AIM, LADDER_AIM, PROCESSOR_AIM = 1.75, 1.85, 1.05


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("film", type=Path, metavar="FILM")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as folder:
        async with measured_portal(Path(folder), worker=False) as portal:
            alone = await measure(portal, arguments.film, workers=1, folder=Path(folder))
            shared = await measure(
                portal, arguments.film, workers=arguments.workers, folder=Path(folder)
            )
    print(f"ready: {alone[0] / shared[0]:.2f} times as soon (aim: {READY_AIM})")
    print(f"all renditions: {alone[1] / shared[1]:.2f} times as soon (aim: {LADDER_AIM})")
    print(f"processor time: {shared[2] / alone[2]:.3f} (aim: {PROCESSOR_AIM})")


async def measure(
    portal: LivePortal, film: Path, *, workers: int, folder: Path
) -> tuple[float, float, float]:
    """Seconds to ready, to all renditions, and of processor time."""
    cores = sorted(os.sched_getaffinity(0))
    body = {"title": film.stem, "description": "", "categoryIds": [1], "tags": ""}
    body |= {"fileName": film.name, "key": await upload(portal.base_url, film)}
    before_s = processor_s()
    async with AsyncExitStack() as stack:
        for number in range(workers):
            # What it starts stays there, too.
            os.sched_setaffinity(0, {cores[number % len(cores)]})
            settings = {**portal.environ, "WORK_DIR": str(folder / f"work-{number}")}
            logs = folder / f"{workers}-{number}"
            logs.mkdir()
            await stack.enter_async_context(process("worker", settings, log_dir=logs))
            os.sched_setaffinity(0, cores)
        await asyncio.sleep(5)
        begun = monotonic()
        video = await call("POST", f"{portal.base_url}/api/videos", status=201, json=body)
        address = f"{portal.base_url}/api/videos/{video['id']}"

        async def stage() -> tuple[str, bool]:
            found = await call("GET", f"{address}/transcode")
            return found["stage"], found["remaining"] is None

        async def is_ready() -> bool:
            return (await stage())[0] == "ready"

        async def is_complete() -> bool:
            return (await stage())[1]

        await until(is_ready, timeout_s=3600)
        ready_s = monotonic() - begun
        await until(is_complete, timeout_s=3600)
        whole_s = monotonic() - begun
        await call("DELETE", address, status=202)
    taken_s = processor_s() - before_s
    print(f"{workers}: ready {ready_s:.1f} s, all {whole_s:.1f} s, processor {taken_s:.1f} s")
    return ready_s, whole_s, taken_s


def processor_s() -> float:
    """Of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(main())
