"""Compares videos with what was made of them, below `hls/`."""

from collections.abc import AsyncIterator
from functools import partial
from itertools import groupby
from uuid import UUID

from portal.maintenance.consistency import repairs
from portal.maintenance.consistency.comparison import TOO_YOUNG, Comparison
from portal.maintenance.consistency.findings import Difference, Repair
from portal.maintenance.consistency.merging import merged
from portal.maintenance.consistency.rows import is_video_known, videos_by_id
from portal.maintenance.consistency.video_files import Defect, examine_video, unused_objects
from portal.processing.removal import remove_below
from portal.storage.keys import OUTPUT_FOLDER, output_root
from portal.storage.listing import entries_of, objects_below
from portal.storage.objects import StoredObject
from portal.videos.publishing import parse_video_id


async def compare_outputs(run: Comparison) -> None:
    """Report what is missing of ready videos, and what is left that nothing refers to."""
    async for name, row, entry in merged(videos_by_id(), _entries(run)):
        if row is not None:
            if entry is not None or row["status"] == "ready":
                await _compare_video(UUID(name), run)
        elif isinstance(entry, StoredObject):
            repair = partial(_remove_object, entry, run)
            await run.report.add(Difference.OBJECT_UNUSED, entry.key, repair)
        elif not await _is_known(name):
            await _report_folder(OUTPUT_FOLDER + name + "/", run)


async def _entries(run: Comparison) -> AsyncIterator[tuple[str, StoredObject | str]]:
    async for entry in entries_of(OUTPUT_FOLDER, run.storage):
        key = entry if isinstance(entry, str) else entry.key
        yield key.removeprefix(OUTPUT_FOLDER).removesuffix("/"), entry


async def _is_known(name: str) -> bool:
    video_id = parse_video_id(name)
    return video_id is not None and await is_video_known(video_id)


async def _report_folder(prefix: str, run: Comparison) -> None:
    count, is_old = 0, True
    async for stored in objects_below(prefix, run.storage):
        count, is_old = count + 1, is_old and run.is_old(stored)
    if count:
        repair = partial(_remove_folder, prefix, run, is_old=is_old)
        await run.report.add(Difference.OBJECT_UNUSED, f"{prefix} ({count:,} objects)", repair)


async def _remove_folder(prefix: str, run: Comparison, *, is_old: bool) -> str | None:
    if not is_old:
        return TOO_YOUNG
    async for _ in remove_below(prefix, run.storage):
        pass
    return None


async def _remove_object(stored: StoredObject, run: Comparison) -> str | None:
    if not run.is_old(stored):
        return TOO_YOUNG
    await run.storage.delete(stored.key)
    return None


async def _compare_video(video_id: UUID, run: Comparison) -> None:
    defects = await examine_video(video_id, run.storage)
    if defects:
        # Once more: it may have been published, completed or deleted while it was looked at.
        still = await examine_video(video_id, run.storage)
        defects = [defect for defect in defects if defect in still]
    await _report_defects(video_id, defects, run)
    unused = await unused_objects(video_id, run.unused_since, run.storage)
    for folder, found in groupby(unused, key=lambda stored: stored.key.rpartition("/")[0]):
        objects = list(found)
        subject = f"{folder}/ ({len(objects):,} objects)"
        repair = partial(repairs.remove_unused, video_id, objects, run)
        await run.report.add(Difference.OBJECT_UNUSED, subject, repair)


async def _report_defects(video_id: UUID, defects: list[Defect], run: Comparison) -> None:
    """Report them; all lost renditions of a video are made again by one job."""
    lost = [defect.name for defect in defects if defect.kind is Difference.RENDITION_INCOMPLETE]
    again = repairs.once(partial(repairs.make_again, video_id, lost, run))
    chosen: dict[Difference, Repair] = {
        Difference.RENDITION_INCOMPLETE: again,
        Difference.MASTER_MISSING: partial(repairs.write_master, video_id, run.storage),
        Difference.MASTER_OUTDATED: partial(repairs.write_master, video_id, run.storage),
        Difference.POSTER_MISSING: partial(repairs.cut_poster, video_id, run.queue),
        Difference.STORYBOARD_MISSING: partial(repairs.make_storyboard, video_id, run.queue),
    }
    for defect in defects:
        subject = f"{output_root(video_id)} {defect.name} {defect.detail}".rstrip()
        await run.report.add(defect.kind, subject, chosen[defect.kind])
