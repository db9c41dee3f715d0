"""Headers of responses: one security policy for all, ETags, and who may cache what.

Pages with a player allow inline styles, which media-chrome writes into its shadow roots, and the
empty data: track of hls.js; their scripts stay strict. The player page for other sites may be
framed by some or all of them. What else others may load says so itself, by a
Cross-Origin-Resource-Policy of its own.
The answer to credentials is for who sent them, and no cache on its way may keep it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from hypercorn.typing import ASGIReceiveCallable as Receive
from hypercorn.typing import ASGISendCallable as Send
from hypercorn.typing import ASGISendEvent as SendEvent
from hypercorn.typing import HTTPScope
from quart import Response, request
from werkzeug.http import generate_etag

from portal.config import Config
from portal.web.cookies import has_session_cookie
from portal.web.server.context import SECRET_PATH, App, header, state_of

Headers = list[tuple[bytes, bytes]]

# Sets of sites that may frame something, whose headers are remembered.
REMEMBERED = 256
CACHE_CONTROL = b"cache-control"
# What an answer depends on beside the address: who asks.
VARY = (b"vary", b"Authorization, Cookie")
# Links and pictures of a page must not tell other sites, or other logs, its token.
NO_REFERRER = (b"referrer-policy", b"no-referrer")


class SecurityHeaders:
    """Adds the headers to every response that does not set them itself."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._policy: Callable[[str, bool], Headers] = lambda _, __: []

    def set(self, config: Config, storage_origin: str) -> None:
        """Use these from now on: storage's address is known only when the app has started."""
        self._policy = lru_cache(REMEMBERED)(
            lambda framed_by, has_player: _encoded(
                security_headers(config, storage_origin, framed_by, has_player=has_player)
            )
        )

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        async def sent(message: SendEvent) -> None:
            if message["type"] == "http.response.start":
                state = state_of(scope)
                found = _for_caches(list(message["headers"]), is_own=has_credentials(scope))
                if state.playback_token:
                    found.append(NO_REFERRER)
                names = {name for name, _ in found}
                added = self._policy(state.framed_by, state.has_player)
                message["headers"] = [*found, *(it for it in added if it[0] not in names)]
            await send(message)

        await self._app(scope, receive, sent)


def has_credentials(scope: HTTPScope) -> bool:
    """Whether the answer may be for its sender alone: by a token, a session, or a secret address.

    Any cookie by a session's name counts, however its value is written.
    """
    is_secret = SECRET_PATH.match(scope["path"]) is not None
    return is_secret or bool(header(scope, b"authorization")) or has_session_cookie(scope)


async def conditional_response(
    body: str | bytes,
    *,
    content_type: str = "application/json",
    cache_control: str = "no-cache",
    version: str = "",
) -> Response:
    """Return a response with an ETag; 304 if the current request names it.

    The ETag is a digest of the body, after the version of what clients may change, if given.
    """
    data = body.encode() if isinstance(body, str) else body
    response = Response(data, content_type=content_type)
    response.headers["Cache-Control"] = cache_control
    digest = generate_etag(data)
    response.set_etag(f"{version}.{digest}" if version else digest)
    return await response.make_conditional(request)


def _for_caches(headers: Headers, *, is_own: bool) -> Headers:
    """What caches on the way are told: nothing but what says public is the same for everyone."""
    said = b", ".join(value for name, value in headers if name == CACHE_CONTROL)
    if is_own and b"private" not in said and b"no-store" not in said:
        said = b"private, " + (said or b"no-store")
        headers = [*(it for it in headers if it[0] != CACHE_CONTROL), (CACHE_CONTROL, said)]
    return headers if b"public" in said else [*headers, VARY]


def security_headers(
    config: Config, storage_origin: str, framed_by: str = "", *, has_player: bool = False
) -> Mapping[str, str]:
    """The headers of every response; `framed_by` are the sites that may frame it, if any.

    Browsers PUT uploads to storage and read segments and posters from it, or from the CDN.
    """
    origins = (storage_origin, _origin(config.public_url), _origin(config.playback_base_url))
    media = " ".join(dict.fromkeys(origin for origin in origins if origin))
    policy = {
        "default-src": "'self'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'" if has_player else "'self'",
        "img-src": f"'self' data: {media}",
        "media-src": f"'self' blob: {'data: ' if has_player else ''}{media}",
        "connect-src": f"'self' {media}",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": framed_by or "'none'",
    }
    is_https = config.public_url.startswith("https://")
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "cross-origin" if framed_by else "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
        # It knows no way to name sites.
        **({} if framed_by else {"X-Frame-Options": "DENY"}),
        **({"Strict-Transport-Security": "max-age=31536000"} if is_https else {}),
    }


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
