"""Public videos for search engines: the pages of the sitemap, and the transcript of a video.

The sitemap has the ready videos that anyone finds in the library, the oldest first. So new videos
are added to the last page.
"""

import asyncio
from uuid import UUID

from psycopg import sql

from portal.accounts.permissions import ANYONE, listed_for
from portal.database.connection import IS_PRESENT, Row, run_query, sql_with
from portal.errors import NotFound
from portal.features.discovery import sitemap
from portal.features.discovery.sitemap import Addresses
from portal.text import shown
from portal.transcoding.packaging.webvtt import read_webvtt

# Videos on a page of the sitemap. The protocol allows 50,000 in 50 MB.
PAGE_SIZE = 5_000
MAX_TRANSCRIPT_LENGTH = 20_000
# Length of a file of captions that usually has a whole transcript. Files may have 4 MiB.
MAX_CAPTIONS_LENGTH = 100_000
COUNT = "SELECT count(*) AS total FROM publications WHERE {public}"
# Pages are counted and cut by the index of public videos alone, which is fast. So a page has fewer
# videos while some of its videos are not ready, and those of the other pages stay the same. The ids
# are an array because the planner would read all versions to join thousands of rows.
PAGE = """
SELECT id, title, description, described_times, keep, duration_s, tags, created_at, has_poster
FROM videos
WHERE {public} AND status = 'ready' AND {present} AND id = ANY (ARRAY(
  SELECT id FROM publications WHERE {public}
  ORDER BY created_at, id OFFSET {skipped} LIMIT {page_size}
))
ORDER BY created_at, id
"""
# The default captions, or others if there are none by default.
CAPTIONS = """
SELECT left(text, {length}) AS text FROM captions
WHERE video_id = {video_id} AND cue_count > 0 AND text IS NOT NULL
ORDER BY is_default DESC, label LIMIT 1
"""


async def write_sitemap(addresses: Addresses, *, page_size: int = PAGE_SIZE) -> str:
    """Return the sitemap as XML, or the index of its pages if it has several."""
    page_count = await _count_pages(page_size)
    if page_count > 1:
        return sitemap.index_xml(addresses.page_of_sitemap(n) for n in range(1, page_count + 1))
    return await _write_videos(await _read_page(1, page_size), addresses)


async def write_page(number: int, addresses: Addresses, *, page_size: int = PAGE_SIZE) -> str:
    """Return a page of the sitemap as XML; the first has the number 1. Raises `NotFound`."""
    rows = await _read_page(number, page_size)
    if not rows and number > await _count_pages(page_size):
        raise NotFound
    return await _write_videos(rows, addresses)


async def read_transcript(video_id: UUID) -> str:
    """Return the words of a video's default captions in one line; empty without captions."""
    rows = await run_query(sql_with(CAPTIONS, length=MAX_CAPTIONS_LENGTH, video_id=video_id))
    # A thread, because long captions take some milliseconds.
    return await asyncio.to_thread(_words_of, rows[0]["text"]) if rows else ""


async def _count_pages(page_size: int) -> int:
    [counted] = await run_query(sql_with(COUNT, public=listed_for(ANYONE)))
    return -(-int(counted["total"]) // page_size)


async def _read_page(number: int, page_size: int) -> list[Row]:
    query = sql_with(
        PAGE,
        public=listed_for(ANYONE),
        present=sql.SQL(IS_PRESENT),
        skipped=(number - 1) * page_size,
        page_size=page_size,
    )
    return await run_query(query)


async def _write_videos(rows: list[Row], addresses: Addresses) -> str:
    # A thread, because a long page takes more than 100 ms.
    return await asyncio.to_thread(sitemap.videos_xml, rows, addresses)


def _words_of(captions: str) -> str:
    text = " ".join(cue.plain_text for cue in read_webvtt(captions))
    return " ".join(shown(text).split())[:MAX_TRANSCRIPT_LENGTH]
