"""After a fault: nothing lost, nothing doubled, nothing left.

Looks at database, bucket, work folder and processes from outside, by none of the portal's own
code, and names everything that is not as it should be. The portal under audit has a database and
a bucket of its own, its work is done (`settled`), and everything it runs mentions one folder in
its command line, its environment or its working folder.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
from playing import Bucket, check_playback
from psycopg.rows import dict_row
from stored_objects import s3_client

UNFINISHED = """
SELECT (SELECT count(*) FROM videos WHERE status = 'processing' OR complete_job_id IS NOT NULL)
     + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))
     + (SELECT count(*) FROM attempts WHERE outcome IS NULL)
     + (SELECT count(*) FROM deletions) AS left_to_do
"""
TABLES = {
    "videos": "SELECT * FROM videos",
    "attempts": "SELECT * FROM attempts",
    "renditions": "SELECT * FROM renditions",
    "jobs": "SELECT * FROM procrastinate_jobs",
    "uploads": "SELECT * FROM uploads",
    "posters": "SELECT * FROM poster_requests",
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A video whose creation the portal has confirmed."""

    id: str
    key: str
    duration_s: float


@dataclass(slots=True)
class Findings:
    """What is wrong, in words, and how many objects of superseded attempts the janitor has left."""

    problems: list[str] = field(default_factory=list)
    superseded: int = 0

    def expect(self, fact: object, problem: str) -> None:
        if not fact:
            self.problems.append(problem)


class Tables:
    """The rows of the database, at one moment."""

    def __init__(self, rows: Mapping[str, list[Row]]) -> None:
        self.videos, self.jobs, self.uploads = rows["videos"], rows["jobs"], rows["uploads"]
        self.posters = rows["posters"]
        self._attempts, self._renditions = rows["attempts"], rows["renditions"]

    def attempts(self, video: Row) -> dict[int, Row]:
        return {row["number"]: row for row in self._attempts if row["video_id"] == video["id"]}

    def renditions(self, video: Row) -> list[Row]:
        return [row for row in self._renditions if row["video_id"] == video["id"]]

    @property
    def open_attempts(self) -> list[Row]:
        return [row for row in self._attempts if row["outcome"] is None]


async def is_settled(environ: Mapping[str, str]) -> bool:
    """Whether nothing is left to do: every video is final, every job and removal done."""
    with suppress(psycopg.OperationalError):
        async with await _connect(environ) as connection:
            cursor = await connection.execute(UNFINISHED)
            return await cursor.fetchone() == {"left_to_do": 0}
    return False


async def audit(
    environ: Mapping[str, str],
    folder: Path,
    accepted: Sequence[Accepted],
    *,
    roots: Callable[[], list[int]],
) -> int:
    """Raise AssertionError with everything that is wrong; else how many objects are superseded.

    The folder is mentioned by each process. `roots` tells which may run on; it is asked again and
    again, as one may just be started anew.
    """
    findings = Findings()
    tables = await _read_tables(environ)
    async with _open_bucket(environ) as bucket:
        _check_videos(tables, accepted, findings)
        _check_jobs(tables, findings)
        _check_objects(tables, bucket, findings)
        durations = {it.id: it.duration_s for it in accepted}
        for video in tables.videos:
            if video["status"] == "ready":
                complete = {it["name"] for it in tables.renditions(video)}
                master = f"hls/{video['id']}/{video['published_attempt']}/master.m3u8"
                duration_s = durations.get(str(video["id"]))
                found = await check_playback(bucket, master, names=complete, duration_s=duration_s)
                findings.problems += [f"video {video['id']}: {problem}" for problem in found]
    left = [path for path in Path(environ["WORK_DIR"]).rglob("*") if not path.is_dir()]
    findings.expect(not left, f"left in the work folder: {left}")
    await _check_processes(folder, roots, findings)
    assert not findings.problems, "\n".join(["the audit found:", *findings.problems])
    return findings.superseded


def processes_of(folder: Path) -> list[psutil.Process]:
    """The running processes that mention the folder; not this one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.pid != os.getpid() and _mentions(process, str(folder)):
                found.append(process)
    return found


def _mentions(process: psutil.Process, folder: str) -> bool:
    if process.status() == psutil.STATUS_ZOMBIE:
        return False
    texts = [*process.cmdline(), *process.environ().values(), process.cwd()]
    return any(folder in text for text in texts)


def _check_videos(tables: Tables, accepted: Sequence[Accepted], findings: Findings) -> None:
    videos = {str(row["id"]): row for row in tables.videos}
    for each in accepted:
        findings.expect(each.id in videos, f"video {each.id} is lost")
        if video := videos.get(each.id):
            _check_video(video, each, tables, findings)
    for video_id in videos.keys() - {each.id for each in accepted}:
        findings.problems.append(f"nobody was told of video {video_id}")
    ids = [each.id for each in accepted]
    findings.expect(len(ids) == len(set(ids)), "one video was confirmed for two files")


def _check_video(video: Row, accepted: Accepted, tables: Tables, findings: Findings) -> None:
    name = f"video {accepted.id}"
    attempts = tables.attempts(video)
    told = [(number, row["outcome"], row["error_code"]) for number, row in attempts.items()]
    findings.expect(video["storage_key"] == accepted.key, f"{name} has the file of another")
    findings.expect(video["status"] != "processing", f"{name} is still processing: {told}")
    findings.expect(video["complete_job_id"] is None, f"{name} is still being completed: {told}")
    if video["status"] == "failed":
        findings.problems.append(f"{name} is intact and failed: {told}")
        return
    findings.expect(
        attempts[video["published_attempt"]]["outcome"] == "published",
        f"{name} plays an attempt that was not published: {told}",
    )
    for rendition in tables.renditions(video):
        findings.expect(
            rendition["state"] == "complete",
            f"{name} lacks {rendition['name']}: {rendition['error_code']}, {told}",
        )


def _check_jobs(tables: Tables, findings: Findings) -> None:
    jobs = {row["id"]: row for row in tables.jobs}
    for job in tables.jobs:
        is_over = job["status"] in ("succeeded", "failed", "cancelled", "aborted")
        findings.expect(is_over, f"job {job['id']} {job['task_name']} is left {job['status']}")
    for video in tables.videos:
        job = jobs.get(video["transcode_job_id"])
        findings.expect(job, f"video {video['id']} names a job that is lost")
    for attempt in tables.open_attempts:
        findings.problems.append(f"attempt {attempt['number']} of {attempt['video_id']} is open")


def _check_objects(tables: Tables, bucket: Bucket, findings: Findings) -> None:
    """Each object belongs to something; what is only superseded is told apart."""
    known_keys = {row["key"] for row in tables.uploads}
    videos = {str(row["id"]): row for row in tables.videos}
    for key in bucket.keys:
        kind, _, rest = key.partition("/")
        owner, _, name = rest.partition("/")
        if kind == "videos":
            findings.expect(key in known_keys, f"{key} was never issued")
        elif kind == "hls" and owner in videos:
            if not _is_used(videos[owner], name, tables):
                findings.superseded += 1
        else:
            findings.problems.append(f"{key} belongs to nothing")
    for video in tables.videos:
        findings.expect(video["storage_key"] in bucket.keys, f"{video['storage_key']} is lost")
    for key in bucket.unfinished_uploads:
        findings.problems.append(f"the upload in parts of {key} was left unfinished")


def _is_used(video: Row, name: str, tables: Tables) -> bool:
    """Whether the object `<attempt>/<name>` is part of what is played."""
    folder, _, rest = name.partition("/")
    attempt = int(folder) if folder.isdigit() else None
    rendition, is_nested, _ = rest.partition("/")
    if not is_nested:
        is_poster = any(row["video_id"] == video["id"] for row in tables.posters)
        return attempt == video["published_attempt"] or is_poster
    return any(
        (row["name"], row["attempt_number"], row["state"]) == (rendition, attempt, "complete")
        for row in tables.renditions(video)
    )


async def _check_processes(
    folder: Path, roots: Callable[[], list[int]], findings: Findings
) -> None:
    # A confined child needs a moment to notice the end of its parent.
    for _ in range(600):
        own = set(roots())
        for root in list(own):
            with suppress(psutil.NoSuchProcess):
                own |= {child.pid for child in psutil.Process(root).children(recursive=True)}
        left = [each for each in processes_of(folder) if each.pid not in own]
        if not left:
            return
        await asyncio.sleep(0.1)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            findings.problems.append(f"left running: {process.pid} {process.cmdline()}"[:200])


async def _read_tables(environ: Mapping[str, str]) -> Tables:
    async with await _connect(environ) as connection:
        # All tables as of one moment.
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        rows = {}
        for name, query in TABLES.items():
            rows[name] = await (await connection.execute(query.encode())).fetchall()
    return Tables(rows)


async def _connect(environ: Mapping[str, str]) -> psycopg.AsyncConnection[dict[str, Any]]:
    return await psycopg.AsyncConnection.connect(
        environ["DATABASE_URL"], row_factory=dict_row, connect_timeout=5
    )


@asynccontextmanager
async def _open_bucket(environ: Mapping[str, str]) -> AsyncIterator[Bucket]:
    async with s3_client(environ) as client:
        name = environ["S3_BUCKET"]
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=name)
        keys = {entry["Key"] async for page in pages for entry in _entries(page)}
        yield Bucket(client, name, keys, await _unfinished_uploads(client, name))


async def _unfinished_uploads(client: Any, bucket: str) -> list[str]:
    try:
        answer = await client.list_multipart_uploads(Bucket=bucket)
    except client.exceptions.NoSuchUpload:  # how rclone says that there are none
        return []
    return [upload["Key"] for upload in answer.get("Uploads", ())]


def _entries(page: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    found: Iterable[Mapping[str, Any]] = page.get("Contents", ())
    return found
