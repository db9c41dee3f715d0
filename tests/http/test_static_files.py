"""Built files are sent compressed where the browser takes it, and may be kept for ever."""

import gzip
import re
from collections.abc import Iterable
from typing import Any

import pytest
from api_client import Client
from page_rows import READY, make_row

from portal.http.assets import load_manifest, static_dist_dir

LINKED = re.compile(r'(?:src|href)="(/static/[^"]+\.(?:js|css))"')
# Static imports only: `import()` fetches on demand.
IMPORTED = re.compile(r'(?:import|from)"\./([^"]+\.js)"')
# The player includes captions, menus and the list of keys.
PLAYER = re.compile(rb'<div class="player" id="player">.*?</noscript>\s*</div>', re.DOTALL)

pytestmark = pytest.mark.shared_app


def _path(name: str) -> str:
    return f"/static/{load_manifest(static_dist_dir())[name]}"


@pytest.mark.parametrize(
    ("accepted", "encoding"), [("gzip, deflate, br", "br"), ("br;q=0, gzip", "gzip"), ("", None)]
)
async def test_browser_gets_the_best_encoding_it_takes(
    client: Client, accepted: str, encoding: str | None
) -> None:
    response = await client.get(_path("app.js"), headers={"Accept-Encoding": accepted})
    assert response.status_code == 200
    assert response.headers.get("Content-Encoding") == encoding
    assert response.content_type == "text/javascript; charset=utf-8"
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert response.headers["Vary"] == "Accept-Encoding"


async def test_file_is_the_same_in_any_encoding_and_sent_once(client: Client) -> None:
    plain = await client.get(_path("style.css"))
    encoded = await client.get(_path("style.css"), headers={"Accept-Encoding": "gzip"})
    content, whole = [await response.get_data(as_text=False) for response in (encoded, plain)]
    assert gzip.decompress(content) == whole
    assert plain.headers["ETag"] != encoded.headers["ETag"]
    stale = {"Accept-Encoding": "gzip", "If-None-Match": encoded.headers["ETag"]}
    again = await client.get(_path("style.css"), headers=stale)
    assert (again.status_code, await again.get_data()) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "manifest.json.gz", "..%2Fpackage.json", ".."])
async def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert (await client.get(f"/static/{name}")).status_code in (404, 308)


@pytest.mark.parametrize(
    ("path", "row", "scripts", "limit_bytes"),
    [
        ("/", {}, ("preview",), 34_000),
        ("/upload", {}, ("page", "unfinished"), 68_200),
        # Most of it encodes and writes the film.
        ("/record", {}, ("record",), 160_000),
        ("/videos/{}", READY, ("share", "watch", "copy"), 36_600),
        ("/videos/{}/edit", READY, ("forms", "poster", "disclosure"), 41_100),
        ("/videos/{}/cuts", READY, ("cuts", "watch"), 48_500),
    ],
)
async def test_page_is_light(
    client: Client, path: str, row: dict[str, Any], scripts: tuple[str, ...], limit_bytes: int
) -> None:
    """Text as gzip packs it: the document, what it links, and the scripts it asks for itself.

    The player, its markup and its style come once a video can be watched, and are not in it.
    """
    video = await make_row(**row)
    page = await (await client.get(path.format(video.id))).get_data(as_text=False)
    page = PLAYER.sub(b"", page)
    linked = [name.rpartition("/")[2] for name in LINKED.findall(page.decode())]
    assert linked
    weight = len(gzip.compress(page, 9))
    for name in _with_imports([*linked, *(_chunk(script) for script in scripts)]):
        if name.startswith("player-"):
            continue
        response = await client.get(f"/static/{name}", headers={"Accept-Encoding": "gzip"})
        assert response.headers["Content-Encoding"] == "gzip"
        weight += len(await response.get_data(as_text=False))
    assert weight < limit_bytes


def _chunk(name: str) -> str:
    """The script that is loaded on demand by this name."""
    [path] = static_dist_dir().glob(f"chunk-{name}-????????.js")
    return path.name


def _with_imports(names: Iterable[str]) -> set[str]:
    """Return these files and the scripts that they import."""
    names_found = set[str]()
    new = set(names)
    while new:
        names_found |= new
        texts = [(static_dist_dir() / name).read_text() for name in new if name.endswith(".js")]
        new = {name for text in texts for name in IMPORTED.findall(text)} - names_found
    return names_found
