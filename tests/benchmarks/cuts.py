"""Time from saving three cuts of a long film until it plays, and until its ladder is complete.

The second figure is also printed as a share of the time of the film's own transcode.

    python tests/benchmarks/cuts.py --minutes 60 --height 720
"""

import asyncio
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from benchmark_portal import measured_portal, options_of
from running_portal import call, run_ffmpeg, until, upload

AIM_S = 10
AIM_SHARE = 0.02
RATE = 25


def make_film(path: Path, *, minutes: int, height: int) -> Path:
    """Make a film with sound whose picture has to be encoded: key frames are 20 s apart."""
    width = height * 16 // 9
    picture = f"testsrc2=size={width}x{height}:rate={RATE}:duration=60"
    minute = run_ffmpeg(
        path.with_name("minute.mp4"),
        *("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", "sine=duration=60"),
        *("-c:v", "libx264", "-preset", "veryfast", "-g", "500", "-pix_fmt", "yuv420p"),
        *("-c:a", "aac"),
    )
    repeated = ("-stream_loop", str(minutes - 1), "-i", str(minute))
    return run_ffmpeg(path, *repeated, "-c", "copy")


async def main() -> None:
    options = options_of(__doc__, minutes=60, height=720)
    with tempfile.TemporaryDirectory(prefix="portal-benchmark-") as name:
        folder = Path(name)
        film = make_film(folder / "film.mp4", minutes=options.minutes, height=options.height)
        async with measured_portal(folder, worker=True) as portal:
            body = {"title": "Film", "description": "", "categoryIds": [1], "tags": ""}
            body |= {"fileName": film.name, "key": await upload(portal.base_url, film)}
            begun = monotonic()
            created = await call("POST", f"{portal.base_url}/api/videos", status=201, json=body)
            address = f"{portal.base_url}/api/videos/{created['id']}"
            await until(lambda: is_complete(address), timeout_s=7200)
            whole_s = monotonic() - begun
            print(f"{options.minutes} min, {options.height}p: ladder in {whole_s:.0f} s")
            film_s = options.minutes * 60
            bounds_s = (61.4, 0.3 * film_s, 0.3 * film_s + 77.7, film_s - 33.3)
            keep = [
                {"startSeconds": bounds_s[0], "endSeconds": bounds_s[1]},
                {"startSeconds": bounds_s[2], "endSeconds": bounds_s[3]},
            ]
            begun = monotonic()
            await call("PUT", f"{address}/cuts", status=202, json={"keep": keep})
            await until(lambda: is_live(address), timeout_s=600, interval_s=0.05)
            live_s = monotonic() - begun
            await until(lambda: is_complete(address), timeout_s=600, interval_s=0.05)
            complete_s = monotonic() - begun
            print(f"plays {live_s:.1f} s after its cuts were saved (aim: {AIM_S})")
            share = complete_s / whole_s
            print(f"its ladder after {complete_s:.1f} s, {share:.2%} (aim: {AIM_SHARE:.0%})")


async def is_complete(address: str) -> bool:
    """Return whether all renditions of a video and its storyboard are made."""
    document: dict[str, Any] = await call("GET", f"{address}/transcode")
    is_made = all(row["state"] == "complete" for row in document["renditions"])
    return bool(is_made and document["remaining"] is None and document["storyboardUrl"])


async def is_live(address: str) -> bool:
    """Return whether viewers get the cuts that were saved last."""
    return bool((await call("GET", f"{address}/cuts"))["state"] == "live")


if __name__ == "__main__":
    asyncio.run(main())
