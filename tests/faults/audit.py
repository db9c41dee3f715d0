"""After a fault: nothing lost, nothing doubled, nothing left.

Looks at the database and the data folder of a `portal up` whose work is done, and names everything
that is not as it should be.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import imageio_ffmpeg
import psutil
import psycopg
from api_client import rows
from command_line import portal, run_program

from portal.bundled.data_folder import load_environment

LEFT_TO_DO = """
SELECT (SELECT count(*) FROM videos WHERE status = 'processing' OR complete_job_id IS NOT NULL)
     + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
     + (SELECT count(*) FROM attempts WHERE outcome IS NULL)
     + (SELECT count(*) FROM deletions)
"""
# What finds nothing in a portal that is as it should be.
PROBLEMS = {
    "is intact and failed": "SELECT id, failure_code FROM videos WHERE status <> 'ready'",
    "lacks a rendition": """
        SELECT video_id, name, state, error_code FROM renditions WHERE state <> 'complete'""",
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
FROM renditions WHERE kind IN ('video', 'audio')
"""
# A last frame, encoder delay, and what a half-second audio frame more or less adds.
DURATION_SLACK_S = 1.0


async def is_settled(data: Path) -> bool:
    """Whether every video is final, and every job and removal done."""
    with suppress(psycopg.OperationalError):
        return await rows(load_environment(data)["DATABASE_URL"], LEFT_TO_DO) == [(0,)]
    return False


async def audit(data: Path, accepted: Mapping[str, tuple[str, float]]) -> None:
    """Fail with everything that is wrong; `accepted` has the key and duration of each video."""
    url, objects = load_environment(data)["DATABASE_URL"], data / "objects" / "portal"
    problems = [
        f"{row} {problem}" for problem, query in PROBLEMS.items() for row in await rows(url, query)
    ]
    if (videos := dict(await rows(url, VIDEOS))) != {id: key for id, (key, _) in accepted.items()}:
        problems.append(f"{accepted} was accepted, {videos} is there")
    # Database and storage name the same files; what is superseded, the janitor removes.
    code, out, err = await portal({}, "doctor", "--deep", "--data-dir", str(data))
    problems += [out + err] if code else []
    uploads = {key for (key,) in await rows(url, "SELECT key FROM uploads")}
    for kind, owners in (("videos", uploads), ("hls", {f"hls/{video_id}" for video_id in videos})):
        found = {f"{kind}/{it.name}" for it in (objects / kind).glob("[!.]*")}
        problems += [f"{key} belongs to nothing" for key in found - owners]
    for video_id, playlist in await rows(url, RENDITIONS):
        problems += await _check_decoding(objects / playlist, accepted[video_id][1])
    problems += [f"{it} was left" for it in (data / "work").rglob("*") if not it.is_dir()]
    assert not problems, "\n".join(["the audit found:", *problems])


async def _check_decoding(playlist: Path, duration_s: float) -> list[str]:
    """What ffmpeg finds wrong with a rendition, decoded from beginning to end."""
    _, progress, said = await run_program(
        *(imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-xerror"),
        *("-progress", "pipe:1", "-i", str(playlist), "-f", "null", "-"),
    )
    times = re.findall(r"out_time_us=(\d+)", progress)
    decoded_s = int(times[-1]) / 1e6 if times else 0.0
    if said.strip() or abs(decoded_s - duration_s) > DURATION_SLACK_S:
        return [f"{playlist} decodes to {decoded_s:.1f} s, not {duration_s:.1f} s: {said[-300:]}"]
    return []


def processes_of(folder: Path) -> list[psutil.Process]:
    """The running processes that mention the folder in command line, environment or place."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            texts = [*process.cmdline(), *process.environ().values(), process.cwd()]
            if any(str(folder) in text for text in texts):
                found.append(process)
    return found
