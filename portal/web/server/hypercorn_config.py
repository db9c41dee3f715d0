"""Hypercorn's settings for every application that is served here."""

from __future__ import annotations

import logging

from hypercorn.config import Config as ServerConfig

# A connection may be idle, and a request's headers may be on their way, for this long.
KEEP_ALIVE_S = 30.0
# Connections that wait to be accepted, in a rush after a restart; the system may allow fewer.
BACKLOG = 2048
# Of a request; cookies and addresses are far shorter.
MAX_HEADERS_BYTES = 16 * 1024
SHUTDOWN_GRACE_S = 3.0


def server_config(application: str, *, host: str, port: int) -> ServerConfig:
    """The settings an application is served with."""
    server = ServerConfig()
    server.application_path = application
    server.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    server.workers = 0
    server.worker_class = "uvloop"
    server.keep_alive_timeout = KEEP_ALIVE_S
    # It would also end a request that takes longer, or whose response does; `app` limits both.
    server.read_timeout = None
    server.backlog = BACKLOG
    server.h11_max_incomplete_size = MAX_HEADERS_BYTES
    server.graceful_timeout = SHUTDOWN_GRACE_S
    server.include_server_header = False
    # Through the root logger, in the portal's format, instead of a handler of its own.
    server.errorlog = logging.getLogger("hypercorn.error")
    return server
