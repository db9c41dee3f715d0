"""Whole film of a new video that is a cut of another video's film: its files are copied first.

The first version of such a video is a cut whose base is a version of the other video. The pass
that makes the cut begins with this copy, which storage makes itself, or goes on with an interrupted
one. Then both videos are independent, except for the uploaded file.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from portal.concurrency import task_group
from portal.database.connection import execute, fetch_rows, lock_version, server_time, transaction
from portal.database.models import Attempt, Outcome, Rendition, RenditionState, Version, VideoStatus
from portal.films import attempts
from portal.films.attempts import LeaseLost, OpenAttempt
from portal.films.outputs import put_master
from portal.films.versions import WITHDRAWN_AT
from portal.storage.bucket import Storage, entries_of, objects_below
from portal.storage.objects import StoredObject, output_prefix
from portal.transcoding.encoding.loudness import LOUDNESS_COLUMNS
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import MASTER_NAME, Kind

# Copies that storage makes at once.
AT_ONCE = 16
# Id of a job for a version that no job makes; ids of jobs are unique.
JOB_ID = "SELECT nextval(pg_get_serial_sequence('procrastinate_jobs', 'id')) AS id"
# Columns of the film's version that the copy also has.
COPIED = (
    "file_name",
    "storage_key",
    "size_bytes",
    "source_etag",
    "probe_answer",
    "notes",
    "duration_s",
    "width",
    "height",
    "has_poster",
    "has_storyboard",
    *LOUDNESS_COLUMNS,
)
RENDITION_COLUMNS = """
  kind, name, position, state, tries, copied, width, height, frame_rate, codecs, bandwidth_bps,
  average_bandwidth_bps, iframe_bandwidth_bps, size_bytes, segment_count, channels, language, label,
  is_default
"""
# Complete renditions of picture and sound. Captions are copied as rows (`features.cuts.copies`).
COPY_RENDITIONS = f"""
INSERT INTO renditions (version_id, attempt_number, {RENDITION_COLUMNS})
SELECT %s, %s, {RENDITION_COLUMNS} FROM renditions
WHERE version_id = %s AND state = 'complete' AND kind <> 'subtitles'
"""  # noqa: S608 - put together from constants


async def copy_foreign_base(attempt: OpenAttempt, storage: Storage) -> OpenAttempt:
    """Copy the base of an attempt's cut, if it is another video's, and return the new attempt.

    An attempt whose base is the video's own is returned as it is. Raises `LeaseLost` if the attempt
    has lost its lease or the base was deleted, `ObjectMissing` if a file of the base was.
    """
    base = await Version.get_or_none(id=attempt.version.base_id)
    if base is None:
        raise LeaseLost
    if base.video_id == attempt.video_id:
        return attempt
    film = await _begin_copy(attempt, base)
    await _copy_files(base, film, storage)
    await put_master(film, storage)
    await _finish_copy(attempt, base, film)
    return replace(attempt, version=await Version.get(id=attempt.version_id))


async def _begin_copy(attempt: OpenAttempt, base: Version) -> Version:
    """Record a version with the renditions of the film, and return it as it will be.

    It has failed until its files are stored, so that the janitor removes what a killed worker left.
    The copy that another attempt has begun is returned, unless the film has changed since.
    """
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        now = await server_time()
        if begun := await _begun_copy(attempt, base):
            # The janitor removes copies of which no attempt was under way for a day.
            await Attempt.filter(version_id=begun.id).update(lease_expires_at=now)
            return begun
        [job] = await fetch_rows(JOB_ID)
        film = await Version.create(
            video_id=attempt.video_id,
            created_at=now,
            status=VideoStatus.FAILED,
            retired_at=WITHDRAWN_AT,
            transcode_job_id=job["id"],
            **{name: getattr(base, name) for name in COPIED},
        )
        own_row = await Attempt.get(id=attempt.id)
        number = await attempts.next_number(attempt.video_id)
        await Attempt.create(
            version_id=film.id,
            video_id=film.video_id,
            number=number,
            worker=own_row.worker,
            stage="finishing",
            lease_expires_at=now,
            started_at=now,
            finished_at=now,
            outcome=Outcome.PUBLISHED,
        )
        await execute(COPY_RENDITIONS, film.id, number, base.id)
    film.published_attempt = number
    return film


async def _begun_copy(attempt: OpenAttempt, base: Version) -> Version | None:
    """Return the unfinished copy of a film as it will be, if there is one."""
    copies = Version.filter(video_id=attempt.video_id, base_id=None, status=VideoStatus.FAILED)
    last = copies.filter(storage_key=base.storage_key).order_by("-created_at").first()
    film = await last
    if film is None:
        return None
    if await Attempt.filter(version_id=base.id, started_at__gt=film.created_at).exists():
        return None
    film.published_attempt = (await Attempt.get(version_id=film.id)).number
    return film


async def _copy_files(base: Version, film: Version, storage: Storage) -> None:
    """Copy the missing files of a film to the folder of its copy, the playlists last."""
    target = output_prefix(film.video_id, film.published_attempt or 0)
    present = {entry.key async for entry in objects_below(target, storage)}
    complete = Rendition.filter(version_id=base.id, state=RenditionState.COMPLETE)
    playlists = {}
    for row in await complete.exclude(kind=Kind.SUBTITLES):
        folder = f"{output_prefix(base.video_id, row.attempt_number or 0)}{row.name}/"
        playlist = hls.PLAYLIST_NAME
        names = hls.playlist_uris((await storage.get(folder + playlist)).decode())
        if row.iframe_bandwidth_bps:
            names.append(hls.IFRAME_PLAYLIST_NAME)
        copies = {folder + name: f"{target}{row.name}/{name}" for name in names}
        await _copy_all(copies, present, storage)
        playlists[folder + playlist] = f"{target}{row.name}/{playlist}"
    pictures = {}
    folder = output_prefix(base.video_id, base.published_attempt or 0)
    async for entry in entries_of(folder, storage):
        # The master playlist names other folders, so the copy has its own.
        if isinstance(entry, StoredObject) and entry.key != folder + MASTER_NAME:
            pictures[entry.key] = target + entry.key.removeprefix(folder)
    await _copy_all(pictures, present, storage)
    await _copy_all(playlists, present, storage)


async def _copy_all(copies: Mapping[str, str], present: Collection[str], storage: Storage) -> None:
    """Copy objects to other keys, some at once. Present ones are kept. Raises `ObjectMissing`."""
    pairs = [(key, target) for key, target in copies.items() if target not in present]
    for start in range(0, len(pairs), AT_ONCE):
        async with task_group() as tasks:
            for key, target in pairs[start : start + AT_ONCE]:
                tasks.create_task(storage.copy(key, target))


async def _finish_copy(attempt: OpenAttempt, base: Version, film: Version) -> None:
    """Make the copy the base of the cut. Raises `LeaseLost`.

    It stays retired: nobody gets it before someone undoes the cut.
    """
    async with transaction():
        await lock_version(attempt.version_id)
        await attempts.hold(attempt)
        cut = Version.filter(id=attempt.version_id, base_id=base.id)
        if not await cut.update(base_id=film.id):
            raise LeaseLost
        await Version.filter(id=film.id).update(
            status=VideoStatus.READY, published_attempt=film.published_attempt
        )
