"""Hypercorn's settings for every application that is served here."""

import logging

from hypercorn.config import Config as ServerConfig


def server_config(application: str, *, host: str, port: int) -> ServerConfig:
    """The settings an application is served with."""
    server = ServerConfig()
    server.application_path = application
    server.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    server.workers = 0
    server.worker_class = "uvloop"
    # A connection may be idle, and a request's headers may be on their way, for this long.
    server.keep_alive_timeout = 30.0
    # It would also end a request that takes longer, or whose response does; `app` limits both.
    server.read_timeout = None
    # Connections that wait to be accepted, in a rush after a restart; the system may allow fewer.
    server.backlog = 2048
    # Bytes of a request's headers; cookies and addresses are far shorter.
    server.h11_max_incomplete_size = 16 * 1024
    server.graceful_timeout = 3.0
    server.include_server_header = False
    # Through the root logger, in the portal's format, instead of a handler of its own.
    server.errorlog = logging.getLogger("hypercorn.error")
    return server
