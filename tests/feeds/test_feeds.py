"""Podcast feeds are read by a podcast parser, and their files are fetched as podcast clients do."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import podcastparser
import pytest
from aged_videos import hence, tidy
from api_client import problem
from page_rows import change_video
from passes import ready_video, tools_for
from playable_videos import PENDING, Cast, make_ready
from quart import Quart
from quart.typing import TestClientProtocol as Client
from signed_in import Sender, configure, make_account, person, signed_in, text_of

from portal.accounts import people
from portal.accounts.permissions import EVERYONES, Audience
from portal.database.account_models import Account, Role
from portal.database.connection import execute
from portal.database.models import Caption, Video, Visibility
from portal.database.work_models import Download, DownloadState
from portal.errors import DownloadsBusy
from portal.features.downloads import service as downloads
from portal.features.feeds import service as feeds
from portal.features.series import service as series
from portal.http.composition import WebContext
from portal.storage.bucket import Storage
from portal.transcoding.planning.chapters import Chapter
from portal.uploads.quotas import Quota
from portal.videos import chapters, metadata

pytestmark = pytest.mark.shared_app(feeds=True)

FEED = "/feeds/library.xml"
HOSTILE = "]]><script> & \"'\x0b\x1b\ufffe\u202e"
# The parser knows the elements of this namespace by a former name alone.
PODCAST = "{https://podcastindex.org/namespace/1.0}"


async def read(sender: Client | Sender, kind: str = "video", **parameters: Any) -> dict[str, Any]:
    """Return a feed as a podcast client reads it."""
    address = f"{FEED}?{urlencode({'kind': kind, **parameters})}"
    response = await sender.get(address)
    assert response.status_code == 200, address
    assert response.mimetype == "application/rss+xml"
    text = await response.get_data(as_text=False)
    parsed: dict[str, Any] = podcastparser.parse("https://videos.example.org/", BytesIO(text))
    return parsed


def titles_in(feed: dict[str, Any]) -> set[str]:
    return {episode["title"] for episode in feed["episodes"]}


def path_of(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


async def make_files(video: Video, resources: WebContext, work_dir: Path) -> None:
    """Make all requested files of a video as a worker does."""
    for row in await Download.filter(video_id=video.id, state=DownloadState.WAITING):
        await downloads.make_file(video.id, row.id, tools_for(resources, work_dir))


async def make_named(resources: WebContext, owner: Account, audience: str, title: str) -> Video:
    """Create a ready video with a file that feeds name."""
    video = await make_ready(resources, owner, audience)
    await change_video(video.id, title=title)
    # Any object in storage.
    key = f"hls/{video.id}/1/low/00000.m4s"
    await Download.create(video=video, name="low.mp4", state=DownloadState.READY, key=key)
    return video


async def make_key(sender: Sender) -> str:
    """Create the key of private feeds on the page of the account, and return it."""
    page = await text_of(await sender.post("/account/feeds"))
    [key] = set(re.findall(r"[?&;]key=([\w-]{43})", page))
    return key


async def test_video_is_named_with_its_file_once_that_is_made(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    await metadata.patch_video(video.id, versions=None, title=HOSTILE, tags="a<b, harbour")
    await chapters.save_chapters(video.id, [Chapter(0, "Dawn"), Chapter(1, "Noon")], versions=None)
    await Caption.create(
        video=video, language="pt-BR", label="P", source="upload", text="WEBVTT\n", cue_count=1
    )
    for kind, suffix, media_type in (
        ("video", "mp4", "video/mp4"),
        ("audio", "m4a", "audio/mp4"),
    ):
        assert (await read(client, kind))["episodes"] == []
        await make_files(video, resources, tmp_path)
        [episode] = (await read(client, kind))["episodes"]
        assert episode["title"] == "]]><script> & \"'"
        assert episode["guid"] == str(video.id)
        assert episode["description"] == "Filmed from the old crane."
        assert episode["link"].endswith(f"/videos/{video.id}")
        assert episode["published"] == int(video.created_at.timestamp())
        assert episode["total_time"] == 2
        picture = await client.get(path_of(episode["episode_art_url"]))
        assert picture.status_code == 302
        [enclosure] = episode["enclosures"]
        assert enclosure["mime_type"] == media_type
        assert urlsplit(enclosure["url"]).path == f"/feeds/videos/{video.id}.{suffix}"
        await check_file(client, path_of(enclosure["url"]), enclosure["file_size"], media_type)
    feed = await text_of(await client.get(f"{FEED}?kind=video"))
    document = ElementTree.fromstring(feed)  # noqa: S314  # our own
    transcript, listed, stream = (
        document.find(f".//{PODCAST}{name}") for name in ("transcript", "chapters", "source")
    )
    assert transcript is not None
    assert transcript.get("language") == "pt-BR"
    answer = await client.get(path_of(transcript.get("url", "")))
    assert answer.mimetype == transcript.get("type") == "text/vtt"
    assert stream is not None
    assert (await client.get(path_of(stream.get("uri", "")))).status_code == 200
    assert listed is not None
    answer = await client.get(path_of(listed.get("url", "")))
    assert answer.mimetype == listed.get("type") == "application/json+chapters"
    assert await answer.get_json(force=True) == {
        "version": "1.2.0",
        "chapters": [{"startTime": 0.0, "title": "Dawn"}, {"startTime": 1.0, "title": "Noon"}],
    }
    # A stream beside a sound would be a black picture.
    assert "alternateEnclosure" not in await text_of(await client.get(f"{FEED}?kind=audio"))


async def check_file(client: Client, path: str, size_bytes: int, media_type: str) -> None:
    """Check that an enclosure is served whole, in ranges and by its ETag."""
    whole = await client.get(path)
    content = await whole.get_data(as_text=False)
    assert len(content) == size_bytes
    etag = whole.headers["ETag"]
    head = await client.head(path)
    for response in (whole, head):
        assert (response.status_code, response.mimetype) == (200, media_type)
        assert response.headers["Accept-Ranges"] == "bytes"
        assert response.headers["ETag"] == etag
    last = size_bytes - 1
    for interval, begin, end in (
        ("0-1", 0, 1),
        ("4-11", 4, 11),
        ("-8", size_bytes - 8, last),
        (f"9-{size_bytes}", 9, last),
    ):
        part = await client.get(path, headers={"Range": f"bytes={interval}", "If-Range": etag})
        assert part.status_code == 206
        assert part.headers["Content-Range"] == f"bytes {begin}-{end}/{size_bytes}"
        assert part.headers["Content-Length"] == str(end - begin + 1)
        assert await part.get_data(as_text=False) == content[begin : end + 1]
    former = await client.get(path, headers={"Range": "bytes=4-", "If-Range": '"former"'})
    assert (former.status_code, await former.get_data(as_text=False)) == (200, content)
    assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 304


async def test_address_stays_and_its_etag_changes_with_the_title(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    etags = set()
    described = set()
    feed_etags = set()
    for title in ("Harbour", "Harbour at noon"):
        await metadata.patch_video(video.id, versions=None, title=title)
        assert (await read(client))["episodes"] == []
        await make_files(video, resources, tmp_path)
        feed = await client.get(f"{FEED}?kind=video")
        feed_etags.add(feed.headers["ETag"])
        again = {"If-None-Match": feed.headers["ETag"]}
        assert (await client.get(f"{FEED}?kind=video", headers=again)).status_code == 304
        [episode] = (await read(client))["episodes"]
        described.add((episode["guid"], episode["enclosures"][0]["url"]))
        etags.add((await client.head(path_of(episode["enclosures"][0]["url"]))).headers["ETag"])
    assert (len(described), len(etags), len(feed_etags)) == (1, 2, 2)

    # Clients that read the feed once a week find the file.
    await Download.all().update(requested_at=hence(days=-8))
    await execute("UPDATE procrastinate_jobs SET status = 'succeeded'")
    await tidy(resources)
    assert len((await read(client))["episodes"]) == 1
    await Download.all().update(kept_until=hence(hours=-1))
    await tidy(resources)
    assert (await read(client))["episodes"] == []


async def test_feeds_request_a_few_files_at_a_time_within_the_quota_of_the_owner(
    resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MAX_WAITING", 2)
    monkeypatch.setattr(downloads, "MAX_WAITING_OF_ONE", 1)
    olga = await make_account("olga")
    eve = await make_account("eve", Role.EDITOR)
    videos = [await make_ready(resources, owner, "public") for owner in (olga, olga, olga, eve)]
    await execute("UPDATE renditions SET size_bytes = 1000")

    async def requested(*, of: Sequence[Video] = videos, stored_bytes: int = 0) -> int:
        await feeds.read_episodes(of, "mp4", quota=Quota(stored_bytes=stored_bytes))
        return await Download.filter(state=DownloadState.WAITING).count()

    assert await requested(stored_bytes=1) == 0
    assert await requested() == 2
    assert await requested() == 2
    assert {row.requester for row in await Download.all()} == {str(olga.id), str(eve.id)}
    # The owner has a place left for a file of their own, and it is the last one.
    await downloads.request_file(videos[1].id, "low.mp4", account_id=olga.id)
    with pytest.raises(DownloadsBusy):
        await downloads.request_file(videos[2].id, "low.mp4", account_id=olga.id)
    # Qualities that will follow are waited for.
    await execute("UPDATE downloads SET state = 'ready'")
    await execute("UPDATE versions SET complete_job_id = 1")
    assert await requested(of=[await Video.get(id=video.id) for video in videos]) == 0


async def test_feed_without_a_key_names_what_anyone_finds(
    app: Quart, client: Client, resources: WebContext, cast: Cast
) -> None:
    videos = {
        audience: await make_named(resources, cast.editor, audience, f"Heron {audience}")
        for audience in ("public", "unlisted", "private", "for members")
    }
    sender, _ = cast.senders["its editor"]
    audience = Audience(Visibility.PUBLIC, owner_id=cast.editor.id)
    series_id = await series.create("Waders", "", audience=audience)
    await series.add_videos(series_id, [video.id for video in videos.values()], by=EVERYONES)
    for reader in (client, sender):
        assert titles_in(await read(reader)) == {"Heron public"}
        feed = await read(reader, series=series_id)
        assert titles_in(feed) == {"Heron public"}
        assert feed["title"].startswith("Waders · ")
    for parameters, titles in (
        ({"q": "heron"}, {"Heron public"}),
        # No results, and not those of the closest word.
        ({"q": "herron"}, set()),
        ({"category": videos["public"].category_ids[0]}, {"Heron public"}),
        ({"category": 14}, set()),
    ):
        assert titles_in(await read(client, **parameters)) == titles, parameters
    for name, status in (("public", 200), ("unlisted", 200), ("private", 404)):
        answer = await client.get(f"/feeds/videos/{videos[name].id}.mp4")
        assert answer.status_code == status, name
    await change_video(videos["public"].id, visibility=Visibility.PRIVATE)
    assert titles_in(await read(client)) == set()
    address = f"/feeds/videos/{videos['public'].id}.mp4"
    await problem(await client.get(address), 404, "video_not_found")


async def test_private_feed_has_what_its_account_finds_until_the_key_is_revoked(
    app: Quart, client: Client, resources: WebContext, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    olga = await make_account("olga")
    vera = await make_account("vera", Role.EDITOR)
    sender = await signed_in(app, vera)
    for audience in ("public", "private", "for members", PENDING):
        await make_named(resources, olga, audience, audience)
    former = await make_key(sender)
    key = await make_key(sender)
    for refused in (former, "none"):
        await problem(await client.get(f"{FEED}?key={refused}"), 404, "link_not_valid")

    response = await client.get(f"{FEED}?key={key}")
    assert response.headers["Cache-Control"] == "private, no-cache"
    assert "private" not in (await client.get(FEED)).headers["Cache-Control"]
    episodes = {episode["title"]: episode for episode in (await read(client, key=key))["episodes"]}
    assert set(episodes) == {"public", "for members"}
    episode = episodes["for members"]
    address = path_of(episode["enclosures"][0]["url"])
    enclosure = await client.get(address)
    assert enclosure.status_code == 200
    assert "private" in enclosure.headers["Cache-Control"]
    assert (await client.get(address.partition("?")[0])).status_code == 404
    assert (await client.get(path_of(episode["episode_art_url"]))).status_code == 302
    # The key is for the addresses of feeds alone.
    video_id = episode["guid"]
    for path in (f"/videos/{video_id}", f"/videos/{video_id}/poster.jpg", "/account"):
        assert (await client.get(f"{path}?key={key}")).status_code in (303, 404), path
    assert key not in caplog.text

    await people.disable(vera.id, by=person(olga))
    assert (await client.get(address)).status_code == 404
    await people.enable(vera.id, by=person(olga))
    assert (await client.get(address)).status_code == 200
    await change_video(episode["guid"], signed_in_only=False)
    assert (await client.get(address)).status_code == 404
    sender = await signed_in(app, vera)
    assert (await sender.post("/account/feeds/revoke")).status_code == 303
    await problem(await client.get(f"{FEED}?key={key}"), 404, "link_not_valid")


async def test_enclosure_is_redirected_to_storage_that_has_etags(
    client: Client, resources: WebContext, olga: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await make_named(resources, olga, "public", "Heron")
    head = Storage.head

    async def head_with_etag(storage: Storage, key: str) -> Any:
        return replace(await head(storage, key), etag="0cc1")

    monkeypatch.setattr(Storage, "head", head_with_etag)
    address = f"/feeds/videos/{video.id}.mp4"
    assert (await client.head(address)).headers["ETag"] == '"0cc1"'
    response = await client.get(address, headers={"Range": "bytes=0-1"})
    assert response.status_code == 302
    assert response.headers["Cache-Control"] == "private, no-store"
    assert response.headers["Location"].startswith(await resources.storage.public.origin())


async def test_portal_has_no_feeds_by_default(app: Quart, client: Client, owner: Sender) -> None:
    assert 'type="application/rss+xml"' in await text_of(await owner.get("/?q=heron"))
    configure(app, feeds=False)
    video = await make_ready(app.extensions["portal"], None, "public")
    for path in (FEED, f"/feeds/videos/{video.id}.mp4", f"/feeds/videos/{video.id}/chapters.json"):
        assert (await client.get(path)).status_code == 404
    assert (await owner.post("/account/feeds")).status_code == 404
    for path in ("/?q=heron", "/account"):
        assert "feed" not in (await text_of(await owner.get(path))).lower(), path
