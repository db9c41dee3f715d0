"""Health checks for supervisors and load balancers."""

from pathlib import Path

import pytest
from api_client import Client, app_client

from portal.config import Config

NOWHERE = "http://127.0.0.1:9"
WORKS = {"database": "ok", "storage": "ok"}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, what answers does so in time."""
    monkeypatch.setattr("portal.web.monitoring.CHECK_TIMEOUT_S", 30)


async def readiness(client: Client) -> tuple[int, dict[str, str]]:
    response = await client.get("/readyz")
    return response.status_code, await response.get_json()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, {}),
        ({"s3_endpoint_url": NOWHERE}, {"storage": "unreachable"}),
        ({"s3_bucket": "no-such-bucket"}, {"storage": "unreachable"}),
        pytest.param(
            {"database_url": "postgresql://x@127.0.0.1:9/x"},
            {"database": "unreachable"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["healthy", "storage", "its bucket", "a database"],
)
async def test_portal_without_a_part_is_alive_but_not_ready(
    config: Config, changes: dict[str, str], fault: dict[str, str]
) -> None:
    async with app_client(config, **changes) as client:
        response = await client.get("/healthz")
        assert (response.status_code, await response.get_json()) == (200, {"status": "ok"})
        assert await readiness(client) == (503 if fault else 200, WORKS | fault)


async def test_storage_that_refuses_credentials_differs_from_unreachable_storage(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    async with app_client(config) as client:
        assert await readiness(client) == (503, {"database": "ok", "storage": "denied"})


async def test_processes_that_keep_failing_are_named(config: Config, tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    async with app_client(config, failing_processes_file=failing) as client:
        assert await readiness(client) == (200, WORKS)
        failing.write_text("worker\ndatabase\n")
        assert await readiness(client) == (200, {**WORKS, "worker": "restarting"})
    failing.write_text("storage\n")
    changes = {"failing_processes_file": failing, "s3_endpoint_url": NOWHERE}
    async with app_client(config, **changes) as client:
        assert await readiness(client) == (503, {"database": "ok", "storage": "restarting"})
