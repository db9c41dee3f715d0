"""A worker's logs name the request that a job goes back to."""

import json
from pathlib import Path
from typing import Any

import pytest
from api_client import rows, run_sql
from running_portal import LivePortal, call, create, final_status, process, run_portal, until

from portal.telemetry.logs import log_context
from portal.telemetry.spans import current_trace_context, traced_job


def lines_of_job(log: Path, job_id: int) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line.get("job_id") == job_id]


async def retried(portal: LivePortal, video_id: str, request_id: str) -> int:
    """Ask for another try of a failed video; returns the job's id."""
    headers = {"X-Request-ID": request_id}
    url = f"{portal.base_url}/api/videos/{video_id}/transcode"
    await call("POST", url, status=202, headers=headers)
    query = "SELECT transcode_job_id FROM videos WHERE id = %s"
    ((job_id,),) = await rows(portal.environ["DATABASE_URL"], query, video_id)
    return int(job_id)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """No video: a worker is done with it at once."""
    path = tmp_path / "notes.mp4"
    path.write_text("These are notes, not a video.\n" * 100)
    return path


@pytest.mark.slow
async def test_logs_of_a_job_name_the_request_that_asked_for_it(
    environ: dict[str, str], notes: Path, tmp_path: Path
) -> None:
    environ = {**environ, "LOG_FORMAT": "json"}
    log = tmp_path / "worker.log"
    async with run_portal(environ, worker=False, log_dir=tmp_path) as portal:
        video = await create(portal.base_url, notes, request_id="the-create-call")
        async with process("worker", environ, log_dir=tmp_path):
            assert await final_status(portal.base_url, video["id"]) == "failed"
            retry_id = await retried(portal, video["id"], "the-retry-call")
            await until_done(portal, retry_id)

        old_id = await retried(portal, video["id"], "forgotten")
        # As a version of the portal before this one would have queued it.
        change = f"UPDATE procrastinate_jobs SET args = args - 'cause' WHERE id = {old_id}"
        await run_sql(portal.environ["DATABASE_URL"], change)
        async with process("worker", environ, log_dir=tmp_path):
            await until_done(portal, old_id)
        assert await final_status(portal.base_url, video["id"]) == "failed"

    assert lines_of_job(log, retry_id)
    assert lines_of_job(log, old_id)
    first = lines_of_job(log, int(video["transcodeJobId"]))
    assert first
    assert {line["request_id"] for line in first} == {"the-create-call"}
    assert {line["video_id"] for line in first} == {video["id"]}
    assert {line["request_id"] for line in lines_of_job(log, retry_id)} == {"the-retry-call"}
    assert not any("request_id" in line for line in lines_of_job(log, old_id))


async def until_done(portal: LivePortal, job_id: int) -> None:
    """Wait for the end of a job, which comes after that of its work."""
    query = "SELECT 1 FROM procrastinate_jobs WHERE id = %s AND status = 'succeeded'"
    await until(lambda: rows(portal.environ["DATABASE_URL"], query, job_id), timeout_s=60)


async def test_a_job_of_a_job_goes_back_to_the_same_request() -> None:
    assert current_trace_context() == {}
    with traced_job("test", {"request_id": "first"}, video_id="1"):
        assert current_trace_context() == {"request_id": "first"}
    with log_context(request_id="second"):
        assert current_trace_context() == {"request_id": "second"}
