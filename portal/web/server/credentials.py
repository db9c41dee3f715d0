"""Whether a request carries what tells who sent it: an API token, the cookie of a session, or an
address with a secret in it.
"""

from collections.abc import Iterator

from portal.accounts.secrets import digest
from portal.web.server.asgi import HTTPScope, header
from portal.web.server.request_context import SECRET_PATH

# Browsers take a cookie of the first name from https alone, for this very host (RFC 6265bis).
SECURE_COOKIE = "__Host-portal"
PLAIN_COOKIE = "portal_session"
_NAMES = (SECURE_COOKIE, PLAIN_COOKIE)


def has_session_cookie(scope: HTTPScope) -> bool:
    """Whether a browser sent the cookie of a session, however its value is written."""
    return any(name in text for text in _cookies(scope) for name in _NAMES)


def credential_digests(scope: HTTPScope) -> Iterator[str]:
    """The digests of what may be a token, or else of what may be the cookie of a session."""
    scheme, _, token = header(scope, b"authorization").partition(" ")
    if scheme.lower() == "bearer":
        yield digest(token.strip())
        return
    pairs = (pair.strip().partition("=") for text in _cookies(scope) for pair in text.split(";"))
    values = [value for name, _, value in pairs if name in _NAMES]
    # More than one of each name is none of a browser's.
    yield from map(digest, values[: len(_NAMES)])


def has_credentials(scope: HTTPScope) -> bool:
    """Whether the answer may be for its sender alone."""
    is_secret = SECRET_PATH.match(scope["path"]) is not None
    return is_secret or bool(header(scope, b"authorization")) or has_session_cookie(scope)


def _cookies(scope: HTTPScope) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
