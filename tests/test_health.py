"""What supervisors and load balancers are told."""

from __future__ import annotations

from dataclasses import replace

from api_kit import Client
from portal_kit import free_port

from portal.app import create_app
from portal.config import Config

NOWHERE = "http://127.0.0.1:{port}"


async def test_healthy_portal_says_so(client: Client) -> None:
    response = await client.get("/healthz")
    assert (response.status_code, await response.get_json()) == (200, {"status": "ok"})
    response = await client.get("/readyz")
    assert response.status_code == 200
    assert await response.get_json() == {"database": "ok", "storage": "ok"}


async def test_portal_without_storage_is_alive_but_not_ready(config: Config) -> None:
    app = create_app(replace(config, s3_endpoint_url=NOWHERE.format(port=free_port())))
    async with app.test_app():
        client = app.test_client()
        assert (await client.get("/healthz")).status_code == 200
        response = await client.get("/readyz")
        assert response.status_code == 503
        assert await response.get_json() == {"database": "ok", "storage": "unreachable"}


async def test_portal_without_its_bucket_is_not_ready(config: Config) -> None:
    app = create_app(replace(config, s3_bucket="no-such-bucket"))
    async with app.test_app():
        response = await app.test_client().get("/readyz")
        assert response.status_code == 503
        assert await response.get_json() == {"database": "ok", "storage": "unreachable"}


async def test_portal_without_a_database_is_alive_but_not_ready(config: Config) -> None:
    away = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    app = create_app(replace(config, database_url=away))
    async with app.test_app():
        client = app.test_client()
        assert (await client.get("/healthz")).status_code == 200
        response = await client.get("/readyz")
        assert response.status_code == 503
        assert await response.get_json() == {"database": "unreachable", "storage": "ok"}


async def test_health_is_not_cached_by_anyone(client: Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await client.get(path)).headers["Cache-Control"] == "no-store"
