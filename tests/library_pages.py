"""What the library's tests share: videos without files, and pages read as people do."""

import html
import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from api_client import Client
from page_rows import make_row

from portal.database.models import Caption, Video, VideoStatus
from portal.processing.captions import CaptionText
from portal.transcoding.packaging.webvtt import Cue

FAILED = {
    "status": VideoStatus.FAILED,
    "failure_code": "damaged",
    "failure_message": "It is damaged.",
}


async def add_video(title: str, number: int = 0, **values: Any) -> Video:
    """A video with no file behind it; a higher number is newer."""
    # Any number of videos may be equally new; their jobs differ.
    return await make_row(number, title=title, transcode_job_id=uuid4().int >> 66, **values)


async def say(video: Video, *texts: str, language: str = "en", every_s: float = 10.0) -> None:
    """Captions in which this is said, one text after the other."""
    cues = [
        Cue(start_s=number * every_s, end_s=number * every_s + 5, text=text)
        for number, text in enumerate(texts)
    ]
    said = asdict(CaptionText.of(cues))
    await Caption.create(video=video, language=language, label=language, source="upload", **said)


@dataclass(frozen=True, slots=True)
class LibraryHtml:
    """A page of the library, taken apart."""

    text: str
    titles: list[str]
    next: str | None
    previous: str | None
    first: str | None


async def read(client: Client, path: str = "/", **query: str) -> LibraryHtml:
    """A page of the library, which always is one."""
    response = await client.get(f"{path}?{urlencode(query)}" if query else path)
    text = str(await response.get_data(as_text=True))
    assert response.status_code == 200, text
    titles = re.findall(r'<a dir="auto"\s+(?:class="card__link"\s+)?href="[^"]+">([^<]*)<', text)
    return LibraryHtml(
        text=text,
        titles=[html.unescape(title) for title in titles],
        next=_address(text, r'href="([^"]+)"\s+rel="next"'),
        previous=_address(text, r'href="([^"]+)"\s+rel="prev"'),
        first=_address(text, r'href="([^"]+)"[^>]*>First page<'),
    )


def _address(text: str, pattern: str) -> str | None:
    found = re.search(pattern, text)
    return html.unescape(found[1]) if found else None


async def titles(client: Client, **query: str) -> list[str]:
    """The titles on the first page of a query."""
    return (await read(client, "/", **query)).titles


async def all_titles(client: Client, **query: str) -> list[str]:
    """The titles on all pages of a query, page after page."""
    page = await read(client, "/", **query)
    found = list(page.titles)
    while page.next:
        page = await read(client, page.next)
        found += page.titles
    return found
