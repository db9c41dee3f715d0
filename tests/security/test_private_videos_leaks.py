"""Attacks on private videos by asking: no answer tells that there is one, or what is in it."""

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from guarded_routes import Route, routes
from private_videos import Cast, make_ready, told
from quart import Quart
from signed_in import Sender, program, text_of, token_of

from portal.accounts import people
from portal.database.models import Video
from portal.database.states import Scope
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
