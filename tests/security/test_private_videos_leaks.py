"""Attacks on private videos by asking: no answer tells that there is one, or what is in it."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from guarded_routes import Route, routes
from private_videos import Cast, make_ready, told
from quart import Quart
from signed_in import Sender, program, text_of, token_of

from portal.accounts import people
from portal.accounts.permissions import EVERYONES
from portal.database.models import Video
from portal.database.states import Scope, VideoStatus
from portal.videos import playback_links
from portal.videos.library_queries import Cursor, Sort
from portal.web.access import VIDEO_IDS, Policy
from portal.web.composition import WebContext

METRICS_TOKEN = "a-token-of-these-metrics"
WORDS = {
    "title": "Zanzibar ledger",
    "description": "Quokkas counted twice.",
    "tags": "axolotl, narwhal",
    "file_name": "wombats.mp4",
}
STRANGERS = ("nobody", "viewer", "another editor", "viewer's token")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"data": "{", "headers": JSON},
    {"data": "[]", "headers": {**JSON, "If-Match": "*"}},
    {"data": "{}", "headers": {"Content-Type": "text/plain", "If-Match": '"1"'}},
    {"data": "a=1", "headers": FORM},
)
pytestmark = pytest.mark.shared_app(downloads=True, metrics=True, metrics_token=METRICS_TOKEN)


@pytest.fixture
async def video(resources: WebContext, cast: Cast) -> Video:
    found = await make_ready(resources, cast.editor, **WORDS, duration_s=77.0, embed_origins=[])
    # What is searched is written by `save`.
    await found.save(update_fields=["title"])
    return found


@dataclass
class Tally:
    """Questions that were asked twice, and those whose answers differ."""

    count: int = 0
    wrong: list[object] = field(default_factory=list)

    async def compare(self, sender: Sender, method: str, paths: list[str], **options: Any) -> None:
        """Ask for something private, and for the same of what is not there."""
        private, unknown = [await told(await sender.ask(method, it, **options)) for it in paths]
        self.count += 1
        if private != unknown:
            self.wrong.append((method, paths[0], options, private[0], unknown[0]))


def of_videos(app: Quart) -> list[Route]:
    """All routes with a video's id in their address, whatever they are for."""
    names = re.compile(rf"[:<]({'|'.join(VIDEO_IDS)})>")
    return [
        it for it in routes(app) if names.search(it.rule) and it.policy is not Policy.OWN_UPLOAD
    ]


async def test_no_answer_tells_a_private_video_from_an_unknown_one(
    app: Quart, resources: WebContext, cast: Cast, video: Video
) -> None:
    """Every route of videos, as four strangers: reads in six ways, with the tag that its editor
    was given among them, and changes with five bodies.

    Some 900 questions, each also asked of an id that nobody has.
    """
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    tally, editor = Tally(), cast.senders["its editor"][0]
    for route in of_videos(app):
        paths = [route.path(it, link_id=str(link.id)) for it in (str(video.id), str(uuid4()))]
        is_read = route.method in ("GET", "HEAD")
        tag = (await editor.get(paths[0])).headers.get("ETag", "*") if is_read else "*"
        variants: tuple[dict[str, Any], ...] = BODIES
        if is_read:
            headers = ({"Range": "bytes=0-1"}, {"If-None-Match": tag}, {"HX-Request": "true"})
            more = ({"Accept": "application/json"}, {"Origin": "https://evil.example"})
            variants = ({}, *({"headers": it} for it in (*headers, *more)))
        for name in STRANGERS:
            for options in variants:
                await tally.compare(cast.senders[name][0], route.method, paths, **options)
            await tally.compare(cast.senders[name][0], "OPTIONS", paths)
    assert tally.wrong == []
    assert tally.count > 900
    assert (await Video.get(id=video.id)).title == WORDS["title"]


async def test_tokens_with_every_scope_but_one_learn_nothing(
    app: Quart, cast: Cast, video: Video
) -> None:
    """Five tokens of another editor, at every route of videos: 290 questions, asked twice."""
    other, tally = await people.get("eve@example.org"), Tally()
    for left_out in (*Scope, None):
        scopes = [it for it in Scope if it is not left_out]
        sender = program(app, await token_of(other, scopes))
        for route in of_videos(app):
            paths = [route.path(it) for it in (str(video.id), str(uuid4()))]
            await tally.compare(sender, route.method, paths)
    assert tally.wrong == []
    assert tally.count > 250


async def test_odd_spellings_of_an_id_find_nothing(cast: Cast, video: Video) -> None:
    """Nine spellings at five addresses, as nobody and as another editor."""
    plain = str(video.id)
    for spelled in (
        plain.upper(),
        plain.replace("-", ""),
        f"{{{plain}}}",
        f"urn:uuid:{plain}",
        f"{plain}%00",
        f"{plain}%20",
        f"{plain}.",
        f"./{plain}",
        f"{plain}%2f",
    ):
        for path in ("/api/videos/{}", "/videos/{}", "/embed/{}", "/hls/{}/1/master.m3u8"):
            for name in ("nobody", "another editor"):
                answer = await cast.senders[name][0].get(path.format(spelled))
                assert answer.status_code == 404, (path, spelled)
        address = quote(f"http://localhost/videos/{spelled}", safe="")
        answer = await cast.senders["nobody"][0].get(f"/oembed?url={address}")
        assert answer.status_code == 404, spelled


def library_addresses(video: Video) -> list[str]:
    """Ways to ask for a video in the library by what is known of it."""
    text = re.findall(r"\w+", " ".join(str(it) for it in WORDS.values()))
    words = [*text, *(it[:4] for it in text), " ".join(text[:2]), str(video.id), video.id.hex]
    found = [f"/?q={quote(it)}" for it in words]
    found += [f"/?{it}" for it in ("", "tag=axolotl", "tag=narwhal", "category=1")]
    found += [f"/?status={it.value}&category=1" for it in VideoStatus]
    values = {
        Sort.NEWEST: video.created_at,
        Sort.OLDEST: video.created_at,
        Sort.TITLE: video.title.lower(),
        Sort.LONGEST: 77.0,
    }
    for sort, value in values.items():
        cursor = quote(str(Cursor(0, value, video.id)))
        found += [f"/?sort={sort.value}&{way}={cursor}" for way in ("after", "before")]
        found.append(f"/?sort={sort.value}&q=heron&after={cursor}")
    return [*found, f"/library/progress?id={video.id}", f"/library/progress?id={video.id}&id=x"]


async def test_library_is_the_same_without_what_is_private(
    resources: WebContext, cast: Cast, video: Video
) -> None:
    """Sixty addresses of the library, as four strangers, with the video and after it is gone:
    every word of it and the beginnings of these, tags, filters, and places made from it.
    """
    for number in range(3):
        public = await make_ready(resources, cast.editor, "public", title=f"Heron {number}")
        await public.save(update_fields=["title"])
    addresses = library_addresses(video)
    asked = [(name, path) for path in addresses for name in STRANGERS]
    before = {it: await told(await cast.senders[it[0]][0].get(it[1])) for it in asked}
    own = await text_of(await cast.senders["its editor"][0].get("/?q=zanz"))
    assert str(video.id) in own
    await video.delete()
    after = {it: await told(await cast.senders[it[0]][0].get(it[1])) for it in asked}
    assert [it for it in asked if before[it] != after[it]] == []
    assert len(addresses) > 40


async def test_lists_for_machines_name_nothing_private(
    app: Quart, cast: Cast, video: Video
) -> None:
    """Seventeen addresses, as four strangers: what crawlers and programs look for."""
    well_known = ("sitemap.xml", "robots.txt", "feed", "feed.xml", "rss", "atom.xml", "index.json")
    private = [*WORDS.values(), "quokka", "axolotl", str(video.id), video.id.hex]
    paths = [f"/{it}" for it in well_known]
    paths += ["/api/videos", "/api/openapi.json", "/api/docs", "/api/categories", "/hls/", "/p/"]
    paths += ["/.well-known/security.txt", "/healthz", "/readyz", f"/hls/{video.id}/"]
    for path in paths:
        for name in STRANGERS:
            text = await text_of(await cast.senders[name][0].get(path))
            assert [it for it in private if it in text and it not in path] == [], (path, name)
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    figures = await text_of(await Sender(app, headers).get("/metrics"))
    assert "portal_" in figures
    assert [it for it in private if it in figures] == []
    refused = await Sender(app).get("/metrics")
    assert refused.status_code in (401, 403, 404)


async def test_log_of_refusals_tells_no_more_than_the_address(
    app: Quart, cast: Cast, video: Video, lines: list[str]
) -> None:
    """Every route of videos as two strangers, at the most talkative level of logging."""
    for route in of_videos(app):
        for name in ("nobody", "another editor"):
            await cast.senders[name][0].ask(route.method, route.path(str(video.id)))
    log = "\n".join(lines)
    assert log.count(str(video.id)) > 50
    assert [it for it in (*WORDS.values(), "axolotl") if it in log] == []
