"""Playback prefix: takes the token out of `/p/<token>/…`, an address with leave to watch in it.

What comes after is an address of the app, which is told the rest as its root path: addresses that
it makes for the answer have the token in front, too.
"""

import re

from portal.web.server.asgi import App, HTTPScope, Receive, Send, Start, on_start
from portal.web.server.request_context import state_of

PREFIX = re.compile(r"/p/(?P<token>[^/]+)(?=/(?!/))")


class PlaybackPrefix:
    """Sets the playback token in a request's state, and the root path."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        if found := PREFIX.match(scope["path"]):
            state_of(scope).playback_token = found["token"]
            scope["root_path"] = found[0]
            send = on_start(send, _tell_nobody)
        await self._app(scope, receive, send)


def _tell_nobody(start: Start) -> None:
    """Links and pictures of the page must not tell other sites, or other logs, its address."""
    start["headers"] = [*start["headers"], (b"referrer-policy", b"no-referrer")]
