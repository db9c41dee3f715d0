"""Jobs that failed wait, for longer each time, and no longer than they have to."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from api_client import Client, published
from command_line import portal
from passes import pass_of
from procrastinate.jobs import Job
from stored_objects import unreachable

from portal.database.models import Attempt, Outcome
from portal.errors import StorageUnavailable
from portal.processing import attempts
from portal.storage.bucket import open_storage
from portal.transcoding.errors import DiskFull
from portal.web.composition import WebContext
from portal.worker.tasks import Retries


def pause_s(exception: BaseException, *, tried: int = 0) -> float:
    """How long a job waits that was tried so often before."""
    job = Job(
        id=1,
        queue="transcode",
        lock=None,
        queueing_lock=None,
        task_name="portal:transcode",
        attempts=tried,
    )
    decision = Retries().get_retry_decision(exception=exception, job=job)
    assert decision.retry_at is not None
    return (decision.retry_at - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize("exception", [StorageUnavailable(), DiskFull(Path("work"))])
def test_pauses_of_an_outage_grow_to_two_minutes(exception: Exception) -> None:
    assert 3 <= pause_s(exception) <= 10
    assert 35 <= pause_s(exception, tried=3) <= 80
    for tried in (6, 7, 100):
        assert 55 <= pause_s(exception, tried=tried) <= 120


async def test_operator_is_shown_what_a_job_waits_for(
    client: Client, resources: WebContext, environ: dict[str, str], tmp_path: Path
) -> None:
    record = await published(client)
    attempt = await attempts.begin(UUID(record["id"]), worker="test")
    assert attempt is not None
    async with open_storage(unreachable(resources.config)) as away:
        with pytest.raises(StorageUnavailable):
            await pass_of(attempt, replace(resources, storage=away), tmp_path).make_playable()

    ended = await Attempt.get(video_id=record["id"])
    assert (ended.outcome, ended.error_code) == (Outcome.HANDED_BACK, "storage_unavailable")
    assert "127.0.0.1:9" in (ended.error_detail or "")
    for command in (("queue",), ("videos", "show", record["id"])):
        code, out, _ = await portal(environ, *command)
        assert (code, "storage_unavailable" in out) == (0, True)
