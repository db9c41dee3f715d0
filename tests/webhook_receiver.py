"""A receiver of webhooks, and a worker in the test's process that sends to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from aiohttp import web
from api_client import Client, answered, rows
from http_server import listening
from running_portal import until

from portal.config import Config
from portal.features.webhooks import sending
from portal.queue.app import WorkerConnector, queue_app
from portal.queue.jobs import WEBHOOK_QUEUE
from portal.worker.run import WEBHOOK_CONCURRENCY

SETTINGS = {"outgoing_networks": (ip_network("127.0.0.0/8"),), "outgoing_allow_http": True}
DUE = "SELECT 1 FROM webhook_deliveries WHERE next_at <= now()"


@dataclass
class Receiver:
    """Receiver that records requests, and returns `status` once the gate is open."""

    url: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    requests: list[tuple[Mapping[str, str], str]] = field(default_factory=list)
    arrived_at: list[float] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.headers, await request.text()))
        self.arrived_at.append(time())
        await self.gate.wait()
        return web.Response(status=self.status, headers=self.headers, body=self.body)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]


@asynccontextmanager
async def receiving(
    *, is_open: bool = True, certificate: Path | None = None
) -> AsyncIterator[Receiver]:
    """Run a receiver, with https if it has a certificate."""
    receiver = Receiver()
    app = web.Application()
    if is_open:
        receiver.gate.set()
    app.router.add_route("*", "/hook", receiver.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    async with listening(runner, certificate) as address:
        receiver.url = f"{address}/hook"
        yield receiver


async def add_webhook(client: Client, url: str, *events: str, sender: Any = None) -> dict[str, Any]:
    """Create a webhook, for `video.created` by default."""
    body = {"url": url, "events": events or ["video.created"]}
    return await answered(await (sender or client).post("/api/webhooks", json=body), 201)


async def deliveries(client: Any, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a webhook's deliveries, the newest first."""
    body = await answered(await client.get(f"/api/webhooks/{webhook['id']}/deliveries"))
    listed: list[dict[str, Any]] = body["deliveries"]
    return listed


@asynccontextmanager
async def sending_worker(config: Config) -> AsyncIterator[None]:
    """Run a worker of the queue of webhooks."""
    queue = queue_app(WorkerConnector(config.database_url))
    # Deliveries use nothing else of a worker.
    tools: Any = SimpleNamespace(config=config)

    @queue.task(name="portal:send_webhook")
    async def send(webhook_id: str, lane: int) -> None:
        await sending.send(UUID(webhook_id), lane, tools)

    async with queue.open_async(), asyncio.TaskGroup() as group:
        work = queue.run_worker_async(
            queues=[WEBHOOK_QUEUE],
            concurrency=WEBHOOK_CONCURRENCY,
            fetch_job_polling_interval=0.05,
            install_signal_handlers=False,
        )
        worker = group.create_task(work)
        yield
        worker.cancel()


async def send_due(config: Config) -> None:
    """Send the due deliveries."""

    async def is_done() -> bool:
        return not await rows(config.database_url, DUE)

    async with sending_worker(config):
        await until(is_done, timeout_s=10, interval_s=0.02)
