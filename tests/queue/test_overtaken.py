"""When a pass should end for a first pass that waits."""

import pytest
from api_client import run_sql

from portal.queue.rows import is_overtaken
from portal.web.composition import WebContext

JOB = """
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, args, status,
                                scheduled_at)
VALUES ({id}, 'transcode', 'portal:{task}', {priority}, 'video:{lock}', '{{}}', '{status}', {at});
"""
FIRST, LATER = -1000, -1_000_001_000


def job(id: int, task: str, priority: int, status: str, *, lock: int = 0, at: str = "NULL") -> str:
    return JOB.format(id=id, task=task, priority=priority, status=status, lock=lock or id, at=at)


COMPLETION = job(1, "complete", LATER, "doing")
WAITING = job(9, "encode", FIRST, "todo")


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (COMPLETION + WAITING, True),
        (COMPLETION, False),
        (COMPLETION + job(9, "complete", LATER + 10, "todo"), False),
        (COMPLETION + job(9, "encode", FIRST, "todo", at="now() + interval '1 minute'"), False),
        (COMPLETION + job(9, "encode", FIRST, "todo", lock=1), False),
        (job(1, "encode", FIRST, "doing") + job(9, "encode", FIRST - 1, "todo"), False),
        (job(1, "encode", FIRST - 1, "doing") + WAITING, True),
        # Of several that run, the one that is due last ends.
        (COMPLETION + job(2, "complete", LATER - 5, "doing") + WAITING, False),
        (COMPLETION + job(2, "complete", LATER + 5, "doing") + WAITING, True),
    ],
)
async def test_only_what_is_due_before_and_has_no_other_slot_overtakes(
    resources: WebContext, jobs: str, *, expected: bool
) -> None:
    await run_sql(resources.config.database_url, jobs)
    assert await is_overtaken(1) is expected
