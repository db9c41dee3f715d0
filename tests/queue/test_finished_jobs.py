"""Finished jobs are deleted after some time, and pages work without them."""

from dataclasses import replace

import pytest
from aged_videos import tidy
from api_client import Client, published, rows, run_sql
from command_line import portal
from page_rows import READY, change_video

from portal.http.composition import WebContext
from portal.queue import rows as queue_rows

ENDED = """
UPDATE procrastinate_jobs SET status = 'doing' WHERE id = {id};
UPDATE procrastinate_jobs SET status = '{status}' WHERE id = {id};
UPDATE procrastinate_events SET at = now() - interval '{age}' WHERE job_id = {id};
"""


async def job_of(client: Client, resources: WebContext, *, status: str, age: str) -> int:
    """Insert a video whose job has had this status for `age`. Return the job's id."""
    job_id = int((await published(client))["transcodeJobId"])
    await run_sql(resources.config.database_url, ENDED.format(id=job_id, status=status, age=age))
    return job_id


async def test_janitor_deletes_finished_jobs_after_their_retention(
    client: Client, resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_rows, "PRUNE_BATCH", 3)
    for status in ("succeeded", "failed", "cancelled", "aborted"):
        await job_of(client, resources, status=status, age="31 days")
    recent = await job_of(client, resources, status="succeeded", age="29 days")
    waiting = await job_of(client, resources, status="todo", age="400 days")

    forever = replace(resources, config=replace(resources.config, keep_jobs_days=0))
    assert (await tidy(forever))["jobs"] == 0
    assert (await tidy(resources))["jobs"] == 4
    query = "SELECT id FROM procrastinate_jobs ORDER BY id"
    assert await rows(resources.config.database_url, query) == [(recent,), (waiting,)]
    assert (await tidy(resources))["jobs"] == 0


async def test_video_whose_job_is_gone_is_shown_and_deleted(
    client: Client, resources: WebContext, environ: dict[str, str]
) -> None:
    record = await published(client)
    await change_video(record["id"], **{**READY, "has_poster": False})
    await run_sql(resources.config.database_url, "DELETE FROM procrastinate_jobs")

    for path in ("", "/transcode"):
        assert (await client.get(f"/api/videos/{record['id']}{path}")).status_code == 200
    assert (await client.get(f"/videos/{record['id']}")).status_code == 200
    code, out, _ = await portal(environ, "videos", "show", record["id"])
    assert (code, "0 jobs" in out) == (0, True)
    assert (await client.post(f"/videos/{record['id']}/delete")).status_code == 303
