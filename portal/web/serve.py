"""Runs the app on Hypercorn, with limits on what clients may do to it."""

import gc
import os
from collections.abc import AsyncGenerator
from tempfile import TemporaryDirectory

import uvloop  # noqa: F401  # Hypercorn imports it by name; a missing one should fail here
from hypercorn.run import run
from quart import Quart

from portal.config import Config
from portal.telemetry.metrics import FOLDER_VARIABLE
from portal.web.app import create_app
from portal.web.server import connection_limit, http1
from portal.web.server.hypercorn_config import server_config


def serve(config: Config) -> int:
    """Serve until stopped; returns the process's exit code.

    One worker runs in this process; several run as its children.
    """
    server = server_config("portal.web.serve:limited_app()", host=config.host, port=config.port)
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
    http1.install()

    @app.while_serving
    async def started() -> AsyncGenerator[None]:
        # What is loaded now stays; looking through it for garbage holds requests up for tens of
        # milliseconds.
        gc.collect()
        gc.freeze()
        yield

    return app
