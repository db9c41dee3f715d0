"""What keeps browsers strict: headers on every answer, and whose pages may change something."""

import re
from contextlib import nullcontext
from dataclasses import replace

import pytest
from api_client import Client
from page_rows import READY, make_row
from quart import Quart
from werkzeug.datastructures import Headers

from portal.config import Config
from portal.errors import CrossSiteRequest
from portal.web.server.context import SAFE_METHODS
from portal.web.server.headers import security_headers
from portal.web.server.origins import require_same_origin

STORAGE = "https://files.example"


def policy(headers: dict[str, str]) -> dict[str, list[str]]:
    directives = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: sources for name, *sources in directives}


def test_nothing_inline_and_nothing_of_other_sites_runs(config: Config) -> None:
    directives = policy(dict(security_headers(config, STORAGE)))
    assert directives["default-src"] == ["'self'"]
    assert directives["script-src"] == ["'self'"]
    assert directives["style-src"] == ["'self'"]
    assert directives["object-src"] == directives["base-uri"] == ["'none'"]
    assert directives["frame-ancestors"] == ["'none'"]
    assert directives["form-action"] == ["'self'"]


async def test_pages_with_a_player_take_inline_styles_but_no_inline_scripts(
    client: Client,
) -> None:
    video = await make_row(**READY)
    for path in (f"/videos/{video.id}", f"/videos/{video.id}/edit", f"/embed/{video.id}"):
        header = (await client.get(path)).headers["Content-Security-Policy"]
        directives = policy({"Content-Security-Policy": header})
        assert directives["style-src"] == ["'self'", "'unsafe-inline'"], path
        assert directives["script-src"] == ["'self'"], path


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


OWN_ORIGIN = "http://localhost"
# What a browser says of where a request comes from, and whether that may change anything.
SENDERS = {
    "another site": ({"Sec-Fetch-Site": "cross-site"}, False),
    "another site, which forges its origin": (
        {"Sec-Fetch-Site": "cross-site", "Origin": OWN_ORIGIN},
        False,
    ),
    "another host of the site": ({"Sec-Fetch-Site": "same-site"}, False),
    "an unknown relation": ({"Sec-Fetch-Site": "same-origin, cross-site"}, False),
    "an empty relation": ({"Sec-Fetch-Site": ""}, False),
    "a relation in capitals": ({"Sec-Fetch-Site": "SAME-ORIGIN"}, False),
    "the portal": ({"Sec-Fetch-Site": "same-origin", "Origin": OWN_ORIGIN}, True),
    "the user": ({"Sec-Fetch-Site": "none"}, True),
    "an old browser at the portal": ({"Origin": OWN_ORIGIN}, True),
    "an old browser at its published address": ({"Origin": "https://127.0.0.1:8000"}, True),
    "an old browser at the portal, in capitals": ({"Origin": "HTTP://LOCALHOST"}, True),
    "an old browser elsewhere": ({"Origin": "https://evil.example"}, False),
    "an old browser at another port": ({"Origin": "http://localhost:8001"}, False),
    "an old browser at a name like ours": ({"Origin": "http://localhost.evil.example"}, False),
    "an old browser with a user's name": ({"Origin": "http://localhost@evil.example"}, False),
    "a sandboxed frame or a file": ({"Origin": "null"}, False),
    "an origin that is none": ({"Origin": "localhost"}, False),
    "a broken origin": ({"Origin": "http://["}, False),
    "an empty origin": ({"Origin": ""}, False),
    "no browser": ({}, True),
    "no browser with a referrer": ({"Referer": "https://evil.example/"}, True),
}


@pytest.mark.parametrize("sender", SENDERS)
def test_only_the_portals_own_pages_can_change_something(sender: str) -> None:
    headers, may_change = SENDERS[sender]
    expected = nullcontext() if may_change else pytest.raises(CrossSiteRequest)
    with expected:
        require_same_origin(Headers(headers), hosts=frozenset({"localhost", "127.0.0.1:8000"}))


@pytest.mark.parametrize(
    ("sender", "may_change"), [("another site", False), ("an old browser at the portal", True)]
)
async def test_every_address_that_changes_something_asks_where_requests_come_from(
    app: Quart, client: Client, sender: str, may_change: bool
) -> None:
    addresses = _unsafe_addresses(app)
    assert len(addresses) > 10
    for method, address in addresses:
        response = await client.open(address, method=method, headers=SENDERS[sender][0])
        is_refused = response.status_code == 403
        assert is_refused != may_change, (method, address, response.status_code)
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_reading_is_open_and_sets_no_cookies(app: Quart, client: Client) -> None:
    for sender in ("another site", "a sandboxed frame or a file", "no browser"):
        headers, _ = SENDERS[sender]
        for method in ("GET", "HEAD", "OPTIONS"):
            for address in _addresses(app):
                response = await client.open(address, method=method, headers=headers)
                assert response.status_code < 500 or address == "/readyz", (method, address)
                assert response.status_code != 403, (method, address)
                assert "Set-Cookie" not in response.headers


async def test_what_others_may_read_is_what_players_and_embeds_need(
    app: Quart, client: Client
) -> None:
    video = await make_row(**READY)
    open_to_all = {"/oembed"}
    for rule in app.url_map.iter_rules():
        if "GET" in rule.methods:
            address = re.sub(r"<[^>]+>", str(video.id), rule.rule)
            response = await client.get(address, headers={"Origin": "https://evil.example"})
            is_open = response.headers.get("Access-Control-Allow-Origin") == "*"
            assert is_open == (address in open_to_all), address


async def test_every_kind_of_answer_carries_every_header_once(
    client: Client, config: Config
) -> None:
    video = await make_row(**READY)
    expected = security_headers(config, config.s3_public_endpoint_url)
    record = f"/api/videos/{video.id}"
    etag = (await client.get(record)).headers["ETag"]
    script = _linked_script(await (await client.get("/")).get_data(as_text=True))
    stale = {"If-None-Match": etag}
    kinds: list[tuple[int, str, str, dict[str, str]]] = [
        *((200, "GET", path, {}) for path in ("/", "/upload", "/api/docs", "/healthz", script)),
        *((200, "HEAD", path, {}) for path in ("/", "/healthz", script, record)),
        *((200, "OPTIONS", path, {}) for path in ("/", script, record, "/api/videos")),
        (304, "GET", record, stale),
        (304, "HEAD", record, stale),
        (404, "GET", "/nothing", {}),
        (404, "GET", "/api/nothing", {}),
        (404, "GET", "/static/nothing.js", {}),
        (405, "PUT", "/", {}),
        (405, "TRACE", "/api/videos", {}),
        (403, "POST", "/api/videos", {"Origin": "https://evil.example"}),
        (415, "POST", "/api/videos", {}),
        (421, "GET", "/", {"Host": "evil.example"}),
        (428, "PUT", f"{record}/metadata", {}),
        (409, "POST", f"{record}/transcode", {}),
        (303, "POST", f"/videos/{video.id}/retry", {}),
        (416, "GET", script, {"Range": "bytes=99999999-"}),
    ]
    for status, method, path, headers in kinds:
        response = await client.open(path, method=method, headers=headers)
        assert response.status_code == status, (method, path)
        for name, value in expected.items():
            assert response.headers.getlist(name) == [value], (method, path, name)


async def test_an_answer_to_a_fault_of_our_own_carries_the_headers_too(
    app: Quart, config: Config
) -> None:
    @app.before_request
    async def fail() -> None:
        raise RuntimeError("on purpose")

    response = await app.test_client().get("/")
    assert response.status_code == 500
    assert "on purpose" not in await response.get_data(as_text=True)
    for name, value in security_headers(config, config.s3_public_endpoint_url).items():
        assert response.headers.getlist(name) == [value], name


async def test_what_other_sites_show_may_be_loaded_by_them(client: Client) -> None:
    video = await make_row(**READY)
    for path in (f"/videos/{video.id}/poster.jpg", f"/embed/{video.id}", "/oembed"):
        response = await client.get(path)
        policy = response.headers.getlist("Cross-Origin-Resource-Policy")
        assert policy == ["cross-origin"], path


def _linked_script(html: str) -> str:
    found = re.search(r'"(/static/[^"]+\.js)"', html)
    assert found is not None
    return found[1]


def _addresses(app: Quart) -> set[str]:
    return {re.sub(r"<[^>]+>", "0" * 32, rule.rule) for rule in app.url_map.iter_rules()}


def _unsafe_addresses(app: Quart) -> list[tuple[str, str]]:
    """Every method and address that may change something, with nothing behind its ids."""
    return [
        (method, re.sub(r"<[^>]+>", "0" * 32, rule.rule))
        for rule in app.url_map.iter_rules()
        for method in sorted(rule.methods - SAFE_METHODS)
    ]


async def test_pages_of_refused_requests_name_the_request_they_answer(client: Client) -> None:
    for request_id in ("first-1", "second-2"):
        names = {"X-Request-ID": request_id}
        strange = await client.get("/", headers={**names, "Host": "evil.example"})
        foreign = await client.post("/nothing", headers={**names, "Sec-Fetch-Site": "cross-site"})
        assert (strange.status_code, foreign.status_code) == (421, 403)
        for response in (strange, foreign):
            assert f"<code>{request_id}</code>" in await response.get_data(as_text=True)
            assert int(response.headers["Content-Length"]) == len(await response.get_data())


async def test_names_of_requests_are_taken_over_only_if_they_are_plain(client: Client) -> None:
    for asked, expected in {"a-1.b_2": "a-1.b_2", "a b": "[0-9a-f]{32}"}.items():
        response = await client.get("/healthz", headers={"X-Request-ID": asked})
        assert re.fullmatch(expected, response.headers["X-Request-ID"])
