"""Runs the app on Hypercorn."""

from __future__ import annotations

import logging
import os
from tempfile import TemporaryDirectory

import uvloop  # noqa: F401  # Hypercorn imports it by name; a missing one should fail here
from hypercorn.config import Config as ServerConfig
from hypercorn.run import run

from portal.config import Config
from portal.metrics import FOLDER_VARIABLE

KEEP_ALIVE_S = 30.0
# A slow client gets this long to send a request's headers.
READ_TIMEOUT_S = 30
SHUTDOWN_GRACE_S = 3.0


def serve(config: Config) -> int:
    """Serve until stopped; returns the process's exit code.

    One worker runs in this process; several run as its children.
    """
    server = server_config("portal.app:create_app()", host=config.host, port=config.port)
    server.workers = 0 if config.web_workers == 1 else config.web_workers
    if not (server.workers and config.metrics):
        return run(server)
    # What the processes count lies in files, new ones with every start.
    with TemporaryDirectory(prefix="portal-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        return run(server)


def server_config(application: str, *, host: str, port: int) -> ServerConfig:
    """The settings an application is served with."""
    server = ServerConfig()
    server.application_path = application
    server.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    server.workers = 0
    server.worker_class = "uvloop"
    server.keep_alive_timeout = KEEP_ALIVE_S
    server.read_timeout = READ_TIMEOUT_S
    server.graceful_timeout = SHUTDOWN_GRACE_S
    server.include_server_header = False
    # Through the root logger, in the portal's format, instead of a handler of its own.
    server.errorlog = logging.getLogger("hypercorn.error")
    return server
