"""The middlewares of a web process, in the order in which a request meets them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from portal.config import Config
from portal.errors import PortalError
from portal.web.server.asgi import App, Receive, Scope, Send
from portal.web.server.client_address import ClientAddress
from portal.web.server.concurrency_limit import ConcurrencyLimit
from portal.web.server.error_responses import ErrorResponses
from portal.web.server.hosts import HostCheck
from portal.web.server.origins import OriginCheck
from portal.web.server.playback_prefix import PlaybackPrefix
from portal.web.server.rate_limit import RateLimit
from portal.web.server.request_context import RequestContext
from portal.web.server.request_validation import RequestValidation
from portal.web.server.security_headers import Policies, SecurityHeaders

Middleware = Callable[[App], App]


def middlewares(
    config: Config, *, policies: Policies, render_page: Callable[[PortalError], Awaitable[bytes]]
) -> list[Middleware]:
    """All of them: each takes the app that comes after it."""
    return [
        partial(RequestContext, is_counted=config.metrics),
        partial(SecurityHeaders, policies=policies),
        partial(ErrorResponses, render_page=render_page),
        RequestValidation,
        partial(HostCheck, public_url=config.public_url, allowed=config.allowed_hosts),
        partial(OriginCheck, public_url=config.public_url),
        partial(ClientAddress, trusted_proxies=config.trusted_proxies),
        partial(ConcurrencyLimit, limit=config.max_concurrent_requests),
        partial(RateLimit, config=config),
        PlaybackPrefix,
    ]


def stacked(framework: Any, stack: list[Middleware]) -> Any:
    """The framework's ASGI app behind these middlewares, which meet its HTTP requests alone."""
    http: App = framework
    for middleware in reversed(stack):
        http = middleware(http)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            # RFC 6455 section 7.4.1: against the policy.
            await send({"type": "websocket.close", "code": 1008, "reason": None})
        else:
            await framework(scope, receive, send)

    return app
