"""Serving of the app with Hypercorn."""

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import AsyncGenerator
from multiprocessing import parent_process
from tempfile import TemporaryDirectory
from typing import Any

import uvloop  # noqa: F401  # Hypercorn imports it by name; a missing one should fail here
from hypercorn.config import Config as ServerConfig
from hypercorn.run import run
from quart import Quart

from portal.config import Config
from portal.telemetry.metrics import FOLDER_VARIABLE
from portal.web.app import create_app

logger = logging.getLogger(__name__)


def serve(config: Config) -> int:
    """Serve until stopped, and return the exit code of the process.

    A single worker runs in this process, several run as its children.
    """
    raise_descriptor_limit()
    server = server_config("portal.web.serve:web_app()", host=config.host, port=config.port)
    server.workers = 0 if config.web_workers == 1 else config.web_workers
    if not (server.workers and config.metrics):
        return run(server)
    # The processes write their counters to files, which start empty.
    with TemporaryDirectory(prefix="portal-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        return run(server)


def server_config(application: str, *, host: str, port: int) -> ServerConfig:
    """Return the settings of the server."""
    server = ServerConfig()
    server.application_path = application
    server.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    server.workers = 0
    server.worker_class = "uvloop"
    # A connection may be idle, and a request's headers may be on their way, for this long.
    # Hypercorn holds closed connections as long, at 13 kB each.
    server.keep_alive_timeout = 10.0
    # This limit would also end slow requests and responses, which Quart limits itself.
    server.read_timeout = None
    # Connections that wait to be accepted, in a rush after a restart; the system may allow fewer.
    server.backlog = 2048
    # Bytes of a request's headers; cookies and addresses are far shorter.
    server.h11_max_incomplete_size = 16 * 1024
    server.graceful_timeout = 3.0
    server.include_server_header = False
    # The root logger writes in the portal's format, unlike Hypercorn's handler.
    server.errorlog = logging.getLogger("hypercorn.error")
    return server


def raise_descriptor_limit() -> None:
    """Raise the soft limit on open files to the hard limit.

    The soft limit is 1024 on most systems, fewer than the viewers of one process.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that reached the event loop: as one line if a connection raised it."""
    error = context.get("exception")
    if isinstance(error, asyncio.CancelledError):
        # Python 3.11 reports connections that Hypercorn cancels after `graceful_timeout`.
        return
    if "transport" in context:
        # For example a request that Hypercorn can't read.
        logger.warning(
            "Connection closed: %s", type(error).__name__, extra={"action": "connection_closed"}
        )
        return
    loop.default_exception_handler(context)


def web_app() -> Quart:
    """Return the app of one web process."""
    app = create_app()
    if (parent := parent_process()) is not None:
        # Hypercorn ends its processes by an event, and sends SIGTERM to the others as soon as the
        # first has ended, before they have finished their requests.
        signal.signal(signal.SIGTERM, lambda *_: parent.is_alive() or os._exit(1))

    @app.while_serving
    async def started() -> AsyncGenerator[None]:
        asyncio.get_running_loop().set_exception_handler(log_loop_error)
        # Loaded modules stay in memory. Scanning them for garbage delays requests by tens of
        # milliseconds.
        gc.collect()
        gc.freeze()
        yield

    return app
