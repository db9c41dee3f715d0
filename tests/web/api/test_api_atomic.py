"""Record and job are committed together: neither ever exists without the other."""

import pytest
from api_client import Client, counts, metadata, problem, run_sql, uploaded

from portal.config import Config

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN {action}; END $$;
"""
TRIGGERS = {
    "the video is not written": "CREATE TRIGGER trap BEFORE INSERT ON videos {run}",
    "the job is not written": "CREATE TRIGGER trap BEFORE INSERT ON procrastinate_jobs {run}",
    "the commit fails": (
        "CREATE CONSTRAINT TRIGGER trap AFTER INSERT ON videos DEFERRABLE INITIALLY DEFERRED {run}"
    ),
}


async def set_trap(config: Config, trigger: str, action: str) -> None:
    run = "FOR EACH ROW EXECUTE FUNCTION refuse()"
    await run_sql(config.database_url, REFUSE.format(action=action) + trigger.format(run=run))


async def remove_trap(config: Config) -> None:
    await run_sql(config.database_url, "DROP FUNCTION refuse() CASCADE")


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
async def test_failed_creation_leaves_neither_video_nor_job(
    client: Client, config: Config, trigger: str
) -> None:
    body = metadata(await uploaded(client))
    await set_trap(config, trigger, "RAISE EXCEPTION 'secret detail'")
    answer = await problem(await client.post("/api/videos", json=body), 500, "internal_error")
    assert "secret" not in str(answer)
    assert await counts(config.database_url) == (0, 0)
    await remove_trap(config)
    assert (await client.post("/api/videos", json=body)).status_code == 201
    assert await counts(config.database_url) == (1, 1)


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
async def test_connection_lost_in_mid_creation_leaves_neither_video_nor_job(
    client: Client, config: Config, trigger: str
) -> None:
    body = metadata(await uploaded(client))
    await set_trap(config, trigger, "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW")
    for _ in range(
        config.database_pool_size + 2
    ):  # no lost connection may be missing from the pool
        response = await client.post("/api/videos", json=body)
        await problem(response, 503, "database_unavailable")
        assert int(response.headers["Retry-After"]) > 0
    assert await counts(config.database_url) == (0, 0)
    await remove_trap(config)
    assert (await client.post("/api/videos", json=body)).status_code == 201
    assert await counts(config.database_url) == (1, 1)
