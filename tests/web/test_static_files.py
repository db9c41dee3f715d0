"""Built files are sent compressed where the browser takes it, and may be kept for ever."""

import gzip
import re

import pytest
from api_client import Client

from portal.web.assets import load_manifest, static_dist_dir

PAGE_WEIGHT_BYTES = 60_000
LINKED = re.compile(r'(?:src|href)="(/static/[^"]+\.(?:js|css))"')


def _path(name: str) -> str:
    return f"/static/{load_manifest(static_dist_dir())[name]}"


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip, deflate, br", "br"), ("gzip", "gzip"), ("br;q=0, gzip", "gzip"), ("", None)],
)
async def test_browser_gets_the_best_encoding_it_takes(
    client: Client, accepted: str, encoding: str | None
) -> None:
    response = await client.get(_path("app.js"), headers={"Accept-Encoding": accepted})
    assert response.status_code == 200
    assert response.headers.get("Content-Encoding") == encoding
    assert response.content_type == "text/javascript; charset=utf-8"
    assert "max-age=31536000" in response.headers["Cache-Control"]
    assert response.headers["Vary"] == "Accept-Encoding"


async def test_encoded_and_plain_file_are_the_same(client: Client) -> None:
    plain = await client.get(_path("style.css"))
    encoded = await client.get(_path("style.css"), headers={"Accept-Encoding": "gzip"})
    content = await encoded.get_data(as_text=False)
    assert gzip.decompress(content) == await plain.get_data(as_text=False)
    assert plain.headers["ETag"] != encoded.headers["ETag"]


@pytest.mark.parametrize("name", ["nothing.js", "manifest.json.gz", "..%2Fpackage.json", ".."])
async def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert (await client.get(f"/static/{name}")).status_code in (404, 308)


async def test_library_page_is_light(client: Client) -> None:
    page = await (await client.get("/")).get_data(as_text=True)
    weight = 0
    for path in LINKED.findall(page):
        response = await client.get(path, headers={"Accept-Encoding": "gzip"})
        assert response.headers["Content-Encoding"] == "gzip"
        weight += len(await response.get_data(as_text=False))
    assert 0 < weight < PAGE_WEIGHT_BYTES
