"""The headers that keep browsers strict, on every answer."""

from __future__ import annotations

from dataclasses import replace

from api_kit import Client

from portal.config import Config
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
