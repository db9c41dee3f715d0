"""Browser security: headers on every answer, and refusal of changes by other sites."""

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

import pytest
from api_client import Client, problem
from page_rows import READY, make_row
from quart import Quart, request
from werkzeug.datastructures import Headers

from portal.config import Config
from portal.errors import CrossSiteRequest
from portal.http.composition import WebContext
from portal.http.server.headers import OPEN_TO_ALL, security_headers
from portal.http.server.origins import require_same_origin

ALLOWED_ORIGIN = "https://app.example.org"
STORAGE = "https://files.example"
OWN_ORIGIN = "http://localhost"
# Origin headers of browsers, and whether such a request may change anything.
SENDERS = {
    "another site": ({"Sec-Fetch-Site": "cross-site"}, False),
    "a forged origin": ({"Sec-Fetch-Site": "cross-site", "Origin": OWN_ORIGIN}, False),
    "another host of the site": ({"Sec-Fetch-Site": "same-site"}, False),
    "an odd word": ({"Sec-Fetch-Site": "same-origin, cross-site"}, False),
    "an empty word": ({"Sec-Fetch-Site": ""}, False),
    "the portal": ({"Sec-Fetch-Site": "same-origin", "Origin": OWN_ORIGIN}, True),
    "the user": ({"Sec-Fetch-Site": "none"}, True),
    "an old browser at the portal": ({"Origin": "HTTP://LOCALHOST"}, True),
    "an old browser at its published address": ({"Origin": "https://127.0.0.1:8000"}, True),
    "an old browser elsewhere": ({"Origin": "https://evil.example"}, False),
    "an old browser at another port": ({"Origin": "http://localhost:8001"}, False),
    "an old browser at a name like ours": ({"Origin": "http://localhost.evil.example"}, False),
    "a sandboxed frame or a file": ({"Origin": "null"}, False),
    "a broken origin": ({"Origin": "http://["}, False),
    "no browser": ({"Referer": "https://evil.example/"}, True),
}


def add_failure(app: Quart) -> None:
    """Let requests with the parameter `fail` fail."""

    @app.before_request
    async def fail() -> None:
        if "fail" in request.args:
            raise RuntimeError("on purpose")


pytestmark = pytest.mark.shared_app(prepare=add_failure, api_allowed_origins=(ALLOWED_ORIGIN,))


def policy_of(headers: Mapping[str, str]) -> dict[str, list[str]]:
    directives = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: sources for name, *sources in directives}


def test_nothing_inline_and_nothing_of_other_sites_runs(config: Config) -> None:
    """Media come from storage or the CDN, by its origin."""
    behind_cdn = replace(config, playback_base_url="https://cdn.example/some/path")
    directives = policy_of(security_headers(behind_cdn, STORAGE))
    for name in ("default-src", "script-src", "style-src", "form-action"):
        assert directives[name] == ["'self'"]
    for name in ("object-src", "base-uri", "frame-ancestors"):
        assert directives[name] == ["'none'"]
    for name in ("connect-src", "media-src", "img-src"):
        assert {STORAGE, "https://cdn.example"} <= set(directives[name])


async def test_pages_with_a_player_take_inline_styles_but_no_inline_scripts(client: Client) -> None:
    video = await make_row(**READY)
    for path in (f"/videos/{video.id}", f"/videos/{video.id}/edit", f"/embed/{video.id}"):
        directives = policy_of((await client.get(path)).headers)
        assert directives["style-src"] == ["'self'", "'unsafe-inline'"], path
        assert directives["script-src"] == ["'self'"], path


def test_transport_security_is_required_on_https_only(config: Config) -> None:
    assert "Strict-Transport-Security" not in security_headers(config, STORAGE)
    public = replace(config, public_url="https://portal.example")
    assert "Strict-Transport-Security" in security_headers(public, STORAGE)


@pytest.mark.parametrize("sender", SENDERS)
def test_only_the_portals_own_pages_can_change_something(sender: str) -> None:
    headers, may_change = SENDERS[sender]
    expected = nullcontext() if may_change else pytest.raises(CrossSiteRequest)
    with expected:
        require_same_origin(Headers(headers), hosts=frozenset({"localhost", "127.0.0.1:8000"}))


async def test_reading_is_open_sets_no_cookies_and_is_closed_to_other_sites(
    app: Quart, client: Client
) -> None:
    """Players, their streams and embeds are the exception."""
    video = await make_row(**READY)
    for rule in app.url_map.iter_rules():
        address = re.sub(r"<[^>]+>", str(video.id), re.sub(r"<int:[^>]+>", "1", rule.rule))
        # Any view answers HEAD as it does GET.
        for method in ("GET", "OPTIONS"):
            origin = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
            # Streams, which would not end, are none of these.
            origin["Accept"] = "text/html"
            response = await client.open(address, method=method, headers=origin)
            assert response.status_code < 500 or address == "/readyz", (method, address)
            assert response.status_code != 403, (method, address)
            assert "Set-Cookie" not in response.headers
            is_open = response.headers.get("Access-Control-Allow-Origin") == "*"
            is_for_sites = address == "/oembed" and method != "OPTIONS"
            part = rule.endpoint.partition(".")[0]
            # Files of the whole film are for people who cut it.
            is_of_player = part in ("playback", "static_files") and "/film/" not in address
            assert is_open == (is_for_sites or is_of_player), (method, address)
    for path in (f"/videos/{video.id}/poster.jpg", f"/embed/{video.id}", "/oembed"):
        policy = (await client.get(path)).headers.getlist("Cross-Origin-Resource-Policy")
        assert policy == ["cross-origin"], path


async def test_every_kind_of_answer_carries_every_header_once(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**READY)
    config = resources.config
    expected = security_headers(config, config.s3_public_endpoint_url)
    record = f"/api/videos/{video.id}"
    etag = (await client.get(record)).headers["ETag"]
    page = await (await client.get("/")).get_data(as_text=True)
    script = re.findall(r'"(/static/[^"]+\.js)"', page)[0]
    kinds: list[tuple[int, str, str, dict[str, str]]] = [
        *((200, "GET", path, {}) for path in ("/", "/api/docs", "/healthz", script)),
        (200, "HEAD", record, {}),
        (200, "OPTIONS", "/api/videos", {}),
        (303, "POST", f"/videos/{video.id}/retry", {}),
        (304, "GET", record, {"If-None-Match": etag}),
        *((404, "GET", path, {}) for path in ("/nothing", "/api/nothing", "/static/nothing.js")),
        (403, "POST", "/api/videos", {"Origin": "https://evil.example"}),
        (405, "PUT", "/", {}),
        (421, "GET", "/", {"Host": "evil.example"}),
        (500, "GET", "/?fail", {}),
    ]
    for status, method, path, headers in kinds:
        response = await client.open(path, method=method, headers=headers)
        assert response.status_code == status, (method, path)
        own = OPEN_TO_ALL if path.startswith("/static/") else {}
        for name, value in {**expected, **own}.items():
            assert response.headers.getlist(name) == [value], (method, path, name)


async def test_pages_of_refused_requests_name_the_request_they_answer(client: Client) -> None:
    """The id of the proxy is used if it is a plain one."""
    for request_id, name in (("first-1.b_2", re.escape("first-1.b_2")), ("a b", "[0-9a-f]{32}")):
        headers = {"X-Request-ID": request_id}
        strange = await client.get("/", headers={**headers, "Host": "evil.example"})
        foreign = await client.post("/nothing", headers={**headers, "Sec-Fetch-Site": "cross-site"})
        assert (strange.status_code, foreign.status_code) == (421, 403)
        for response in (strange, foreign):
            assert re.fullmatch(name, response.headers["X-Request-ID"])
            page = await response.get_data(as_text=True)
            assert f"<code>{response.headers['X-Request-ID']}</code>" in page


async def test_page_of_an_allowed_origin_uses_the_api_without_a_session(client: Client) -> None:
    presign = "/api/videos/presign"
    from_page = {"Origin": ALLOWED_ORIGIN, "Sec-Fetch-Site": "cross-site"}
    body = {"fileName": "a.mp4", "contentType": "video/mp4"}
    question = {**from_page, "Access-Control-Request-Method": "POST"}
    allowed = await client.options(presign, headers=question)
    assert allowed.status_code == 204
    assert "Authorization" in allowed.headers["Access-Control-Allow-Headers"]
    answer = await client.post(presign, json=body, headers=from_page)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == ALLOWED_ORIGIN
    assert "Origin" in answer.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    for refused in (
        {**from_page, "Origin": f"{ALLOWED_ORIGIN}.evil.example"},
        {**from_page, "Cookie": "portal_session=a"},
    ):
        response = await client.post(presign, json=body, headers=refused)
        await problem(response, 403, "cross_site_request")
    page = await client.get("/", headers=from_page)
    assert "Access-Control-Allow-Origin" not in page.headers
