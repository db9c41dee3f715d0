"""Sitemaps with the extension for videos (sitemaps.org, schema sitemap-video/1.1). Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from portal.database.connection import Row
from portal.http.formatting import whole_seconds, with_shown_times
from portal.text import rfc3339, shown, split_tags
from portal.transcoding.planning.described_times import DescribedTimes

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
VIDEO_NAMESPACE = "http://www.google.com/schemas/sitemap-video/1.1"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
# Limits of the extension for videos.
MAX_TITLE_LENGTH = 100
MAX_DESCRIPTION_LENGTH = 2_048
MAX_DURATION_S = 28_800
MAX_TAGS = 32
# Characters that XML 1.0 excludes, and that `shown` and the database let through.
NOT_XML = ("\ufffe", "\uffff")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Absolute addresses by their form: those of videos contain `video_id`, pages a `number`."""

    video_id: str
    number: str
    page: str
    player: str
    poster: str
    sitemap_page: str

    def of_video(self, form: str, video_id: str) -> str:
        """Return an address of a video. Building it from its route would take ten times longer."""
        return form.replace(self.video_id, video_id)

    def page_of_sitemap(self, number: int) -> str:
        """Return the address of a page of the sitemap."""
        return self.sitemap_page.replace(self.number, str(number))


def shown_description(title: str, description: str, times: DescribedTimes) -> str:
    """Return a description with the times of the film that viewers get; the title without one."""
    text = shown(description).strip()
    if times.recorded or times.keep is not None:
        text = with_shown_times(text, times)
    return text or shown(title)


def index_xml(addresses: Iterable[str]) -> str:
    """Return the index of a sitemap with pages at these addresses."""
    pages = "\n".join(f"<sitemap>{_element('loc', address)}</sitemap>" for address in addresses)
    return f'{HEAD}\n<sitemapindex xmlns="{NAMESPACE}">\n{pages}\n</sitemapindex>\n'


def videos_xml(rows: Iterable[Row], addresses: Addresses) -> str:
    """Return the sitemap of the pages of videos."""
    urls = "\n".join(_url_element(row, addresses) for row in rows)
    for character in NOT_XML:
        urls = urls.replace(character, "")
    head = f'{HEAD}\n<urlset xmlns="{NAMESPACE}" xmlns:video="{VIDEO_NAMESPACE}">'
    return f"{head}\n{urls}\n</urlset>\n"


def _url_element(row: Row, addresses: Addresses) -> str:
    loc = _element("loc", addresses.of_video(addresses.page, str(row["id"])))
    # The extension requires a picture.
    facts = "".join(_video_elements(row, addresses)) if row["has_poster"] else ""
    return f"<url>{loc}{facts and f'<video:video>{facts}</video:video>'}</url>"


def _video_elements(row: Row, addresses: Addresses) -> Iterator[str]:
    """Yield the elements about a video, in the order of the schema."""
    video_id = str(row["id"])
    times = DescribedTimes.of(row["described_times"], row["keep"], row["duration_s"])
    description = shown_description(row["title"], row["description"], times)
    yield _element("video:thumbnail_loc", addresses.of_video(addresses.poster, video_id))
    yield _element("video:title", shown(row["title"])[:MAX_TITLE_LENGTH])
    yield _element("video:description", description[:MAX_DESCRIPTION_LENGTH])
    yield _element("video:player_loc", addresses.of_video(addresses.player, video_id))
    if row["duration_s"] and whole_seconds(row["duration_s"]) <= MAX_DURATION_S:
        yield _element("video:duration", str(whole_seconds(row["duration_s"])))
    yield _element("video:publication_date", rfc3339(row["created_at"]))
    for tag in split_tags(shown(row["tags"]))[:MAX_TAGS]:
        yield _element("video:tag", tag)


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>"
