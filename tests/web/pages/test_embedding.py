"""Videos on other sites: the embeddable page, oEmbed, and tags for links."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from api_client import Client, answered
from page_rows import READY, make_row
from page_texts import page
from test_linkify import Reader

from portal.database.models import Video
from portal.web.composition import WebContext
from portal.web.pages.embedding import frame_size

pytestmark = pytest.mark.shared_app

NASTY = """He said "hi" & left</title><script>alert('x')</script>"""


async def oembed(client: Client, status: int = 200, **query: Any) -> dict[str, Any]:
    response = await client.get("/oembed", query_string=query)
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    return await answered(response, status)


async def test_player_page_polls_until_the_video_is_ready(client: Client) -> None:
    video = await make_row()
    assert f'hx-get="/embed/{video.id}/stage"' in await page(client, f"/embed/{video.id}")
    await Video.filter(id=video.id).update(**READY)
    for suffix in ("/stage", ""):
        assert "hx-get" not in await page(client, f"/embed/{video.id}{suffix}")


async def test_oembed_gives_a_frame_that_embeds(client: Client, resources: WebContext) -> None:
    video = await make_row(**READY, title=NASTY)
    watch = f"{resources.config.public_url}/videos/{video.id}"
    answer = await oembed(client, url=watch, format="json", maxwidth=270)
    assert answer["version"] == "1.0"
    assert answer["type"] == "video"
    assert answer["title"] == NASTY
    assert (answer["width"], answer["height"]) == (270, 480)
    assert answer["thumbnail_url"].startswith(f"{watch}/poster.jpg")
    [(tag, frame)] = Reader(answer["html"]).tags
    assert tag == "iframe"
    assert frame["src"] == f"{resources.config.public_url}/embed/{video.id}"
    assert (frame["width"], frame["height"], frame["title"]) == ("270", "480", NASTY)
    path = urlsplit(str(frame["src"])).path
    assert (await client.get(path)).status_code == 200
    again = await oembed(client, url=frame["src"], maxheight=480)
    assert again["width"] == 270


async def test_oembed_accepts_only_addresses_of_ready_videos_of_this_portal(
    client: Client, resources: WebContext
) -> None:
    ready = await make_row(**READY)
    processing = await make_row(2)
    for url in (
        f"{resources.config.public_url}/videos/{processing.id}",
        f"{resources.config.public_url}/videos/nothing",
        f"{resources.config.public_url}/upload",
        f"https://elsewhere.example/videos/{ready.id}",
        str(ready.id),
    ):
        await oembed(client, 404, url=url)


@pytest.mark.parametrize(
    ("video", "limits", "expected"),
    [
        ((1920, 1080), (None, None), (640, 360)),
        ((1920, 1080), (320, None), (320, 180)),
        ((1920, 1080), (1000, 90), (160, 90)),
        ((1080, 1920), (None, 1920), (1080, 1920)),
        ((None, None), (None, None), (640, 360)),
        ((10_000, 1), (1, 1), (1, 1)),
    ],
)
def test_frame_keeps_the_shape_within_limits(
    video: tuple[int | None, int | None],
    limits: tuple[int | None, int | None],
    expected: tuple[int, int],
) -> None:
    assert frame_size(*video, *limits) == expected


async def test_links_to_a_video_carry_its_title_poster_and_player(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**READY, title=NASTY, description=NASTY * 20)
    tags = Reader(await page(client, f"/videos/{video.id}")).tags
    watch = f"{resources.config.public_url}/videos/{video.id}"
    assert sum(tag == "script" for tag, _ in tags) == 1
    named = [
        (attributes.get("property") or attributes.get("name"), attributes.get("content"))
        for _, attributes in tags
    ]
    meta = {name: content for name, content in named if name and content}
    assert meta["og:title"] == meta["twitter:title"] == NASTY
    assert meta["og:url"] == watch
    assert meta["og:type"] == "video.other"
    assert meta["og:image"].startswith(f"{watch}/poster.jpg")
    assert meta["og:video"] == meta["twitter:player"]
    assert meta["og:video"] == f"{resources.config.public_url}/embed/{video.id}"
    assert len(meta["og:description"]) <= 303
    [discovery] = [value for tag, value in tags if tag == "link" and value["rel"] == "alternate"]
    assert discovery["type"] == "application/json+oembed"
    assert discovery["title"] == NASTY
    address = urlsplit(str(discovery["href"]))
    assert parse_qs(address.query) == {"url": [watch], "format": ["json"]}
    response = await client.get(f"{address.path}?{address.query}")
    assert (await response.get_json())["title"] == NASTY
