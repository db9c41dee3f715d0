"""Facts for search engines: the structured data of a watch page, and the sitemap."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from hostile_texts import ALL, MARKUP, TITLES, make_hostile_videos
from page_rows import READY, change_video, cut_video, make_row
from page_texts import Reader, page
from playable_videos import AUDIENCES, Cast
from quart import Quart
from signed_in import Sender, configure, text_of

from portal.database.connection import execute
from portal.database.models import Caption, Video, VideoStatus, Visibility
from portal.errors import NotFound
from portal.features.discovery import service
from portal.features.discovery.service import MAX_TRANSCRIPT_LENGTH
from portal.features.discovery.sitemap import Addresses
from portal.text import shown

pytestmark = pytest.mark.shared_app()

S = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
V = "{http://www.google.com/schemas/sitemap-video/1.1}"
DATA = re.compile(r'<script type="application/ld\+json">(.*?)</script>', re.DOTALL)
CREATED_AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SITE = "https://films.example"
ADDRESSES = Addresses(
    video_id="ID",
    number="NUMBER",
    page=f"{SITE}/videos/ID",
    player=f"{SITE}/embed/ID",
    poster=f"{SITE}/videos/ID/poster.jpg",
    sitemap_page=f"{SITE}/sitemap-NUMBER.xml",
)
CHAPTERS = "INSERT INTO chapters (video_id, saved) VALUES (%s, %s::jsonb)"


async def add_chapters(video: Video, *chapters: tuple[float, str]) -> None:
    rows = [{"start_s": start_s, "title": title} for start_s, title in chapters]
    await execute(CHAPTERS, video.id, json.dumps(rows))


async def add_captions(video: Video, language: str, *texts: str, is_default: bool = False) -> None:
    cues = [
        f"00:00:{second:02}.000 --> 00:01:00.000\n{text}\n" for second, text in enumerate(texts)
    ]
    await Caption.create(
        video=video,
        language=language,
        label=language,
        is_default=is_default,
        source="upload",
        text="\n".join(["WEBVTT\n", *cues]),
        cue_count=len(cues),
    )


async def facts_of(sender: Sender, video: Video) -> dict[str, Any]:
    """Return the structured data in the head of a video's page."""
    head, end, body = (await page(sender, f"/videos/{video.id}")).partition("</head>")
    assert end
    assert "application/ld+json" not in body
    [data] = DATA.findall(head)
    facts: dict[str, Any] = json.loads(data)
    return facts


def urls_in(text: str) -> list[ElementTree.Element]:
    """Return the addresses of a sitemap's text, whose structure is checked."""
    root = ElementTree.fromstring(text)  # noqa: S314 - the portal wrote it
    assert root.tag == f"{S}urlset"
    for url in root:
        assert url.tag == f"{S}url"
        assert [child.tag for child in url] in ([f"{S}loc"], [f"{S}loc", f"{V}video"])
    return list(root)


def ids_in(text: str) -> list[str]:
    """Return the ids of the videos in a sitemap, in its order."""
    return [(url.findtext(f"{S}loc") or "").rpartition("/")[2] for url in urls_in(text)]


async def sitemap_of(sender: Sender) -> str:
    response = await sender.get("/sitemap.xml")
    assert response.status_code == 200
    assert response.content_type == "application/xml; charset=utf-8"
    return await text_of(response)


async def test_public_page_describes_its_video(app: Quart, anyone: Sender) -> None:
    video = await make_row(
        title="Harbour", description="At dawn.\r\n", created_at=CREATED_AT, views=7, **READY
    )
    await add_chapters(video, (0.0, "The crane"), (62.5, "The boats"))
    await add_captions(video, "de", "Guten Morgen")
    await add_captions(video, "en", "Good <i>morning</i>", "Tom &amp; Ann", is_default=True)
    base = app.extensions["portal"].config.public_url
    address = f"{base}/videos/{video.id}"
    configure(app, downloads="all")
    assert await facts_of(anyone, video) == {
        "@context": "https://schema.org",
        "@type": "VideoObject",
        "name": "Harbour",
        "description": "At dawn.",
        "uploadDate": "2026-03-04T05:06:07.000000Z",
        "duration": "PT1H2M5S",
        "thumbnailUrl": f"{address}/poster.jpg?v=1-0",
        "url": address,
        "embedUrl": f"{base}/embed/{video.id}",
        "contentUrl": f"{base}/hls/{video.id}/master.m3u8",
        "hasPart": [
            {
                "@type": "Clip",
                "name": "The crane",
                "startOffset": 0,
                "endOffset": 62.5,
                "url": f"{address}?t=0",
            },
            {
                "@type": "Clip",
                "name": "The boats",
                "startOffset": 62.5,
                "endOffset": 3725.4,
                "url": f"{address}?t=62.5",
            },
        ],
        "transcript": "Good morning Tom & Ann",
        "interactionStatistic": {
            "@type": "InteractionCounter",
            "interactionType": {"@type": "WatchAction"},
            "userInteractionCount": 7,
        },
    }
    configure(app, show_views=False)
    assert "interactionStatistic" not in await facts_of(anyone, video)


async def test_members_without_a_value_are_left_out(anyone: Sender) -> None:
    video = await make_row(**{**READY, "duration_s": None, "has_poster": False})
    await add_chapters(video, (0.0, "All of it"))
    facts = await facts_of(anyone, video)
    assert facts["description"] == facts["name"] == video.title
    assert not {"duration", "thumbnailUrl", "hasPart", "transcript"} & facts.keys()
    [url] = urls_in(await sitemap_of(anyone))
    assert [child.tag for child in url] == [f"{S}loc"]


async def test_description_has_the_times_of_a_cut_film(anyone: Sender) -> None:
    video = await make_row(description="The boats at 1:00", **READY)
    video = await cut_video(video, [[30.0, 100.0]])
    assert (await facts_of(anyone, video))["description"] == "The boats at 0:30"
    [url] = urls_in(await sitemap_of(anyone))
    assert url.findtext(f"{V}video/{V}description") == "The boats at 0:30"


async def test_only_public_ready_videos_are_described(cast: Cast) -> None:
    videos = {audience: await cast.make_ready(audience) for audience in AUDIENCES}
    processing = await make_row(5_001)
    failed = await make_row(5_002, status=VideoStatus.FAILED)
    deleted = await make_row(5_003, deleted_at=CREATED_AT, **READY)
    public = videos.pop("public")
    hidden = [*videos.values(), processing, failed]
    for name, (sender, principal) in cast.senders.items():
        assert ids_in(await sitemap_of(sender)) == [str(public.id)], name
        assert (await facts_of(sender, public))["name"] == public.title
        assert (await sender.get("/sitemap-1.xml")).status_code == 200
        for video in hidden:
            response = await sender.get(f"/videos/{video.id}")
            assert "ld+json" not in await text_of(response), (name, video.visibility, principal)
    sender = cast.senders["nobody"][0]
    assert "ld+json" not in await page(sender, f"/embed/{public.id}")
    assert str(deleted.id) not in await sitemap_of(sender)
    await change_video(public.id, visibility=Visibility.UNLISTED)
    assert ids_in(await sitemap_of(sender)) == []


async def test_portal_without_accounts_lists_public_videos_alone(
    app: Quart, anyone: Sender
) -> None:
    configure(app, default_visibility="private")
    await make_row(1, visibility=Visibility.PRIVATE, **READY)
    await make_row(2, visibility=Visibility.UNLISTED, **READY)
    assert ids_in(await sitemap_of(anyone)) == []
    public = await make_row(3, **READY)
    assert ids_in(await sitemap_of(anyone)) == [str(public.id)]


async def test_hostile_texts_stay_text_in_structured_data(anyone: Sender) -> None:
    _, _, ready = await make_hostile_videos()
    for title in (*TITLES, "line\u2028and\u2029paragraph </script><script>alert(1)</script>"):
        await change_video(ready.id, title=title)
        text = await page(anyone, f"/videos/{ready.id}")
        scripts = [values for tag, values in Reader(text).tags if tag == "script"]
        [data] = DATA.findall(text)
        assert [values.get("type") for values in scripts].count("application/ld+json") == 1
        assert not re.search("[<>&\u2028\u2029]", data)
        facts = json.loads(data)
        assert facts["name"] == shown(title)
    assert [clip["name"] for clip in facts["hasPart"]] == [shown(text) for text in MARKUP]
    assert facts["description"] == shown("\n".join(ALL)).strip()
    assert "alert(1)" in facts["transcript"]


async def test_long_transcript_is_cut(anyone: Sender) -> None:
    video = await make_row(**READY)
    await add_captions(video, "en", *["word " * 900] * 50)
    transcript = (await facts_of(anyone, video))["transcript"]
    assert len(transcript) == MAX_TRANSCRIPT_LENGTH
    assert transcript.startswith("word word ")


async def test_sitemap_describes_videos_in_the_order_of_the_schema(
    app: Quart, anyone: Sender
) -> None:
    tags = ", ".join(f"tag{number}" for number in range(40))
    texts = {"title": "T" * 200, "description": "\u00e9" * 3_000, "tags": tags}
    video = await make_row(created_at=CREATED_AT, **texts, **READY)
    base = app.extensions["portal"].config.public_url
    [url] = urls_in(await sitemap_of(anyone))
    assert url.findtext(f"{S}loc") == f"{base}/videos/{video.id}"
    facts = [(element.tag.removeprefix(V), element.text) for element in url.findall(f"{V}video/*")]
    assert facts == [
        ("thumbnail_loc", f"{base}/videos/{video.id}/poster.jpg"),
        ("title", "T" * 100),
        ("description", "\u00e9" * 2_048),
        ("player_loc", f"{base}/embed/{video.id}"),
        ("duration", "3725"),
        ("publication_date", "2026-03-04T05:06:07.000000Z"),
        *(("tag", f"tag{number}") for number in range(32)),
    ]
    for duration_s, expected in ((0.2, "1"), (28_800.4, "28800"), (28_800.5, None)):
        await change_video(video.id, duration_s=duration_s)
        [url] = urls_in(await sitemap_of(anyone))
        assert url.findtext(f"{V}video/{V}duration") == expected


async def test_sitemap_of_hostile_texts_is_valid(anyone: Sender) -> None:
    await make_hostile_videos()
    titles = (*TITLES, *ALL, "a\x00b\x0bc\ufffe\uffff]]>".replace("\x00", ""))
    for number, title in enumerate(titles):
        texts = {"description": "".join(ALL), "tags": f"{title},<b>", "title": title[:200]}
        await make_row(100 + number, **texts, **READY)
    urls = urls_in(await sitemap_of(anyone))
    assert len(urls) == len(titles) + 1
    for url in urls:
        [facts] = url.findall(f"{V}video")
        assert facts.findtext(f"{V}title")
        assert all(len(fact) == 0 for fact in facts)


async def test_long_sitemap_has_pages_that_new_videos_leave_as_they_are(app: Quart) -> None:
    videos = [
        # The second and the third were created at the same time.
        await make_row(number, created_at=CREATED_AT + timedelta(days=max(number, 2)), **READY)
        for number in range(1, 6)
    ]
    # A processing video has a place in the order, and is listed there once it is ready.
    await make_row(6, created_at=CREATED_AT + timedelta(days=3, hours=1))
    expected = [
        str(video.id) for video in sorted(videos, key=lambda video: (video.created_at, video.id))
    ]
    assert ids_in(await service.write_sitemap(ADDRESSES, page_size=6)) == expected
    index = ElementTree.fromstring(  # noqa: S314 - the portal wrote it
        await service.write_sitemap(ADDRESSES, page_size=2)
    )
    assert index.tag == f"{S}sitemapindex"
    assert [video.findtext(f"{S}loc") for video in index.findall(f"{S}sitemap")] == [
        f"{SITE}/sitemap-{number}.xml" for number in (1, 2, 3)
    ]
    pages = [await service.write_page(number, ADDRESSES, page_size=2) for number in (1, 2, 3)]
    assert [video_id for text in pages for video_id in ids_in(text)] == expected
    assert [len(ids_in(text)) for text in pages] == [2, 1, 2]
    with pytest.raises(NotFound):
        await service.write_page(4, ADDRESSES, page_size=2)
    await make_row(7, created_at=CREATED_AT + timedelta(days=9), **READY)
    assert await service.write_page(1, ADDRESSES, page_size=2) == pages[0]
    assert await service.write_page(2, ADDRESSES, page_size=2) == pages[1]


async def test_page_that_is_not_there_is_not_found(anyone: Sender) -> None:
    await make_row(**READY)
    assert (await anyone.get("/sitemap-1.xml")).status_code == 200
    for number in ("0", "01", "2", "99999", "100000", "9" * 5_000, "-1", "x", "1.5", "٣"):
        assert (await anyone.get(f"/sitemap-{number}.xml")).status_code == 404, number


async def test_unchanged_sitemap_is_not_sent_again(anyone: Sender) -> None:
    video = await make_row(**READY)
    etag = (await anyone.get("/sitemap.xml")).headers["ETag"]
    headers = {"If-None-Match": etag}
    assert (await anyone.get("/sitemap.xml", headers=headers)).status_code == 304
    await change_video(video.id, title="Another title")
    assert (await anyone.get("/sitemap.xml", headers=headers)).status_code == 200


async def test_robots_are_led_to_the_sitemap(app: Quart, anyone: Sender) -> None:
    lines = (await text_of(await anyone.get("/robots.txt"))).splitlines()
    assert lines[-1] == f"Sitemap: {app.extensions['portal'].config.public_url}/sitemap.xml"
    assert lines[0] == "User-agent: *"
