"""Videos on other sites: the embeddable page, oEmbed, and tags for links."""

from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from api_client import Client, answered
from page_rows import READY, change_video, make_row
from page_texts import Reader, page

from portal.features.watching.embedding import frame_size
from portal.http.composition import WebContext

pytestmark = pytest.mark.shared_app

NASTY = """He said "hi" & left</title><script>alert('x')</script>"""


async def oembed(client: Client, status: int = 200, **query: Any) -> dict[str, Any]:
    response = await client.get("/oembed", query_string=query)
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    return await answered(response, status)


async def test_player_page_polls_until_the_video_is_ready(client: Client) -> None:
    video = await make_row()
    assert f'hx-get="/embed/{video.id}/stage"' in await page(client, f"/embed/{video.id}")
    await change_video(video.id, **READY)
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
    # The module of the page, and its structured data.
    types = [values.get("type") for tag, values in tags if tag == "script"]
    assert sorted(map(str, types)) == ["application/ld+json", "module"]
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


async def test_links_to_a_clip_carry_its_times(client: Client, resources: WebContext) -> None:
    video = await make_row(**READY)
    base = resources.config.public_url
    query = "start=72.5&end=107"
    markup = await page(client, f"/videos/{video.id}?start=1m12.5s&end=1:47")
    tags = Reader(markup).tags
    meta = {attributes.get("property"): attributes.get("content") for _, attributes in tags}
    assert meta["og:url"] == f"{base}/videos/{video.id}?{query}"
    assert meta["og:video"] == f"{base}/embed/{video.id}?{query}"
    assert meta["video:duration"] == "35"
    links = {value.get("rel"): value.get("href") for tag, value in tags if tag == "link"}
    assert links["canonical"] == f"{base}/videos/{video.id}"
    # Share offers the clip, too.
    fields = {value.get("id"): str(value.get("value")) for tag, value in tags if tag == "input"}
    assert fields["page-address"] == meta["og:url"]
    assert fields["stream-address"] == f"{base}/hls/{video.id}/master.m3u8?{query}"
    assert f'src="{base}/embed/{video.id}?start=72.5&amp;end=107"' in fields["embed-code"]
    discovery = urlsplit(str(links["alternate"]))
    answer = await (await client.get(f"{discovery.path}?{discovery.query}")).get_json()
    [(_, frame)] = Reader(answer["html"]).tags
    assert frame["src"] == meta["og:video"]
    framed = await page(client, urlsplit(str(frame["src"])).path + f"?{query}")
    for document in (markup, framed):
        assert 'data-clip-start="72.5" data-clip-end="107.0"' in document
        assert "Clip, 1:12.5\u20131:47." in document


async def test_an_invalid_clip_is_the_whole_video(client: Client) -> None:
    video = await make_row(**READY)
    for path, query in product(("videos", "embed"), ("start=9&end=9", "end=5000")):
        markup = await page(client, f"/{path}/{video.id}?{query}")
        assert "data-clip-start" not in markup
        assert "?start" not in markup.partition("<footer")[0]


async def test_a_video_that_is_not_ready_yet_keeps_the_times_of_its_clip(client: Client) -> None:
    video = await make_row()
    query = "?start=1&amp;end=2"
    assert f'hx-get="/embed/{video.id}/stage{query}"' in await page(
        client, f"/embed/{video.id}?start=1&end=2"
    )
    assert f'hx-get="/videos/{video.id}/status{query}"' in await page(
        client, f"/videos/{video.id}?start=1&end=2"
    )
