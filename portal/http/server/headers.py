"""Headers of responses: the security policy, ETags and caching.

Pages with a player allow inline styles, which media-chrome writes into its shadow roots, and the
empty data: track of hls.js; their scripts stay strict. The page that records may use the devices
and an encoder of sound in WebAssembly, whose worker is a blob. Some or all sites may frame the
player page for other sites. Other responses that sites may load set their own
Cross-Origin-Resource-Policy.
Shared caches must not keep the response to a request with credentials.
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
from portal.http.cookies import has_admitting_cookie, has_session_cookie
from portal.http.server.context import SECRET_PATH, App, header, state_of

Headers = list[tuple[bytes, bytes]]

# Headers that let pages of any site read a response, without credentials of its visitor.
OPEN_TO_ALL = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
# Number of cached header sets, one for each set of framing sites.
POLICY_CACHE_SIZE = 256
CACHE_CONTROL = b"cache-control"
# Request headers that identify the sender, on which responses depend.
VARY = (b"vary", b"Authorization, Cookie")
# The same for texts in the reader's language.
VARY_BY_LANGUAGE = (b"vary", b"Authorization, Cookie, Accept-Language, Portal-Language")
# The token in a page's address must not reach other sites through its links and pictures.
NO_REFERRER = (b"referrer-policy", b"no-referrer")
# Other parts of a page about a video refresh on this event.
VIDEO_CHANGED = {"HX-Trigger": '{"video-changed": {"target": "body"}}'}


class SecurityHeaders:
    """ASGI middleware that adds the headers which a response does not set itself."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._policy: Callable[[str, bool, bool], Headers] = lambda *_: []

    def set(self, config: Config, storage_origin: str) -> None:
        """Set the policy. Storage's address is known only after the start of the app."""
        self._policy = lru_cache(POLICY_CACHE_SIZE)(
            lambda framed_by, has_player, has_recorder: _encoded(
                security_headers(
                    config,
                    storage_origin,
                    framed_by,
                    has_player=has_player,
                    has_recorder=has_recorder,
                )
            )
        )

    async def __call__(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the security headers to its response."""

        async def sent(message: SendEvent) -> None:
            if message["type"] == "http.response.start":
                state = state_of(scope)
                headers = _for_caches(
                    list(message["headers"]),
                    is_own=has_credentials(scope),
                    vary=VARY_BY_LANGUAGE if state.language else VARY,
                )
                if state.playback_token:
                    headers.append(NO_REFERRER)
                names = {name for name, _ in headers}
                policy = self._policy(state.framed_by, state.has_player, state.has_recorder)
                message["headers"] = headers + [pair for pair in policy if pair[0] not in names]
            await send(message)

        await self._app(scope, receive, sent)


def has_credentials(scope: HTTPScope) -> bool:
    """Return whether a request has a token, a cookie that admits, or a secret path.

    The response may be for its sender alone. A cookie counts whatever its value is.
    """
    is_secret = SECRET_PATH.match(scope["path"]) is not None
    has_cookie = has_session_cookie(scope) or has_admitting_cookie(scope)
    return is_secret or bool(header(scope, b"authorization")) or has_cookie


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


def _for_caches(headers: Headers, *, is_own: bool, vary: tuple[bytes, bytes]) -> Headers:
    """Return the headers with instructions for caches.

    Only a `public` response is the same for all senders.
    """
    control = b", ".join(value for name, value in headers if name == CACHE_CONTROL)
    if is_own and b"private" not in control and b"no-store" not in control:
        control = b"private, " + (control or b"no-store")
        headers = [pair for pair in headers if pair[0] != CACHE_CONTROL]
        headers.append((CACHE_CONTROL, control))
    return headers if b"public" in control else [*headers, vary]


def security_headers(
    config: Config,
    storage_origin: str,
    framed_by: str = "",
    *,
    has_player: bool = False,
    has_recorder: bool = False,
) -> Mapping[str, str]:
    """Return the headers of a response that the sites in `framed_by` may frame.

    Browsers send uploads to storage, and load segments and posters from storage or the CDN.
    """
    origins = (storage_origin, _origin(config.public_url), _origin(config.playback_base_url))
    media = " ".join(dict.fromkeys(origin for origin in origins if origin))
    policy = {
        "default-src": "'self'",
        "script-src": "'self' 'wasm-unsafe-eval'" if has_recorder else "'self'",
        "style-src": "'self' 'unsafe-inline'" if has_player else "'self'",
        "img-src": f"'self' data: {media}",
        "media-src": f"'self' blob: {'data: ' if has_player else ''}{media}",
        "connect-src": f"'self' {media}",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": framed_by or "'none'",
    }
    if has_recorder:
        policy["worker-src"] = "'self' blob:"
    devices = "self" if has_recorder else ""
    is_https = config.public_url.startswith("https://")
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "cross-origin" if framed_by else "same-origin",
        "Permissions-Policy": f"camera=({devices}), microphone=({devices}), "
        f"display-capture=({devices}), geolocation=()",
        # X-Frame-Options can't name sites.
        **({} if framed_by else {"X-Frame-Options": "DENY"}),
        **({"Strict-Transport-Security": "max-age=31536000"} if is_https else {}),
    }


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
