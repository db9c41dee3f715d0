"""A long source that is copied: seconds from its creation to ready, and the memory it takes.

    python tests/benchmarks/long_copy.py [--source FILE] [--minutes 60]

The source is 1080p at 4 Mbit/s: a minute of real footage (or of a made clip), encoded once and
looped by stream copy, with sound made whole. Memory is the highest sum of resident sizes of the
worker and its children while the copy is made. Choose a quiet machine.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from time import monotonic

import aiohttp
import psutil
from benchmark_portal import measured_portal
from encoding_runs import make_clip, run_ffmpeg
from portal_flow import wait_for_stage
from running_portal import LivePortal, create, final_status, make_video, upload

READY_AIM_S, MEMORY_AIM_BYTES = 20.0, 300e6
LOOP_S = 60
SAMPLE_S = 0.25
VIDEO = ("-c:v", "libx264", "-preset", "veryfast", "-b:v", "4M", "-maxrate", "5M", "-bufsize", "8M")


def main() -> None:
    """Make the source, publish it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--source", type=Path, help="real footage; else a made clip")
    parser.add_argument("--minutes", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        source = _long(options.source, Path(name), options.minutes)
        print(f"{options.minutes} min, {source.stat().st_size / 1e6:.0f} MB", flush=True)
        asyncio.run(_measure(source, Path(name)))


def _long(clip: Path | None, folder: Path, minutes: int) -> Path:
    """A minute of the clip, encoded, and looped without encoding it again."""
    clip = clip or make_clip(folder / "made.mp4", seconds=LOOP_S)
    minute, whole = folder / "minute.mp4", folder / "long.mp4"
    scale = ("-vf", "scale=1920:1080,setsar=1,format=yuv420p")
    run_ffmpeg(
        (
            *("-stream_loop", "-1", "-i", str(clip.absolute()), "-t", str(LOOP_S)),
            *("-map", "0:v:0", *scale, *VIDEO, "-g", "60", str(minute)),
        )
    )
    run_ffmpeg(
        (
            *("-stream_loop", str(minutes - 1), "-i", str(minute)),
            *("-f", "lavfi", "-i", f"anoisesrc=amplitude=0.1:sample_rate=48000:d={minutes * 60}"),
            *("-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac", "-b:a", "128k"),
            *("-shortest", "-movflags", "+faststart", str(whole)),
        )
    )
    return whole


async def _measure(source: Path, folder: Path) -> None:
    async with measured_portal(folder / "services", worker=True) as portal:
        small = await create(portal.base_url, make_video(folder / "small.mp4"))
        await final_status(portal.base_url, small["id"])
        key = await upload(portal.base_url, source)
        async with aiohttp.ClientSession() as session:
            seen_bytes: list[int] = []
            watching = asyncio.create_task(_watch_memory(seen_bytes))
            started_at = monotonic()
            await _published(portal, session, key, source.name)
            ready_s = monotonic() - started_at
            watching.cancel()
    peak_bytes = max(seen_bytes)
    print(f"create -> ready  {ready_s:6.1f} s   {_verdict(ready_s <= READY_AIM_S)}")
    print(f"peak memory      {peak_bytes / 1e6:6.0f} MB  {_verdict(peak_bytes < MEMORY_AIM_BYTES)}")


async def _published(
    portal: LivePortal, session: aiohttp.ClientSession, key: str, name: str
) -> None:
    body = {
        "title": "Benchmark",
        "description": "",
        "categoryIds": [1],
        "tags": "",
        "fileName": name,
        "key": key,
    }
    async with session.post(f"{portal.base_url}/api/videos", json=body) as response:
        response.raise_for_status()
        video_url = portal.base_url + response.headers["Location"]
    await wait_for_stage(session, video_url, "ready")


async def _watch_memory(seen_bytes: list[int]) -> None:
    """Note what the worker and its children hold, until cancelled."""
    worker = next(each for each in psutil.Process().children(recursive=True) if _is_worker(each))
    while True:
        seen_bytes.append(sum(_resident_bytes(each) for each in (worker, *worker.children(True))))
        await asyncio.sleep(SAMPLE_S)


def _is_worker(process: psutil.Process) -> bool:
    return process.cmdline()[-2:] == ["portal", "worker"]


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _verdict(is_met: bool) -> str:
    return "" if is_met else "MISSED"


if __name__ == "__main__":
    main()
