"""Videos without files, and parsed pages of the library."""

import html
import re
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from api_client import Client
from page_rows import make_row

from portal.database.models import Caption, Video, VideoStatus
from portal.films.captions import CaptionText
from portal.transcoding.packaging.webvtt import Cue

FAILED = {
    "status": VideoStatus.FAILED,
    "failure_code": "damaged",
    "failure_message": "It is damaged.",
}


async def add_video(title: str, number: int = 0, **values: Any) -> Video:
    """Create a video without files; a higher number is newer."""
    # Any number of videos may be equally new; their jobs differ.
    return await make_row(number, title=title, transcode_job_id=uuid4().int >> 66, **values)


async def say(video: Video, *texts: str, language: str = "en", every_s: float = 10.0) -> None:
    """Create captions with these texts, one cue each."""
    cues = [
        Cue(start_s=number * every_s, end_s=number * every_s + 5, text=text)
        for number, text in enumerate(texts)
    ]
    caption_text = asdict(CaptionText.of(cues))
    await Caption.create(
        video=video, language=language, label=language, source="upload", **caption_text
    )


@dataclass(frozen=True, slots=True)
class LibraryHtml:
    """Parts of a page of the library."""

    text: str
    titles: list[str]
    next: str | None
    previous: str | None
    first: str | None


async def read(client: Client, path: str = "/", **query: str) -> LibraryHtml:
    """Request a page of the library, and return its parts."""
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
    match = re.search(pattern, text)
    return html.unescape(match[1]) if match else None


async def titles(client: Client, **query: str) -> list[str]:
    """Return the titles on the first page of a query."""
    return (await read(client, "/", **query)).titles


async def all_titles(client: Client, **query: str) -> list[str]:
    """Return the titles on all pages of a query, in order."""
    page = await read(client, "/", **query)
    collected = list(page.titles)
    while page.next:
        page = await read(client, page.next)
        collected += page.titles
    return collected
