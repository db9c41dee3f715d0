"""To which names the portal answers, so that no other site can make itself its name."""

import pytest
from api_client import Client, app_client, problem
from hypothesis import given
from hypothesis import strategies as st

from portal.config import Config
from portal.web.server.origins import is_own_host

PUBLIC = "https://Portal.example.org:8443/films"
STRANGE = (
    *("evil.example", "evil.example:8000", "evil.example.", "portal.example.org.evil.example"),
    *("xportal.example.org", "example.org", "127.0.0.1.evil.example", "127.0.0.1.nip.io"),
    *("localhost.evil.example", "evil.example/portal.example.org", "evil.example#localhost"),
    *("a@localhost", "localhost:8000@evil.example", "localhost:x", "localhost:", "[::1", "::1"),
    *("local host", "localhost\t", "localhost,evil.example", "evil.example\\localhost", "*"),
    *("ｌocalhost", "%6cocalhost", "<script>", "."),  # noqa: RUF001 - that is the point
)


@pytest.mark.parametrize("host", STRANGE)
def test_names_that_anyone_may_own_are_not(host: str) -> None:
    assert not is_own_host(host, public_url=PUBLIC, allowed=("also.example",))


@given(st.from_regex(r"[a-z0-9-]{1,20}(\.[a-z0-9-]{1,20}){0,3}\.(com|example|net)", fullmatch=True))
def test_no_name_of_public_dns_is_answered(host: str) -> None:
    assert not is_own_host(host, public_url=PUBLIC)


@pytest.mark.parametrize("path", ["/", "/api/categories", "/static/x.js", "/nothing", "/healthz"])
async def test_a_rebound_name_gets_nothing(client: Client, path: str) -> None:
    response = await client.get(path, headers={"Host": "evil.example"})
    assert response.status_code == 421
    text = await response.get_data(as_text=True)
    assert "evil.example" not in text
    assert "ALLOWED_HOSTS" in text


async def test_a_rebound_page_can_change_nothing(client: Client) -> None:
    """Over http to such a name browsers send no Sec-Fetch-Site, and its own name as origin."""
    headers = {"Host": "evil.example:8000", "Origin": "http://evil.example:8000"}
    response = await client.post("/api/videos/presign", json={}, headers=headers)
    await problem(response, 421, "unknown_host")


async def test_what_a_proxy_says_of_the_host_counts_for_nothing(client: Client) -> None:
    for name in ("X-Forwarded-Host", "X-Host", "X-Forwarded-Server", "Forwarded"):
        response = await client.get(
            "/api/categories", headers={"Host": "evil.example", name: "localhost"}
        )
        assert response.status_code == 421


async def test_a_name_can_be_allowed(config: Config) -> None:
    async with app_client(config, allowed_hosts=("films.example",)) as client:
        response = await client.get("/", headers={"Host": "films.example"})
    assert response.status_code == 200
