"""What the tests of the janitor and of `portal doctor --deep` share: videos with output, ageing."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api_client import run_sql
from page_rows import READY, make_attempt, make_rendition, make_row

from portal.database.models import Outcome, Video
from portal.maintenance import janitor
from portal.storage.objects import output_prefix
from portal.web.composition import WebContext

LONG_AGO = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MASTER_HEAD = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"


def hence(**delta: float) -> datetime:
    """A moment to come."""
    return datetime.now(UTC) + timedelta(**delta)


async def tidy(resources: WebContext, *, now: datetime | None = None) -> janitor.Tidied:
    """Have the janitor tidy up; at that moment, if it is given."""
    return await janitor.tidy(
        resources.config, storage=resources.storage, queue=resources.queue, now=now
    )


async def age_uploads(resources: WebContext, interval: str) -> None:
    """Make every upload as old as this, and as long untouched."""
    await run_sql(
        resources.config.database_url,
        f"UPDATE uploads SET created_at = now() - interval '{interval}',"
        f" active_at = active_at - interval '{interval}'",
    )


async def put_output(resources: WebContext, video: Video, attempt: int, *names: str) -> list[str]:
    """Objects below an attempt's folder; returns their keys."""
    keys = [output_prefix(video.id, attempt) + name for name in names]
    for key in keys:
        await resources.storage.put(key, b"x", content_type="video/mp4")
    return keys


async def put_master(resources: WebContext, video: Video, *uris: str) -> str:
    """A master playlist that names these."""
    key = output_prefix(video.id, video.published_attempt or 0) + "master.m3u8"
    text = "".join(f"{MASTER_HEAD}{uri}\n" for uri in uris)
    await resources.storage.put(key, text.encode(), content_type="text/plain")
    return key


async def ended_attempt(video: Video, number: int, outcome: Outcome | None, **values: Any) -> None:
    """An attempt that ended long ago, or was lost."""
    ended = {"started_at": LONG_AGO, "lease_expires_at": LONG_AGO, "outcome": outcome}
    finished = {"finished_at": LONG_AGO if outcome else None}
    await make_attempt(video, number, **{**ended, **finished, **values})


async def video_with_history(resources: WebContext) -> tuple[Video, list[str], list[str]]:
    """A ready video of four attempts; the keys that are in use, and those that are not.

    The first failed, the second was lost, the third was published, the fourth completed it.
    """
    video = await make_row(10_000, **{**READY, "published_attempt": 3})
    outcomes = (Outcome.FAILED, None, Outcome.PUBLISHED, Outcome.PUBLISHED)
    for number, outcome in enumerate(outcomes, start=1):
        await ended_attempt(video, number, outcome)
    await make_rendition(video, "360p", attempt_number=3)
    await make_rendition(video, "720p", attempt_number=4)
    uris = ("360p/playlist.m3u8", "audio/playlist.m3u8", "../4/720p/playlist.m3u8")
    used = [await put_master(resources, video, *uris)]
    # Of the sound only the master playlist knows, as in videos of before 0.2.
    third = ("poster.jpg", "storyboard.vtt", "360p/00000.m4s", "audio/00000.m4s")
    used += await put_output(resources, video, 3, *third)
    used += await put_output(resources, video, 4, "720p/00000.m4s")
    unused = await put_output(resources, video, 1, "poster.jpg", "360p/00000.m4s")
    unused += await put_output(resources, video, 2, "360p/00000.m4s")
    unused += await put_output(resources, video, 3, "480p/00000.m4s", "480p/00001.m4s")
    unused += await put_output(resources, video, 4, "1080p/00000.m4s")
    return video, sorted(used), sorted(unused)
