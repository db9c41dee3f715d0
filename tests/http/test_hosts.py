"""To which names the portal answers, so that no other site can make itself its name."""

import pytest
from api_client import app_client, problem

from portal.config import Config
from portal.http.server.origins import is_own_host

PUBLIC = "https://Portal.example.org:8443/films"
OWN = ("portal.example.org:8443", "also.example", "localhost:8000", "127.0.0.1", "[::1]:80", "nas")
STRANGE = (
    "evil.example",
    "evil.example:8000",
    "evil.example.",
    "portal.example.org.evil.example",
    "xportal.example.org",
    "example.org",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "a@localhost",
    "localhost:8000@evil.example",
    "localhost:x",
    "[::1",
    "local host",
    "*",
    "evil.example#localhost",
    "localhost,evil.example",
    "evil.example\\localhost",
    ".",
    "ｌocalhost",  # noqa: RUF001 - a letter that looks like an l
    "%6cocalhost",
)


@pytest.mark.parametrize(
    ("host", "is_own"), [*((host, True) for host in OWN), *((host, False) for host in STRANGE)]
)
def test_names_that_anyone_may_own_are_not_the_portals(host: str, is_own: bool) -> None:
    assert is_own_host(host, public_url=PUBLIC, allowed=("also.example",)) is is_own


async def test_rebound_host_name_is_refused_and_one_can_be_allowed(config: Config) -> None:
    """Over http to such a name browsers send no Sec-Fetch-Site, and its own name as origin."""
    headers = {"Host": "evil.example", "Origin": "http://evil.example"}
    async with app_client(config, allowed_hosts=("films.example",)) as client:
        assert (await client.get("/", headers={"Host": "films.example"})).status_code == 200
        for path in ("/", "/static/x.js", "/nothing", "/healthz"):
            response = await client.get(path, headers={**headers, "X-Forwarded-Host": "localhost"})
            assert response.status_code == 421
            text = await response.get_data(as_text=True)
            assert "evil.example" not in text
            assert "ALLOWED_HOSTS" in text
        response = await client.post("/api/videos/presign", json={}, headers=headers)
        await problem(response, 421, "unknown_host")
