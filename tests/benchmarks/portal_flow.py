"""The portal as users run it, as one of the flows that `transcode.py` compares.

Web, worker, PostgreSQL and S3 server run as processes of their own. The clock starts when the
creation of the video is sent, with the file uploaded, and stops for `ready` when the portal says
so and for the full ladder when the master playlist names every rendition.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import aiohttp
import psutil
from benchmark_portal import measured_portal
from peers import Outcome, Task
from running_portal import LivePortal, create, final_status, make_video, upload

from portal.transcoding.packaging.hls import parse_media_playlist

# Until it is ready, and then until all is made: pages ask every two seconds, and the processor time
# of the answers is measured, too.
POLL_S, COMPLETE_POLL_S = 0.1, 0.5
# Beyond what any of these machines takes; a benchmark that hangs is stopped.
LIMIT_S = 3600


def portal(task: Task, folder: Path) -> Outcome:
    """From the creation of the video on; see the module."""
    return asyncio.run(_published(task, folder))


async def _published(task: Task, folder: Path) -> Outcome:
    """Publish the source with a portal of its own, warm from a first small video."""
    async with measured_portal(folder / "services", worker=True) as portal:
        small = await create(portal.base_url, make_video(folder / "small.mp4"))
        if await final_status(portal.base_url, small["id"]) != "ready":
            sys.exit("the portal could not publish a small video")
        return await _measured(portal, task, folder)


async def _measured(portal: LivePortal, task: Task, folder: Path) -> Outcome:
    body = {
        "title": "Benchmark",
        "description": "",
        "categoryIds": [1],
        "tags": "",
        "fileName": task.source.name,
        "key": await upload(portal.base_url, task.source),
    }
    async with aiohttp.ClientSession() as session:
        cpu_s, started_at = descendants_cpu_s(), monotonic()
        async with session.post(f"{portal.base_url}/api/videos", json=body) as response:
            response.raise_for_status()
            video_url = portal.base_url + response.headers["Location"]
        await _until(session, f"{video_url}/transcode", lambda it: it["stage"] == "ready")
        ready_s = monotonic() - started_at
        await _until(session, f"{video_url}/transcode", _is_complete, poll_s=COMPLETE_POLL_S)
        master_url = (await _json(session, video_url))["playbackUrl"]
        variants = await _all_variants(session, master_url, len(task.rungs))
        full_s, cpu_s = monotonic() - started_at, descendants_cpu_s() - cpu_s
        files = {
            rung.name: await _download(
                session, variants[f"{rung.width}x{rung.height}"], folder / f"{rung.name}.mp4"
            )
            for rung in task.rungs
        }
    return Outcome(ready_s=ready_s, full_s=full_s, cpu_s=cpu_s, renditions=files)


async def _until(
    session: aiohttp.ClientSession,
    url: str,
    condition: Callable[[dict[str, Any]], bool],
    *,
    poll_s: float = POLL_S,
) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition(record := await _json(session, url)):
            if record["stage"] == "failed":
                sys.exit(f"the portal failed: {record['failure']}")
            await asyncio.sleep(poll_s)


def _is_complete(record: dict[str, Any]) -> bool:
    videos = [each for each in record["renditions"] if each["kind"] == "video"]
    if failed := [each["name"] for each in videos if each["state"] == "failed"]:
        sys.exit(f"the portal failed to make {', '.join(failed)}")
    return all(each["state"] == "complete" for each in videos)


async def _all_variants(
    session: aiohttp.ClientSession, master_url: str, count: int
) -> dict[str, str]:
    """The addresses of the variants by their size, once the master playlist names them all."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            text = (await _bytes(session, master_url)).decode()
            found = re.findall(r"^#EXT-X-STREAM-INF:.*RESOLUTION=(\d+x\d+).*\n(.+)$", text, re.M)
            if len(found) == count:
                return {size: urljoin(master_url, uri) for size, uri in found}
            await asyncio.sleep(POLL_S)


async def _download(session: aiohttp.ClientSession, url: str, path: Path) -> Path:
    """A rendition as one file: its init section and all segments in a row are an MP4."""
    playlist = parse_media_playlist((await _bytes(session, url)).decode())
    with path.open("wb") as file:
        for uri in (playlist.map_uri, *(segment.uri for segment in playlist.segments)):
            file.write(await _bytes(session, urljoin(url, uri)))
    return path


async def _json(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(await _bytes(session, url))
    return record


async def _bytes(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.get(url) as response:
        response.raise_for_status()
        return await response.read()


def descendants_cpu_s() -> float:
    """Processor time of all processes below this one; those that ended count at their parent."""
    total_s = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            total_s += sum(child.cpu_times()[:4])  # user, system, and its ended children's
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile, and counts at its parent
    return total_s
