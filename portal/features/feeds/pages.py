"""Feeds with the files that they name, and the forms for a person's private feeds.

The parameter `key` of a private feed stands for the account that made it, at the addresses of feeds
alone. Streams, posters and captions of private videos have addresses with playback tokens there.

Where storage computes ETags, enclosures are redirected to signed addresses. The embedded storage
doesn't, and answers a range with the status 200, which podcast clients take for the whole file: the
portal passes its bytes on. HEAD is answered here, because a signed address is for GET alone.
"""

import json
from dataclasses import replace
from typing import Any

from quart import Blueprint, Response, redirect, render_template, request, url_for
from quart.typing import ResponseReturnValue

from portal.accounts.permissions import ANYONE, audience_of
from portal.database.models import VideoStatus
from portal.errors import DownloadNotFound, NotFound
from portal.features.discovery.sitemap import NOT_XML
from portal.features.downloads.service import CONTENT_TYPES
from portal.features.feeds import service
from portal.features.library.pages import SORT_WORDS, read_query
from portal.features.series.service import read_series
from portal.http.addresses import own_base, public_url
from portal.http.auth import Policy, identify_as, policy, principal, require_person
from portal.http.composition import web_context
from portal.http.playlists import PRIVATE_URL_TTL_S
from portal.http.server.headers import OPEN_TO_ALL, conditional_response
from portal.http.server.limits import Rate
from portal.http.videos import find_videos, read_video
from portal.storage.calls import ObjectMissing
from portal.videos.chapters import read_chapters
from portal.videos.library_queries import Sort
from portal.videos.reading import fetch_in_order, stream_below

blueprint = Blueprint("feeds", __name__)

# Videos of a feed, the newest ones.
MAX_VIDEOS = 50
# Media type of chapters in the podcast namespace.
CHAPTERS_TYPE = "application/json+chapters"
# Values of the template that are the same for all feeds.
COMMON_VALUES = {
    "chapters_type": CHAPTERS_TYPE,
    "own_base": own_base,
    "public_url": public_url,
    "stream_below": stream_below,
}
# Time for a client to receive an enclosure that the portal passes on. Players may pause.
ENCLOSURE_TIMEOUT_S = 4 * 3600


@blueprint.before_request
async def admit() -> None:
    """Refuse requests unless `FEEDS=on`, and let the key in the address identify the caller."""
    if not web_context().config.feeds:
        raise NotFound
    if key := request.args.get("key"):
        identify_as(await service.reader_of(key))


@blueprint.app_template_global()
def feed_addresses(**parameters: Any) -> dict[str, str]:
    """Return the addresses of feeds by kind, without empty parameters; none with `FEEDS=off`."""
    present = {name: value for name, value in parameters.items() if value}
    return {
        kind: public_url(url_for("feeds.feed", kind=kind, **present))
        for kind in ("audio", "video")
        if web_context().config.feeds
    }


@blueprint.get("/feeds/library.xml")
@policy(Policy.WATCH, rate=Rate.LISTING)
async def feed() -> Response:
    """Return the feed of the library, a search, a category, a tag or a series.

    Without a key it has what anyone finds, whatever other credentials the request has.
    """
    key = request.args.get("key") or None
    reader = await principal() if key else ANYONE
    series = await read_series(request.args["series"], reader) if "series" in request.args else None
    query = replace(
        await read_query(SORT_WORDS),
        status=VideoStatus.READY,
        sort=Sort.NEWEST,
        seen_by=reader,
        series_id=series.id if series else None,
    )
    page = await find_videos(query, limit=MAX_VIDEOS)
    # Results of other words than those in the address would change with the library.
    videos = await fetch_in_order([] if page.text else page.video_ids)
    suffix = "m4a" if request.args.get("kind") == "audio" else "mp4"
    episodes = await service.read_episodes(
        [
            video
            for video in videos
            if video.approval is None and reader.may_list(audience_of(video))
        ],
        suffix,
        quota=web_context().quota,
    )
    text = await render_template(
        "feeds/feed.xml",
        episodes=episodes,
        key=key,
        query=query,
        series=series,
        suffix=suffix,
        media_type=CONTENT_TYPES[f".{suffix}"],
        language=web_context().config.site_language,
        categories=await web_context().categories.names(),
        **COMMON_VALUES,
    )
    return await conditional_response(
        text.translate(dict.fromkeys(map(ord, NOT_XML))),
        content_type="application/rss+xml; charset=utf-8",
        cache_control="private, no-cache" if key else "no-cache",
    )


@blueprint.get("/feeds/videos/<video_id>.<suffix>")
@policy(Policy.WATCH, rate=Rate.DOWNLOADS)
async def enclosure(video_id: str, suffix: str) -> ResponseReturnValue:
    """Return the file of a video or a range of it, or redirect to storage."""
    video = await read_video(video_id)
    object_key = (await service.find_enclosure(video, suffix)).key or ""
    storage = web_context().storage
    try:
        info = await storage.head(object_key)
    except ObjectMissing as exc:
        raise DownloadNotFound from exc
    is_read = request.method == "GET"
    if info.etag and is_read:
        return redirect(await storage.public.presign_get(object_key, ttl_s=PRIVATE_URL_TTL_S)), {
            **OPEN_TO_ALL,
            "Cache-Control": "private, no-store",
        }
    # A file that is made again has another key in storage.
    etag = info.etag or object_key.rpartition("/")[2]
    # The validator of a client that continues a download.
    requested_range = request.range if is_read and request.if_range.etag in (None, etag) else None
    part = requested_range.range_for_length(info.size_bytes) if requested_range else None
    begin, end = part or (0, info.size_bytes)
    body = storage.pieces(object_key, begin=begin, end=end if is_read else begin)
    answer = Response(body, 206 if part else 200, content_type=CONTENT_TYPES[f".{suffix}"])
    answer.timeout = ENCLOSURE_TIMEOUT_S
    answer.content_length = end - begin
    if part:
        answer.content_range.set(begin, end, info.size_bytes)
    answer.headers.update(
        {**OPEN_TO_ALL, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    )
    answer.set_etag(etag)
    return await answer.make_conditional(request)


@blueprint.get("/feeds/videos/<video_id>/chapters.json")
@policy(Policy.WATCH)
async def chapters(video_id: str) -> Response:
    """Return the chapters of a video as podcast clients read them."""
    video = await read_video(video_id)
    listed = [
        {"startTime": chapter.start_s, "title": chapter.title}
        for chapter in (await read_chapters(video.id)).chapters
    ]
    return await conditional_response(
        json.dumps({"version": "1.2.0", "chapters": listed}),
        content_type=CHAPTERS_TYPE,
        cache_control="private, no-cache",
    )


@blueprint.post("/account/feeds")
@policy(Policy.OWN_ACCOUNT)
async def make_key() -> str:
    """Create or replace the key of the person's private feeds, and show their addresses once."""
    secret = await service.make_key(await require_person())
    return await render_template("feeds/new_key.html", secret=secret)


@blueprint.post("/account/feeds/revoke")
@policy(Policy.OWN_ACCOUNT)
async def revoke_key() -> ResponseReturnValue:
    """Revoke the key of the person's private feeds."""
    await service.revoke_key(await require_person())
    return redirect(url_for("account.account"), 303)
