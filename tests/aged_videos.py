"""Videos with output, and rounds of the janitor, for the tests of maintenance."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from page_rows import make_attempt

from portal.database.models import Outcome, Video
from portal.http.composition import WebContext
from portal.maintenance import janitor
from portal.storage.objects import output_prefix

LONG_AGO = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def hence(**delta: float) -> datetime:
    """Return a moment in the future."""
    return datetime.now(UTC) + timedelta(**delta)


async def tidy(resources: WebContext, *, now: datetime | None = None) -> Mapping[str, int]:
    """Run the janitor once, as if at this moment."""
    return await janitor.tidy(resources.config, storage=resources.storage, now=now)


async def put_output(resources: WebContext, video: Video, attempt: int, *names: str) -> list[str]:
    """Store objects in an attempt's folder, and return their keys."""
    keys = [output_prefix(video.id, attempt) + name for name in names]
    for key in keys:
        await resources.storage.put(key, b"x", content_type="video/mp4")
    return keys


async def put_master(resources: WebContext, video: Video, *uris: str) -> str:
    """Store a master playlist that names these URIs, and return its key."""
    key = output_prefix(video.id, video.published_attempt or 0) + "master.m3u8"
    text = "\n".join(["#EXTM3U", *(f"#EXT-X-STREAM-INF:BANDWIDTH=1\n{uri}" for uri in uris), ""])
    await resources.storage.put(key, text.encode(), content_type="text/plain")
    return key


async def ended_attempt(video: Video, number: int, outcome: Outcome | None, **values: Any) -> None:
    """Create an attempt that ended long ago, or was lost if it has no outcome."""
    ended = {"started_at": LONG_AGO, "lease_expires_at": LONG_AGO, "outcome": outcome}
    finished = {"finished_at": LONG_AGO if outcome else None}
    await make_attempt(video, number, **{**ended, **finished, **values})
