"""Three workers share a film while workers are killed: every frame is made once.

Parts are short, so that a short film suffices, and a killed worker counts as dead at once.
"""

import asyncio
import socket
import sys
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import psutil
import pytest
from api_client import rows, run_sql
from chaos import SOON, is_settled, restarted
from passes import make_source
from running_portal import LivePortal, call, create, until

from portal.config import Config
from portal.processes.supervisor import Children, running_children
from portal.storage.bucket import open_storage
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.packaging.cmaf import inspect_segment
from portal.transcoding.packaging.hls import parse_media_playlist

WORKERS = 3
KILLS = 2
SECONDS = 112
FPS = 12
SEGMENT_FRAMES = 48
PAUSE_S = (0.2, 3.0)
TIMEOUT_S = 240.0
EAGER = """
from portal.films import parts
parts.LONGEST_PART_S, parts.SHORTEST_PART_S = 1.0, 0.5
from portal.cli.main import main
main(["worker"])
"""
# Lets a killed worker count as dead at once, with its leases.
DEAD = """
UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute' WHERE id IN (
  SELECT worker_id FROM procrastinate_jobs WHERE status = 'doing' AND (
    task_name = 'portal:share' AND (args->>'version_id')::uuid IN (
      SELECT version_id FROM pass_parts WHERE NOT is_done AND worker = '{0}')
    OR task_name <> 'portal:share' AND (args->>'version_id')::uuid IN (
      SELECT version_id FROM attempts WHERE outcome IS NULL AND worker = '{0}')));
UPDATE attempts SET lease_expires_at = now() WHERE outcome IS NULL AND worker = '{0}';
UPDATE pass_parts SET lease_expires_at = now() WHERE NOT is_done AND worker = '{0}'
"""
RENDITIONS = "SELECT name, attempt_number, state FROM renditions WHERE kind = 'video'"
IS_SHARED = "SELECT FROM pass_parts WHERE start > 0"


@pytest.mark.parametrize("rounds", [1, 60])
@pytest.mark.soak
async def test_shared_film_is_whole_whoever_dies(
    web: LivePortal, config: Config, rng: Random, tmp_path: Path, rounds: int
) -> None:
    film = make_source(tmp_path / "film.mp4", seconds=SECONDS, rate=FPS, size="960x540")
    url = web.environ["DATABASE_URL"]
    commands = {f"worker-{number}": ("-c", EAGER) for number in range(WORKERS)}
    async with (
        running_children(policy=SOON) as children,
        restarted(children, web.environ, tmp_path, **commands),
    ):
        made_twice = 0
        for number in range(rounds):
            video = await create(web.base_url, film)
            await until(partial(rows, url, IS_SHARED), timeout_s=TIMEOUT_S)
            for _ in range(KILLS):
                await asyncio.sleep(rng.uniform(*PAUSE_S))
                await kill(children, url, rng)
            await until(partial(is_settled, url), timeout_s=TIMEOUT_S, interval_s=0.3)
            made_twice += await audit(config, video["id"])
            address = f"{web.base_url}/api/videos/{video['id']}"
            await call("DELETE", address, status=202)
            sys.stderr.write(f"{number + 1} rounds, {made_twice} segments made twice\n")


async def kill(children: Children, url: str, rng: Random) -> None:
    """Kill one of the workers, with what it started."""
    process = psutil.Process(rng.choice([child.pid for child, _ in children._running()]))
    with suppress(psutil.NoSuchProcess):
        started = process.children(recursive=True)
        for each in (process, *started):
            each.kill()
        psutil.wait_procs([process, *started], timeout=5)
    await run_sql(url, DEAD.format(f"{socket.gethostname()}:{process.pid}"))


async def audit(config: Config, video_id: str) -> int:
    """Check that all renditions have all frames in consecutive segments.

    Return the number of stored segments that no playlist names.
    """
    renditions = await rows(config.database_url, RENDITIONS)
    assert renditions
    assert not await rows(config.database_url, "SELECT FROM passes")
    async with open_storage(config) as storage:
        stored = await storage.list_some(output_root(video_id))
        names = {name for name, _, _ in renditions}
        count = sum(key.endswith(".m4s") and key.split("/")[-2] in names for key in stored)
        for name, attempt, state in renditions:
            assert state == "complete", name
            prefix = f"{output_prefix(video_id, attempt)}{name}/"
            text = await storage.get(f"{prefix}playlist.m3u8")
            segments = parse_media_playlist(text.decode()).segments
            facts = [
                inspect_segment(await storage.get(prefix + segment.uri)) for segment in segments
            ]
            frame_counts = [segment.sample_count for segment in facts]
            assert frame_counts == [SEGMENT_FRAMES] * (SECONDS // 4), name
            assert all(a.until_ticks == b.from_ticks for a, b in pairwise(facts)), name
            count -= len(facts)
    return count
