"""The shipped proxies ask for a password before a portal without accounts, except for watching."""

import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from guarded_routes import Route, routes
from quart import Quart

from portal.http.auth import Policy

DEPLOY = Path(__file__).parents[2] / "docs/deploy"
OPEN = {Policy.ANYONE, Policy.SELF, Policy.WATCH, Policy.PLAY}
VIDEO_ID = str(uuid4())

IsGuarded = Callable[[str, str], bool]


def nginx_guard() -> IsGuarded:
    """Return whether the nginx file asks for a password, by method and path of a request."""
    text = (DEPLOY / "nginx.conf").read_text()
    block = text.partition('map "$request_method $uri" $publishing {')[2].partition("\n}")[0]
    assert re.search(r'^    default +"Publishing";$', block, re.MULTILINE)
    expressions = re.findall(r'^    "~(.+)" +off;$', block, re.MULTILINE)
    return lambda method, path: not any(re.search(e, f"{method} {path}") for e in expressions)


def caddy_guard() -> IsGuarded:
    """Return whether Caddy's file asks for a password, by method and path of a request."""
    text = (DEPLOY / "Caddyfile").read_text()
    block = text.partition("@publishing {")[2].partition("\n\t}\n")[0]
    assert "\tnot method OPTIONS\n" in block
    exceptions = re.findall(r"not \{\s+method (.+)\s+path_regexp (.+)\s+\}", block)
    return lambda method, path: (
        method != "OPTIONS"
        and not any(
            method in methods.split() and re.search(expression, path)
            for methods, expression in exceptions
        )
    )


def needs_password(route: Route) -> bool:
    """Return whether a route is for more than watching."""
    if route.method not in ("GET", "HEAD"):
        return route.rule not in ("/api/playback", "/language")
    # Without accounts, everyone may save the uploaded file.
    return route.policy not in OPEN or "/downloads" in route.rule


@pytest.mark.parametrize("is_guarded", [nginx_guard(), caddy_guard()], ids=["nginx", "caddy"])
async def test_proxy_guards_the_routes_of_guarded_policies(
    app: Quart, is_guarded: IsGuarded
) -> None:
    listed = routes(app)
    assert len(listed) > 150
    for route in listed:
        path = route.path(VIDEO_ID)
        assert is_guarded(route.method, path) is needs_password(route), (route, path)
        assert not is_guarded("OPTIONS", path)
    assert not is_guarded("POST", "/p/token/api/playback")
    for path in ("/p/token/api/videos", "/videos", "/api/playback/x", "/x/api/playback"):
        assert is_guarded("POST", path)
    for path in ("/videos/progress", "/new", "/static", f"/videos/{VIDEO_ID}/edit/", "/edit"):
        assert is_guarded("GET", path), path
