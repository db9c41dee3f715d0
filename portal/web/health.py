"""Health checks: `/healthz` (the process answers) and `/readyz` (its parts are reachable)."""

import asyncio
import logging
from collections.abc import Awaitable
from pathlib import Path

from quart import Blueprint, Response, jsonify
from tortoise.connection import get_connection

from portal.errors import StorageDenied
from portal.telemetry.logs import Tally
from portal.web.auth import Policy, policy
from portal.web.context import web_context

logger = logging.getLogger(__name__)

blueprint = Blueprint("health", __name__)

CHECK_TIMEOUT_S = 3
NEEDED = ("database", "storage")
_unreachable = {part: Tally(logger, f"{part} is not reachable", action="readyz") for part in NEEDED}


@blueprint.get("/healthz")
@policy(Policy.ANYONE)
async def healthz() -> Response:
    """200 as long as the process can answer; restart it otherwise."""
    return _uncached(status="ok")


@blueprint.get("/readyz")
@policy(Policy.ANYONE)
async def readyz() -> tuple[Response, int]:
    """200 when database and storage are reachable, else 503; send traffic elsewhere.

    Storage that refuses the portal's credentials is `denied`. Under `portal up` a process that
    keeps failing is named, too, as `restarting`.
    Anyone may ask, without a limit; those who ask at once share one check.
    """
    parts = await web_context().readiness.get("readyz", _check)
    is_ready = all(parts[part] == "ok" for part in NEEDED)
    return _uncached(**parts), 200 if is_ready else 503


async def _check() -> dict[str, str]:
    context = web_context()
    database, storage, failing = await asyncio.gather(
        _state("database", get_connection("default").execute_query("SELECT 1")),
        _state("storage", context.storage.check_bucket()),
        asyncio.to_thread(_failing_processes, context.config.failing_processes_file),
    )
    parts = dict.fromkeys(failing, "restarting")
    for part, state in zip(NEEDED, (database, storage), strict=True):
        if state != "unreachable" or part not in parts:
            parts[part] = state
    return parts


def _failing_processes(file: Path | None) -> list[str]:
    """The names that `portal up` has written to its file, one a line."""
    try:
        return file.read_text().split() if file else []
    except OSError:
        return []


async def _state(part: str, check: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check
    except Exception as exc:  # noqa: BLE001  # whatever it is, the part does not work
        _unreachable[part].add(exc)
        return "denied" if isinstance(exc, StorageDenied) else "unreachable"
    return "ok"


def _uncached(**members: str) -> Response:
    response = jsonify(**members)
    response.headers["Cache-Control"] = "no-store"
    return response
