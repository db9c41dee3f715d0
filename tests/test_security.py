"""What keeps browsers strict: headers on every answer, and whose pages may change something."""

from __future__ import annotations

import re
from dataclasses import replace

from api_kit import Client
from quart import Quart

from portal.config import Config
from portal.origins import SAFE_METHODS
from portal.security import security_headers

STORAGE = "https://files.example"
PATHS = ["/", "/upload", "/api/categories", "/api/docs", "/api/nothing", "/nothing", "/healthz"]


def policy(headers: dict[str, str]) -> dict[str, list[str]]:
    directives = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: sources for name, *sources in directives}


async def test_every_answer_carries_the_headers_once(client: Client, config: Config) -> None:
    expected = security_headers(config, config.s3_public_endpoint_url)
    for path in PATHS:
        response = await client.get(path)
        for name, value in expected.items():
            assert response.headers.getlist(name) == [value], f"{path}: {name}"


def test_nothing_inline_and_nothing_of_other_sites_runs(config: Config) -> None:
    directives = policy(dict(security_headers(config, STORAGE)))
    assert directives["default-src"] == ["'self'"]
    assert directives["script-src"] == ["'self'"]
    assert directives["style-src"] == ["'self'"]
    assert directives["object-src"] == directives["base-uri"] == ["'none'"]
    assert directives["frame-ancestors"] == ["'none'"]
    assert directives["form-action"] == ["'self'"]


def test_uploads_and_media_may_use_storage(config: Config) -> None:
    directives = policy(dict(security_headers(config, STORAGE)))
    for name in ("connect-src", "media-src", "img-src"):
        assert STORAGE in directives[name]


def test_media_may_come_from_the_cdn_by_its_origin(config: Config) -> None:
    behind_cdn = replace(config, playback_base_url="https://cdn.example/some/path")
    directives = policy(dict(security_headers(behind_cdn, STORAGE)))
    for name in ("connect-src", "media-src", "img-src"):
        assert "https://cdn.example" in directives[name]


def test_transport_security_is_asked_for_on_https_alone(config: Config) -> None:
    assert "Strict-Transport-Security" not in security_headers(config, STORAGE)
    public = replace(config, public_url="https://portal.example")
    assert "Strict-Transport-Security" in security_headers(public, STORAGE)


async def test_other_sites_pages_can_change_nothing(app: Quart, client: Client) -> None:
    addresses = _unsafe_addresses(app)
    assert len(addresses) > 10
    for method, address in addresses:
        response = await client.open(
            address, method=method, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert response.status_code == 403, (method, address)


async def test_what_is_not_known_to_come_from_elsewhere_is_looked_at(
    app: Quart, client: Client
) -> None:
    for method, address in _unsafe_addresses(app):
        for headers in ({}, {"Sec-Fetch-Site": "same-origin"}):
            response = await client.open(address, method=method, headers=headers)
            assert response.status_code != 403, (method, address)


def _unsafe_addresses(app: Quart) -> list[tuple[str, str]]:
    """Every method and address that may change something, with nothing behind its ids."""
    return [
        (method, re.sub(r"<[^>]+>", "0" * 32, rule.rule))
        for rule in app.url_map.iter_rules()
        for method in sorted(rule.methods - SAFE_METHODS)
    ]
