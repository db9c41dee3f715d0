"""The worker sends what waits, and what another one that was killed was sending."""

from pathlib import Path

from api_client import run_sql, until_found
from http_server import make_certificate
from running_portal import call, create, process, run_portal, until
from webhook_receiver import receiving

DEAD = "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'"


async def test_event_is_sent_though_workers_are_killed_before_and_while_they_send(
    environ: dict[str, str], short_video: Path, tmp_path: Path
) -> None:
    """The receiver uses https, with a certificate that the worker trusts."""
    certificate = make_certificate(tmp_path)
    settings = {**environ, "SSL_CERT_FILE": str(certificate), "OUTGOING_NETWORKS": "127.0.0.0/8"}
    async with (
        receiving(is_open=False, certificate=certificate) as receiver,
        run_portal(settings, worker=False) as web,
    ):
        body = {"url": receiver.url, "events": ["video.created"]}
        webhook = await call("POST", f"{web.base_url}/api/webhooks", status=201, json=body)
        # There is no worker yet: the delivery was committed with the event.
        await create(web.base_url, short_video)
        async with process("worker", settings) as worker:
            await until(lambda: receiver.requests, timeout_s=20)
            worker.kill()
        await run_sql(environ["DATABASE_URL"], DEAD)
        receiver.gate.set()
        async with process("worker", settings):
            arrived = "SELECT 1 FROM webhook_deliveries WHERE status = 200"
            await until_found(environ["DATABASE_URL"], arrived)
        page = await call("GET", f"{web.base_url}/api/webhooks/{webhook['id']}/deliveries")
    assert [delivery["state"] for delivery in page["deliveries"]] == ["delivered"]
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1
