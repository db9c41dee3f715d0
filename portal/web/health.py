"""Health checks: `/healthz` (the process answers) and `/readyz` (its parts are reachable)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from quart import Blueprint, Response, jsonify
from tortoise.connection import get_connection

from portal.telemetry.logs import Tally
from portal.web.context import web_context

logger = logging.getLogger(__name__)

blueprint = Blueprint("health", __name__)

CHECK_TIMEOUT_S = 3
_unreachable = {
    part: Tally(logger, f"{part} is not reachable", action="readyz")
    for part in ("database", "storage")
}


@blueprint.get("/healthz")
async def healthz() -> Response:
    """200 as long as the process can answer; restart it otherwise."""
    return _uncached(status="ok")


@blueprint.get("/readyz")
async def readyz() -> tuple[Response, int]:
    """200 when database and storage are reachable, else 503; send traffic elsewhere.

    Anyone may ask, without a limit; those who ask at once share one check.
    """
    parts = await web_context().readiness.get("readyz", _check)
    body = _uncached(**{part: "ok" if works else "unreachable" for part, works in parts.items()})
    return body, 200 if all(parts.values()) else 503


async def _check() -> dict[str, bool]:
    database, storage = await asyncio.gather(
        _works("database", get_connection("default").execute_query("SELECT 1")),
        _works("storage", web_context().storage.check_bucket()),
    )
    return {"database": database, "storage": storage}


async def _works(part: str, check: Awaitable[object]) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check
    except Exception as exc:  # noqa: BLE001  # whatever it is, the part does not work
        _unreachable[part].add(exc)
        return False
    return True


def _uncached(**members: str) -> Response:
    response = jsonify(**members)
    response.headers["Cache-Control"] = "no-store"
    return response
