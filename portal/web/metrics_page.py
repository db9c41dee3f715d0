"""`/metrics` for Prometheus, when METRICS is on; with METRICS_TOKEN for its bearers only."""

import asyncio
from hmac import compare_digest

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from quart import Blueprint, Response, request

from portal.errors import NotFound
from portal.telemetry.metrics import process_registry
from portal.videos.metrics_rows import Figures
from portal.web.auth import Policy, policy
from portal.web.context import web_context
from portal.web.service_metrics import FiguresCollector

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
@policy(Policy.ANYONE)
async def metrics() -> Response:
    """The figures of the web processes, and of the service if the database answers."""
    web = web_context()
    if not web.config.metrics:
        raise NotFound
    if not _is_allowed(web.config.metrics_token):
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'}
        return Response("Send METRICS_TOKEN as a bearer token.\n", 401, headers)
    figures = await web.figures.read()
    # Off the event loop: with several processes there are files to read.
    text = await asyncio.to_thread(_exposition, figures)
    response = Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)
    response.headers["Cache-Control"] = "no-store"
    return response


def _is_allowed(token: str) -> bool:
    given = request.headers.get("Authorization", "")
    return not token or compare_digest(given.encode(), f"Bearer {token}".encode())


def _exposition(figures: Figures | None) -> bytes:
    return generate_latest(process_registry()) + generate_latest(FiguresCollector(figures))
