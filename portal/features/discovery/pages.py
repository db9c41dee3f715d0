"""Facts for search engines: schema.org's `VideoObject` in the watch page, and the sitemap.

`/robots.txt` (`http.assets`) leads to the sitemap.
"""

from collections.abc import Sequence
from itertools import pairwise

from quart import Blueprint, Response, url_for

from portal.concurrency import SingleFlight
from portal.database.connection import FIRST_ID
from portal.database.models import Video
from portal.errors import NotFound
from portal.features.discovery import service
from portal.features.discovery.sitemap import Addresses, shown_description
from portal.http.addresses import poster_url, public_url
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.http.formatting import whole_seconds
from portal.http.server.headers import conditional_response
from portal.text import rfc3339, shown, whole_number
from portal.transcoding.planning.chapters import Chapter
from portal.transcoding.planning.described_times import DescribedTimes
from portal.videos.reading import stream_below

blueprint = Blueprint("discovery", __name__)

XML_TYPE = "application/xml; charset=utf-8"
# The index of a sitemap has at most 50,000 pages.
MAX_NUMBER_DIGITS = 5
# Simultaneous requests for a page share the work, by the page's address.
WRITING: SingleFlight[str] = SingleFlight()


@blueprint.get("/sitemap.xml")
@policy(Policy.ANYONE)
async def sitemap() -> Response:
    """Return the sitemap of the public videos, or the index of its pages if there are many."""
    addresses = _addresses()
    text = await WRITING.get(
        public_url(url_for("discovery.sitemap")), lambda: service.write_sitemap(addresses)
    )
    return await conditional_response(text, content_type=XML_TYPE)


@blueprint.get("/sitemap-<number>.xml")
@policy(Policy.ANYONE)
async def sitemap_page(number: str) -> Response:
    """Return a page of the sitemap."""
    page = whole_number(number, max_digits=MAX_NUMBER_DIGITS)
    if not page or str(page) != number:
        raise NotFound
    addresses = _addresses()
    text = await WRITING.get(
        addresses.page_of_sitemap(page), lambda: service.write_page(page, addresses)
    )
    return await conditional_response(text, content_type=XML_TYPE)


@blueprint.app_template_global()
async def video_object(video: Video, chapters: Sequence[Chapter]) -> dict[str, object]:
    """Return a public, ready video as schema.org's `VideoObject`, without members of no value."""
    poster = poster_url(video)
    page_url = public_url(url_for("video.page", video_id=video.id))
    times = DescribedTimes.of(video.described_times, video.keep, video.duration_s)
    members = {
        "@context": "https://schema.org",
        "@type": "VideoObject",
        "name": shown(video.title),
        "description": shown_description(video.title, video.description, times),
        "uploadDate": rfc3339(video.created_at),
        "duration": _iso_duration(video.duration_s) if video.duration_s else None,
        "thumbnailUrl": public_url(poster) if poster else None,
        "url": page_url,
        "embedUrl": public_url(url_for("embedding.embed", video_id=video.id)),
        # Always there, unlike files for download, which are prepared for a day.
        "contentUrl": stream_below(public_url(""), video.id, video.published_attempt),
        "hasPart": _clips(chapters, video.duration_s, page_url),
        "transcript": await service.read_transcript(video.id),
        "interactionStatistic": _views_counter(video),
    }
    return {name: value for name, value in members.items() if value}


def _clips(
    chapters: Sequence[Chapter], duration_s: float | None, page_url: str
) -> list[dict[str, object]]:
    """Return chapters as schema.org's `Clip`s; none while the end of the last one is unknown."""
    if duration_s is None:
        return []
    starts_s = [chapter.start_s for chapter in chapters]
    return [
        {
            "@type": "Clip",
            "name": shown(chapter.title),
            "startOffset": _plain_number(start_s),
            "endOffset": _plain_number(end_s),
            "url": f"{page_url}?t={_plain_number(start_s)}",
        }
        for chapter, (start_s, end_s) in zip(
            chapters, pairwise([*starts_s, duration_s]), strict=True
        )
    ]


def _views_counter(video: Video) -> dict[str, object] | None:
    """Return the number of views, if the portal shows it and there are any."""
    if not web_context().config.has_views or not video.views:
        return None
    return {
        "@type": "InteractionCounter",
        "interactionType": {"@type": "WatchAction"},
        "userInteractionCount": video.views,
    }


def _iso_duration(duration_s: float) -> str:
    """Return a duration in whole seconds as ISO 8601, such as `PT1H2M5S`."""
    minutes, seconds = divmod(whole_seconds(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"PT{hours}H{minutes}M{seconds}S"


def _plain_number(seconds: float) -> float:
    """Return seconds exact to a millisecond, without a fraction if that is zero."""
    rounded = round(seconds, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def _addresses() -> Addresses:
    """Return the forms of addresses in the sitemap."""
    number = "NUMBER"
    return Addresses(
        video_id=FIRST_ID,
        number=number,
        page=public_url(url_for("video.page", video_id=FIRST_ID)),
        player=public_url(url_for("embedding.embed", video_id=FIRST_ID)),
        poster=public_url(url_for("playback.poster", video_id=FIRST_ID)),
        sitemap_page=public_url(url_for("discovery.sitemap_page", number=number)),
    )
