"""Cookies of the portal, which browsers send to this host only and hide from scripts.

Browsers only accept a cookie whose name begins with `__Host-` over https and from this host; no
other host of the domain can set it (RFC 6265bis).
"""

from dataclasses import dataclass

from hypercorn.typing import HTTPScope, WebsocketScope
from quart import Request
from werkzeug.sansio.response import Response

from portal.accounts.identities import LIFE_S
from portal.config import Config

DAY_S = 86_400
# The longest life of a cookie that browsers allow (RFC 6265bis).
LONGEST_LIFE_S = 400 * DAY_S
SECURE_COOKIE = "__Host-portal"
PLAIN_COOKIE = "portal_session"
# Language that a reader chose. Proxies read it, so it has one name and no secret.
LANGUAGE_COOKIE = "portal_language"


@dataclass(frozen=True, slots=True)
class HostCookie:
    """Cookie with two names, one for portals at an https address and one for others."""

    secure_name: str
    plain_name: str
    max_age_s: int

    def name(self, config: Config) -> str:
        """Return the name, which says whether browsers send the cookie over https only."""
        return self.secure_name if _is_secure(config) else self.plain_name

    def read(self, request: Request, config: Config) -> str:
        """Return the value; empty without a cookie."""
        return request.cookies.get(self.name(config), "")

    def set(self, response: Response, value: str, config: Config) -> None:
        """Set the value, which browsers also send when following links from other sites."""
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
        """Delete the cookie."""
        response.delete_cookie(
            self.name(config), path="/", secure=_is_secure(config), httponly=True, samesite="Lax"
        )


# Session of a signed-in person. The portal ends it after some days without use
# (`sessions.IDLE_DAYS`), so the cookie has the longest life.
SESSION = HostCookie(SECURE_COOKIE, PLAIN_COOKIE, LONGEST_LIFE_S)
# Secrets of guests, divided by dots.
GUESTS = HostCookie("__Host-portal-guests", "portal_guests", LONGEST_LIFE_S)
# Ids of the videos whose passwords were entered, divided by dots.
UNLOCKED = HostCookie("__Host-portal-unlocked", "portal_unlocked", 30 * DAY_S)
# Secret of a browser that hands files in by links.
SENDER = HostCookie("__Host-portal-sender", "portal_sender", LONGEST_LIFE_S)
# Sign-in that is in progress at a single sign-on provider.
SIGN_ON = HostCookie("__Host-portal-sign-on", "portal_sign_on", LIFE_S)


def _is_secure(config: Config) -> bool:
    return config.public_url.startswith("https://")


def has_session_cookie(scope: HTTPScope | WebsocketScope) -> bool:
    """Return whether a request has the cookie of a session, valid or not."""
    return _has_cookie(scope, SECURE_COOKIE, PLAIN_COOKIE)


def has_admitting_cookie(scope: HTTPScope | WebsocketScope) -> bool:
    """Return whether a request has a cookie of guests or of entered passwords, valid or not."""
    return _has_cookie(
        scope, GUESTS.secure_name, GUESTS.plain_name, UNLOCKED.secure_name, UNLOCKED.plain_name
    )


def _has_cookie(scope: HTTPScope | WebsocketScope, *names: str) -> bool:
    cookies = b";".join(value for name, value in scope["headers"] if name == b"cookie")
    return any(name.encode() in cookies for name in names)
