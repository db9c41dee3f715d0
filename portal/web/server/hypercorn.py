"""Runs the app on Hypercorn, with limits on what clients may do to it."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import AsyncGenerator
from tempfile import TemporaryDirectory

import uvloop  # noqa: F401  # Hypercorn imports it by name; a missing one should fail here
from hypercorn.config import Config as ServerConfig
from hypercorn.run import run
from quart import Quart

from portal.config import Config
from portal.telemetry.metrics import FOLDER_VARIABLE
from portal.web.app import create_app
from portal.web.server import connection_limit

# A connection may be idle, and a request's headers may be on their way, for this long.
KEEP_ALIVE_S = 30.0
# Connections that wait to be accepted, in a rush after a restart; the system may allow fewer.
BACKLOG = 2048
# Of a request; cookies and addresses are far shorter.
MAX_HEADERS_BYTES = 16 * 1024
SHUTDOWN_GRACE_S = 3.0


def serve(config: Config) -> int:
    """Serve until stopped; returns the process's exit code.

    One worker runs in this process; several run as its children.
    """
    server = server_config(
        "portal.web.server.hypercorn:limited_app()", host=config.host, port=config.port
    )
    server.workers = 0 if config.web_workers == 1 else config.web_workers
    if not (server.workers and config.metrics):
        return run(server)
    # What the processes count lies in files, new ones with every start.
    with TemporaryDirectory(prefix="portal-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        return run(server)


def limited_app() -> Quart:
    """The app of one web process, which holds no more connections than its settings allow."""
    config = Config.from_env()
    app = create_app(config)
    connection_limit.install(config.max_connections)

    @app.while_serving
    async def started() -> AsyncGenerator[None]:
        # What is loaded now stays; looking through it for garbage holds requests up for tens of
        # milliseconds.
        gc.collect()
        gc.freeze()
        yield

    return app


def server_config(application: str, *, host: str, port: int) -> ServerConfig:
    """The settings an application is served with."""
    server = ServerConfig()
    server.application_path = application
    server.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    server.workers = 0
    server.worker_class = "uvloop"
    server.keep_alive_timeout = KEEP_ALIVE_S
    # It would also end a request that takes longer, or whose answer does; `app` limits both.
    server.read_timeout = None
    server.backlog = BACKLOG
    server.h11_max_incomplete_size = MAX_HEADERS_BYTES
    server.graceful_timeout = SHUTDOWN_GRACE_S
    server.include_server_header = False
    # Through the root logger, in the portal's format, instead of a handler of its own.
    server.errorlog = logging.getLogger("hypercorn.error")
    return server
