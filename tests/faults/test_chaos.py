"""Processes die at random moments while people upload and videos are transcoded.

In any order, every accepted video becomes ready and plays, and nothing is lost, doubled or left
behind. `PORTAL_FAULT_SEED=7 pytest -m slow tests/faults` repeats the choices, not the timing.
"""

import asyncio
import re
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import aiohttp
import imageio_ffmpeg
import psutil
import psycopg
import pytest
from api_client import metadata, rows
from chaos import end, is_settled
from command_line import portal as command
from command_line import run_program
from running_portal import make_video, until
from running_up import Portal, running

from portal.bundled.data_folder import load_environment
from portal.client.calls import REQUEST_TIMEOUT, Api, PortalFailure, PortalRefused
from portal.client.publish import MIB, send_file
from portal.retry import Backoff, retry

FAULTS = 4
UPLOADS = 4
PAUSE_S = (0.1, 2.5)
# Shorter than a lease, and longer than a heartbeat.
FREEZE_S = (0.5, 3.0)
TIMEOUT_S = 180.0
# Includes the pauses after failures, on a machine busy with other tests.
SETTLE_TIMEOUT_S = 300.0
# Targets whose end costs a video an attempt.
COSTLY = {"worker", "ffmpeg", "probe", "database", "everything"}
# Finds a row if one more attempt, or try of a rendition, would fail a video, as documented.
AT_RISK = """
SELECT 1 FROM videos
WHERE status = 'processing' AND (
  SELECT count(*) FROM attempts
  WHERE version_id = videos.version_id AND (outcome = 'failed' OR outcome IS NULL)) >= 3
UNION ALL SELECT 1 FROM renditions WHERE state = 'planned' AND tries >= 3
"""
# Queries that have no rows in a sound portal.
PROBLEMS = {
    "is intact and failed": "SELECT id, failure_code FROM videos WHERE status <> 'ready'",
    "lacks a rendition": """
        SELECT version_id, name, state, error_code FROM renditions WHERE state <> 'complete'""",
    "plays an attempt that was not published": """
        SELECT videos.id, number, outcome FROM videos LEFT JOIN attempts
        ON video_id = videos.id AND number = published_attempt
        WHERE outcome IS DISTINCT FROM 'published'""",
    "names a job that is lost": """
        SELECT id FROM videos
        WHERE NOT EXISTS (SELECT FROM procrastinate_jobs job WHERE job.id = transcode_job_id)""",
}
VIDEOS = "SELECT id::text, storage_key FROM videos"
RENDITIONS = """
SELECT video_id::text, concat_ws('/', 'hls', video_id, attempt_number, name, 'playlist.m3u8')
FROM renditions JOIN versions ON versions.id = version_id WHERE kind IN ('video', 'audio')
"""
# Allows for the last frame, the encoder delay and one audio frame.
DURATION_SLACK_S = 1.0


@pytest.fixture
def sources(tmp_path: Path) -> list[tuple[Path, float]]:
    """Files with durations: one sent whole, one that needs later passes, one sent in parts."""
    long = make_video(tmp_path / "long.mp4", seconds=90, size="640x360", rate=2)
    large = make_video(tmp_path / "large.mp4")
    padding = 65 * MIB
    with large.open("ab") as file:
        file.write(struct.pack(">I4s", padding, b"free"))
        file.truncate(file.tell() + padding - 8)
    return [(make_video(tmp_path / "short.mp4"), 2.0), (long, 90.0), (large, 2.0)]


@pytest.mark.soak
async def test_no_video_is_lost_or_doubled_by_random_faults(
    data: Path, sources: list[tuple[Path, float]], rng: Random
) -> None:
    accepted: dict[str, tuple[str, float]] = {}

    async def publish_later(file: Path, duration_s: float, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        video_id, key = await published_by_a_client(portal.address, file)
        accepted[video_id] = (key, duration_s)

    async with running(data) as portal:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(UPLOADS):
                    source = sources[number % len(sources)]
                    group.create_task(publish_later(*source, rng.uniform(0, FAULTS)))
                group.create_task(inject_faults(portal, data, rng))
            url = load_environment(data)["DATABASE_URL"]
            await until(partial(is_settled, url), timeout_s=SETTLE_TIMEOUT_S, interval_s=0.3)
            assert len(accepted) == UPLOADS, "one video was confirmed for two files"
            await audit(data, accepted)
        finally:
            portal.look()
            sys.stderr.write(portal.said[-20_000:])


async def published_by_a_client(address: str, file: Path) -> tuple[str, str]:
    """Publish a video, repeating each failed step; return its id and key."""
    insist = partial(retry, backoff=Backoff(0.5, 2.0), give_up_after_s=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=REQUEST_TIMEOUT) as session:
        api = Api(session, address)

        async def upload() -> str:
            body = {"fileName": file.name, "contentType": "video/mp4"}
            upload = await api.call("POST", "/api/videos/presign", body)
            await send_file(api, file, upload["key"])
            return str(upload["key"])

        key = await insist(upload, on=(PortalFailure,))
        create = partial(api.call, "POST", "/api/videos", metadata(key, fileName=file.name))
        video = await insist(
            create,
            on=lambda exc: isinstance(exc, PortalFailure) and type(exc) is not PortalRefused,
        )
    return video["id"], key


async def inject_faults(portal: Portal, data: Path, rng: Random) -> None:
    """Kill, stop or freeze parts of a running portal at random moments."""
    done: list[str] = []
    while len(done) < FAULTS:
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        targets = targets_of(portal)
        name = rng.choice(sorted(targets))
        action = rng.choice(["kill", "stop", *(["freeze"] if name == "worker" else [])])
        if action != "freeze" and name in COSTLY and await is_risky(data):
            continue
        for process in targets[name]:
            if action != "freeze":
                end(process, name, at_once=action == "kill" or name == "everything")
                continue
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                await asyncio.sleep(rng.uniform(*FREEZE_S))
                process.resume()
        done.append(f"{action} {name}")
    sys.stderr.write(f"{done}\n")


def targets_of(portal: Portal) -> dict[str, list[psutil.Process]]:
    """Return the running processes by name; `everything` stands for a power cut."""
    targets = {name: [process] for name, process in portal.children().items()}
    targets["everything"] = psutil.Process(portal.process.pid).children(recursive=True)
    for process in targets["everything"]:
        with suppress(psutil.NoSuchProcess):
            if "ffmpeg" in process.name():
                targets["ffmpeg"] = [process]
            if "portal.transcoding.probing" in process.cmdline():
                targets["probe"] = [process]
    return targets


async def is_risky(data: Path) -> bool:
    try:
        return bool(await rows(load_environment(data)["DATABASE_URL"], AT_RISK))
    except psycopg.OperationalError:
        return True  # the database is down, so this is unknown


async def audit(data: Path, accepted: Mapping[str, tuple[str, float]]) -> None:
    """Check that nothing was lost, doubled or left behind once all work is done.

    Reads the database and the data folder, and fails with all problems at once. `accepted` has the
    key and the duration of each video.
    """
    url = load_environment(data)["DATABASE_URL"]
    objects = data / "objects" / "portal"
    problems = [
        f"{row} {problem}" for problem, query in PROBLEMS.items() for row in await rows(url, query)
    ]
    if (videos := dict(await rows(url, VIDEOS))) != {id: key for id, (key, _) in accepted.items()}:
        problems.append(f"{accepted} was accepted, {videos} exists")
    # Database and storage have the same files; the janitor removes superseded ones.
    code, out, err = await command({}, "doctor", "--deep", "--data-dir", str(data))
    problems += [out + err] if code else []
    uploads = {key for (key,) in await rows(url, "SELECT key FROM uploads")}
    for kind, owners in (("videos", uploads), ("hls", {f"hls/{video_id}" for video_id in videos})):
        stored = {f"{kind}/{path.name}" for path in (objects / kind).glob("[!.]*")}
        problems += [f"{key} belongs to nothing" for key in stored - owners]
    for video_id, playlist in await rows(url, RENDITIONS):
        problems += await _check_decoding(objects / playlist, accepted[video_id][1])
    left_files = [path for path in (data / "work").rglob("*") if not path.is_dir()]
    problems += [f"{path} was left behind" for path in left_files]
    assert not problems, "\n".join(["the audit found:", *problems])


async def _check_decoding(playlist: Path, duration_s: float) -> list[str]:
    """Decode a rendition with ffmpeg, and return its faults."""
    _, progress, errors = await run_program(
        *(imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror"),
        *("-progress", "pipe:1", "-i", str(playlist)),
        # Keeps the times of the frames; at a guessed frame rate some would coincide.
        *("-fps_mode", "passthrough", "-enc_time_base", "demux", "-f", "null", "-"),
    )
    times = re.findall(r"out_time_us=(\d+)", progress)
    decoded_s = int(times[-1]) / 1e6 if times else 0.0
    if errors.strip() or abs(decoded_s - duration_s) > DURATION_SLACK_S:
        return [f"{playlist} decodes to {decoded_s:.1f} s, not {duration_s:.1f} s: {errors[-300:]}"]
    return []
