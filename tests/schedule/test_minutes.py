"""A worker that starts applies what became due before."""

import pytest
from api_client import rows, until_found
from library_rows import Rows
from running_portal import LivePortal, process

# What is due was missed by workers that ended an hour ago.
PLAN = """
INSERT INTO schedules (video_id, publish_at, unpublish_at)
VALUES (%s, now() - interval '1 hour', now() + interval '1 day')
"""
IS_PUBLISHED = """
SELECT FROM publications JOIN schedules ON video_id = id
WHERE visibility = 'public' AND publish_at IS NULL AND unpublish_at IS NOT NULL
"""
MINUTES = "SELECT status::text FROM procrastinate_jobs WHERE queue_name = 'minutes'"
NO_MINUTE = f"SELECT WHERE NOT EXISTS ({MINUTES})"


@pytest.mark.slow
async def test_worker_applies_what_became_due_and_keeps_no_job_of_a_minute(
    web: LivePortal,
) -> None:
    url = web.environ["DATABASE_URL"]
    video_rows = Rows(url)
    video_id = await video_rows.add(1, "Harbour at dawn")
    await video_rows.run("UPDATE publications SET visibility = 'private'")
    await video_rows.run(PLAN, video_id)
    async with process("worker", web.environ), process("worker", web.environ):
        await until_found(url, IS_PUBLISHED)
        await until_found(url, NO_MINUTE)
    query = "SELECT type, actor_kind FROM events WHERE type IS NOT NULL"
    assert await rows(url, query) == [("video.updated", "portal")]
