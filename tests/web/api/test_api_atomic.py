"""Record and job are committed together: neither ever exists without the other."""

import pytest
from api_client import Client, counts, metadata, problem, run_sql, uploaded

from portal.config import Config

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN {action}; END $$;
"""
LOSE_CONNECTION = "PERFORM pg_terminate_backend(pg_backend_pid())"
TRIGGERS = {
    "the video is not written": "CREATE TRIGGER trap BEFORE INSERT ON videos {run}",
    "the job is not written": "CREATE TRIGGER trap BEFORE INSERT ON procrastinate_jobs {run}",
    "the commit fails": (
        "CREATE CONSTRAINT TRIGGER trap AFTER INSERT ON videos DEFERRABLE INITIALLY DEFERRED {run}"
    ),
}
FAULTS = {
    "an error": ("RAISE EXCEPTION 'secret detail'", 500, "internal_error"),
    "a lost connection": (f"{LOSE_CONNECTION}; RETURN NEW", 503, "database_unavailable"),
}


async def set_trap(config: Config, trigger: str, action: str) -> None:
    run = "FOR EACH ROW EXECUTE FUNCTION refuse()"
    await run_sql(config.database_url, REFUSE.format(action=action) + trigger.format(run=run))


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
@pytest.mark.parametrize(("action", "status", "code"), FAULTS.values(), ids=FAULTS)
async def test_creation_that_fails_half_way_leaves_neither_video_nor_job(
    client: Client, config: Config, trigger: str, action: str, status: int, code: str
) -> None:
    body = metadata(await uploaded(client))
    await set_trap(config, trigger, action)
    # No lost connection may be missing from the pool.
    for _ in range(config.database_pool_size + 2):
        response = await client.post("/api/videos", json=body)
        assert "secret" not in str(await problem(response, status, code))
        assert ("Retry-After" in response.headers) is (status == 503)
    assert await counts(config.database_url) == (0, 0)
    await run_sql(config.database_url, "DROP FUNCTION refuse() CASCADE")
    assert (await client.post("/api/videos", json=body)).status_code == 201
    assert await counts(config.database_url) == (1, 1)
