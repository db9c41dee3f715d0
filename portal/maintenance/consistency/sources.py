"""Compares uploads and videos with the uploaded files below `videos/`."""

from functools import partial

from portal.database.connection import Row
from portal.database.models import Video
from portal.maintenance.consistency.comparison import TOO_YOUNG, Comparison
from portal.maintenance.consistency.findings import Difference
from portal.maintenance.consistency.merging import merged
from portal.maintenance.consistency.rows import is_key_known, uploads_by_key
from portal.processing.sources import holds_source, identify
from portal.storage.errors import ObjectMissing
from portal.storage.keys import UPLOAD_FOLDER
from portal.storage.listing import objects_below
from portal.storage.objects import StoredObject
from portal.uploads import service as uploads


async def compare_sources(run: Comparison) -> None:
    """Report every uploaded file that is missing, changed, abandoned or unknown."""
    rows = uploads_by_key(idle_since=run.overdue_since)
    objects = ((stored.key, stored) async for stored in objects_below(UPLOAD_FOLDER, run.storage))
    async for key, row, stored in merged(rows, objects):
        if row is None:
            if stored is not None and not await is_key_known(key):
                subject = f"{key} ({stored.size_bytes:,} bytes)"
                await run.report.add(
                    Difference.OBJECT_UNUSED, subject, partial(_remove, stored, run)
                )
        elif row["video_id"] is not None:
            await _check_source(row, stored, run)
        elif row["is_idle"]:
            repair = partial(_discard, key, run)
            await run.report.add(Difference.UPLOAD_ABANDONED, key, repair)


async def _check_source(row: Row, stored: StoredObject | None, run: Comparison) -> None:
    if stored is not None and stored.etag == row["source_etag"]:
        return
    video = await Video.get_or_none(id=row["video_id"])
    if video is None or await holds_source(video, run.storage):
        return
    subject = f"video {row['video_id']}: {row['key']}"
    try:
        found = await identify(row["key"], run.storage)
    except ObjectMissing:
        await run.report.add(Difference.SOURCE_MISSING, subject, _upload_again)
        return
    if found.size_bytes != row["size_bytes"]:
        subject += f", {found.size_bytes:,} bytes instead of {row['size_bytes']:,}"
        await run.report.add(Difference.SOURCE_CHANGED, subject, _upload_again)
    else:
        repair = partial(_accept, row, found.etag, run)
        await run.report.add(Difference.SOURCE_CHANGED, f"{subject}, another ETag", repair)


async def _upload_again() -> str:
    return "can't be repaired: upload the file again and delete this video"


async def _accept(row: Row, etag: str, run: Comparison) -> str | None:
    """Storage gives restored objects other ETags; whether that is so only the operator knows."""
    if not run.accepts_sources:
        return "after a restore, --accept-sources takes it for the same file"
    await Video.filter(id=row["video_id"], source_etag=row["source_etag"]).update(source_etag=etag)
    return None


async def _remove(stored: StoredObject, run: Comparison) -> str | None:
    if not run.is_old(stored):
        return TOO_YOUNG
    if await is_key_known(stored.key):
        return "in use by now"
    await run.storage.delete(stored.key)
    return None


async def _discard(key: str, run: Comparison) -> str | None:
    since = run.cutoffs.idle_since
    done = await uploads.discard_abandoned(key, idle_since=since, storage=run.storage)
    return None if done else "in use by now"
