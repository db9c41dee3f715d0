"""Makes the one Quart app that serves the JSON API, the pages and the playlists.

Owns what concerns every request: its id and log line, the security headers, and how errors
are shown (`rendering.py`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from time import perf_counter
from uuid import uuid4

from quart import Quart, Response, g, request

from portal import api, docs, health, pages, playback, rendering
from portal.assets import load_manifest, static_dist_dir, templates_dir
from portal.config import Config
from portal.errors import Unavailable
from portal.logs import bind, configure_logging
from portal.openapi import install_openapi
from portal.resources import Resources, open_resources
from portal.security import security_headers

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 64 * 1024
BODY_TIMEOUT_S = 20
# Built files carry a hash of their content in their name.
STATIC_MAX_AGE_S = 31_536_000
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Asked every few seconds by machines; their lines would bury the others.
QUIET_ENDPOINTS = frozenset({"health.healthz", "health.readyz", "static"})


def create_app(config: Config | None = None) -> Quart:
    """The app, with its settings from the environment unless given."""
    config = config or Config.from_env()
    configure_logging(config)
    app = Quart(
        "portal",
        static_folder=str(static_dist_dir()),
        static_url_path="/static",
        template_folder=str(templates_dir()),
    )
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["BODY_TIMEOUT"] = BODY_TIMEOUT_S
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = STATIC_MAX_AGE_S
    install_openapi(app)
    for module in (api, docs, health, pages, playback):
        app.register_blueprint(module.blueprint)
    rendering.install_error_handlers(app)
    _install_templates(app)
    _install_request_log(app)
    _install_lifespan(app, config)
    return app


def _install_templates(app: Quart) -> None:
    manifest = load_manifest(static_dist_dir())
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True

    @app.template_global()
    def asset_url(name: str) -> str:
        return f"/static/{manifest[name]}"


def _install_lifespan(app: Quart, config: Config) -> None:
    @app.while_serving
    async def resources() -> AsyncGenerator[None]:
        async with open_resources(config) as opened:
            app.extensions["portal"] = opened
            app.extensions["portal_headers"] = security_headers(
                config, await _storage_origin(opened)
            )
            yield


async def _storage_origin(resources: Resources) -> str:
    try:
        return await resources.storage.public_origin()
    except Unavailable as exc:
        # Without credentials there is nothing to sign with; `portal doctor` says what to do.
        logger.error("Storage is not configured: %s", exc.__cause__, extra={"action": "start"})
        return resources.config.s3_public_endpoint_url


def _install_request_log(app: Quart) -> None:
    @app.before_request
    async def begin() -> None:
        given = request.headers.get("X-Request-ID", "")
        g.request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        g.started_at = perf_counter()
        bind(request_id=g.request_id)

    @app.after_request
    async def end(response: Response) -> Response:
        response.headers.extend(app.extensions["portal_headers"])
        response.headers["X-Request-ID"] = g.request_id
        if request.endpoint not in QUIET_ENDPOINTS or response.status_code >= 400:
            logger.info(
                "%s %s %d",
                request.method,
                request.path,
                response.status_code,
                extra={
                    "action": "request",
                    "method": request.method,
                    "path": request.path,
                    "status": response.status_code,
                    "duration_ms": round((perf_counter() - g.started_at) * 1000, 1),
                },
            )
        return response
