"""Many requests of each kind that makes work, before a normal film that may not wait."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from api_client import rows
from running_portal import (
    LivePortal,
    call,
    create,
    execute,
    final_status,
    fresh_portal,
    until,
    upload,
)

SETTINGS = {
    **{f"RATE_LIMIT_{kind}": "0" for kind in ("CHANGES", "SEARCHES", "SIGN_INS")},
    "TRUSTED_PROXIES": "127.0.0.1",
}
KINDS = ("cuts", "copies", "posters", "captions", "downloads", "retries", "replacements")
# Requests of each kind that are sent before the normal film.
REQUESTS = 10
# Most of the jobs that begin between a normal film's request and its beginning: those that a
# requester has free, and one in each of the two slots.
MOST_BEFORE = 5
HAS_BEGUN = "SELECT FROM procrastinate_events WHERE job_id = %s AND type = 'started'"
OVERTOOK = """
SELECT other.task_name FROM procrastinate_jobs film
JOIN procrastinate_events queued ON queued.job_id = film.id AND queued.type = 'deferred'
JOIN procrastinate_events begun ON begun.job_id = film.id AND begun.type = 'started'
JOIN procrastinate_jobs other ON other.queue_name = film.queue_name AND other.id <> film.id
JOIN procrastinate_events started ON started.job_id = other.id AND started.type = 'started'
WHERE film.id = %s AND started.at BETWEEN queued.at AND begun.at
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Demanding:
    """Editor at another address than the tests' own, who requests much work."""

    portal: LivePortal
    film_ids: list[str]
    failed_id: str
    film: Path

    async def send(self, method: str, path: str, **options: Any) -> None:
        """Send a request, which may be refused."""
        headers = {"X-Forwarded-For": "192.0.2.1", "Origin": self.portal.base_url}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, f"{self.portal.base_url}{path}", **options) as response,
        ):
            assert response.status < 500 or response.status == 503, await response.text()

    async def request(self, kind: str, number: int) -> None:
        """Request work of a kind; the requests of successive numbers differ."""
        film = f"/videos/{self.film_ids[number % len(self.film_ids)]}"
        keep = [{"startSeconds": 0, "endSeconds": 0.5 + number % 9 / 20}]
        match kind:
            case "cuts":
                await self.send("PUT", f"/api{film}/cuts", json={"keep": keep})
            case "copies":
                await self.send("POST", f"/api{film}/copies", json={"keep": keep, "title": "Copy"})
            case "posters":
                await self.send("POST", f"{film}/poster", data={"time": f"{number % 9 / 10}"})
            case "captions":
                cue = f"WEBVTT\n\n00:00.000 --> 00:01.000\nNumber {number}\n"
                await self.send("PUT", f"/api{film}/captions/en", data=cue.encode())
            case "downloads":
                await self.send("POST", f"/api{film}/downloads/180p.mp4")
            case "retries":
                await self.send("POST", f"/api/videos/{self.failed_id}/transcode")
            case "replacements":
                body = {"fileName": "a.mp4", "key": await upload(self.portal.base_url, self.film)}
                await self.send("POST", f"/api{film}/replacement", json=body)
                await self.send("DELETE", f"/api{film}/replacement")


async def test_many_requests_of_each_kind_keep_no_film_of_another_waiting(
    services: dict[str, str], short_video: Path, tmp_path: Path
) -> None:
    """The queue's own test has each kind alone; all of them count for their sender here."""
    junk = tmp_path / "junk.mp4"
    junk.write_bytes(b"These are notes.")
    settings = {**SETTINGS, "WORK_DIR": str(tmp_path / "work")}
    async with fresh_portal(services, worker=True, **settings) as portal:
        films = [await create(portal.base_url, short_video) for _ in range(3)]
        failed = await create(portal.base_url, junk)
        assert await final_status(portal.base_url, failed["id"]) == "failed"
        ids = [film["id"] for film in films]
        for video_id in ids:
            await until_complete(portal, video_id)
        demanding = Demanding(portal=portal, film_ids=ids, failed_id=failed["id"], film=junk)
        # The requests for the films above don't count.
        await execute(portal.environ, "DELETE FROM recent_requests")
        await asyncio.gather(
            *(demanding.request(kind, number) for number in range(REQUESTS) for kind in KINDS)
        )
        film_job = (await create(portal.base_url, short_video))["transcodeJobId"]
        url = portal.environ["DATABASE_URL"]
        await until(partial(rows, url, HAS_BEGUN, film_job), timeout_s=180)
        jobs = await rows(url, OVERTOOK, film_job)
        assert len(jobs) <= MOST_BEFORE, Counter(jobs)


async def until_complete(portal: LivePortal, video_id: str) -> None:
    """Wait until all qualities and the previews of a film are made."""

    async def is_complete() -> bool:
        transcode = await call("GET", f"{portal.base_url}/api/videos/{video_id}/transcode")
        has_all = transcode["stage"] == "ready" and transcode["remaining"] is None
        return has_all and transcode["storyboardUrl"] is not None

    await until(is_complete, timeout_s=120)
