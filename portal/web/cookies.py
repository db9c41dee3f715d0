"""The portal's cookies: sent back by the browser to this host alone, and hidden from scripts.

Browsers take a cookie of a name that begins with `__Host-` by https alone, for this very host, and
no other host of the same domain can set it (RFC 6265bis).
"""

from dataclasses import dataclass

from hypercorn.typing import HTTPScope, WebsocketScope
from quart import Request
from werkzeug.wrappers import Response

from portal.accounts.identities import LIFE_S
from portal.accounts.sessions import IDLE_DAYS
from portal.config import Config

DAY_S = 86_400
SECURE_COOKIE = "__Host-portal"
PLAIN_COOKIE = "portal_session"


@dataclass(frozen=True, slots=True)
class HostCookie:
    """A cookie of one of two names, the first for a portal at an https address."""

    secure_name: str
    plain_name: str
    max_age_s: int

    def name(self, config: Config) -> str:
        """Its name, which says whether browsers send it by https alone."""
        return self.secure_name if _is_secure(config) else self.plain_name

    def read(self, request: Request, config: Config) -> str:
        """What it holds; empty if there is none."""
        return request.cookies.get(self.name(config), "")

    def set(self, response: Response, value: str, config: Config) -> None:
        """Have the browser send this from now on, also when it follows a link from another site."""
        response.set_cookie(
            self.name(config),
            value,
            max_age=self.max_age_s,
            path="/",
            secure=_is_secure(config),
            httponly=True,
            samesite="Lax",
        )

    def clear(self, response: Response, config: Config) -> None:
        """Have the browser forget it."""
        response.delete_cookie(
            self.name(config), path="/", secure=_is_secure(config), httponly=True, samesite="Lax"
        )


# Of a session that was begun by signing in.
SESSION = HostCookie(SECURE_COOKIE, PLAIN_COOKIE, IDLE_DAYS * DAY_S)
# Of a sign-in that is under way at a provider of single sign-on.
SIGN_ON = HostCookie("__Host-portal-sign-on", "portal_sign_on", LIFE_S)


def _is_secure(config: Config) -> bool:
    return config.public_url.startswith("https://")


def has_session_cookie(scope: HTTPScope | WebsocketScope) -> bool:
    """Whether a browser sent the cookie of a session, however its value is written."""
    sent = b";".join(value for name, value in scope["headers"] if name == b"cookie")
    return any(name.encode() in sent for name in (SECURE_COOKIE, PLAIN_COOKIE))
