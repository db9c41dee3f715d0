"""Outages of the database or storage: 503 within seconds, nothing written, and recovery."""

import asyncio
import socket
from time import monotonic

import pytest
from api_client import (
    UNKNOWN_VIDEO_ID,
    Client,
    app_client,
    counts,
    metadata,
    problem,
    run_sql,
    uploaded,
)
from quart import Response

from portal.config import Config
from portal.videos import publishing

FEW_SECONDS = 12
NOWHERE = "127.0.0.1:9"
REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'secret detail'; END $$;
"""
TRAPS = {
    "video": "TRIGGER trap BEFORE INSERT ON publications FOR EACH ROW",
    "job": "TRIGGER trap BEFORE INSERT ON procrastinate_jobs FOR EACH ROW",
    "commit": "CONSTRAINT TRIGGER trap AFTER INSERT ON publications DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW",
}
PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}


def storage_at(address: str) -> dict[str, str]:
    return dict.fromkeys(("s3_endpoint_url", "s3_public_endpoint_url"), f"http://{address}")


async def expect_unavailable(response: Response, code: str) -> None:
    await problem(response, 503, code)
    assert 1 <= int(response.headers["Retry-After"]) <= 60


async def test_database_away_gives_503_within_seconds_to_everyone(config: Config) -> None:
    async with app_client(config, database_url=f"postgresql://x@{NOWHERE}/x") as client:
        begun_at = monotonic()
        *answers, page = await asyncio.gather(
            client.get("/api/categories"),
            client.post("/api/videos/presign", json=PRESIGN),
            client.post("/api/videos", json=metadata(f"videos/{'0' * 32}.mp4")),
            client.get(f"/api/videos/{UNKNOWN_VIDEO_ID}"),
            client.get("/"),
        )
        assert monotonic() - begun_at < FEW_SECONDS
        for response in answers:
            await expect_unavailable(response, "database_unavailable")
        assert page.status_code == 503
        assert page.mimetype == "text/html"
        assert page.headers["Retry-After"]


async def test_storage_away_gives_503_within_seconds_and_writes_nothing(
    client: Client, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    body = metadata(await uploaded(client))
    async with app_client(config, **storage_at(NOWHERE)) as other:
        begun_at = monotonic()
        response = await other.post("/api/videos", json=body)
        assert monotonic() - begun_at < FEW_SECONDS
        await expect_unavailable(response, "storage_unavailable")
        assert await counts(config.database_url) == (0, 0)
    # One line, with the cause.
    log = capsys.readouterr().out
    assert "storage_unavailable: EndpointConnectionError(" in log
    assert "Traceback" not in log
    async with app_client(config) as mended:
        assert (await mended.post("/api/videos", json=body)).status_code == 201


async def test_storage_that_never_answers_gives_503_in_bounded_time(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publishing.HEAD_TIMEOUT_S < FEW_SECONDS
    monkeypatch.setattr(publishing, "HEAD_TIMEOUT_S", 0.5)
    async with app_client(config) as client:
        body = metadata(await uploaded(client))
    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with app_client(config, **storage_at(address)) as client:
            async with asyncio.timeout(FEW_SECONDS):
                response = await client.post("/api/videos", json=body)
            await expect_unavailable(response, "storage_unavailable")


@pytest.mark.parametrize("when", TRAPS)
async def test_creation_that_fails_half_way_leaves_neither_video_nor_job(
    client: Client, config: Config, when: str
) -> None:
    body = metadata(await uploaded(client))
    await run_sql(config.database_url, f"{REFUSE} CREATE {TRAPS[when]} EXECUTE FUNCTION refuse()")
    # No connection may be missing from the pool afterwards.
    for _ in range(config.database_pool_size + 2):
        answer = await client.post("/api/videos", json=body)
        assert "secret" not in str(await problem(answer, 500, "internal_error"))
    assert await counts(config.database_url) == (0, 0)
    await run_sql(config.database_url, "DROP FUNCTION refuse() CASCADE")
    assert (await client.post("/api/videos", json=body)).status_code == 201
    assert await counts(config.database_url) == (1, 1)
