"""The current version of a video: its change, and what follows it.

Captions move to the times of the version (`captions.derive_texts`), a transcription restarts, and a
poster that shows a removed frame is not used. Chapters, watch positions and figures of viewers are
stored for the whole film, and their readers map them to that of the current version.

A new file begins with the captions and chapters that viewers got before, without those of removed
parts; captions that a machine wrote are written anew. The captions and chapters of the former file
are kept with its version, those of removed parts included, and restored with it. The database
deletes them with the version.

Each function belongs to a transaction that has locked the video.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from tortoise.expressions import F, RawSQL

from portal.database.connection import Row, execute, fetch_rows
from portal.database.models import (
    Caption,
    CaptionSource,
    Publication,
    Rendition,
    Version,
    Video,
    VideoStatus,
)
from portal.database.work_models import MadeSegment, PassInProgress, Transcription
from portal.events.log import EventType, note_outcome
from portal.processing import captions
from portal.queue.jobs import cancel_job
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.chapters import chapters_from, cut_chapters
from portal.transcoding.planning.described_times import DescribedTimes
from portal.transcoding.planning.kept import Kept

# Viewers who began to watch a version can finish it within this time after its retirement.
SERVED_S = 24 * 3600
# Time in which a retired version can become the current one again.
REVERTIBLE_S = 7 * 24 * 3600
# A version that was retired at this time can't become current again.
WITHDRAWN_AT = datetime(1970, 1, 1, tzinfo=UTC)

# Each replaced version has a row, also without chapters.
ARCHIVE_CHAPTERS = """
INSERT INTO former_chapters (version_id, saved, of_file, described_times)
SELECT versions.id, saved, of_file, described_times
FROM versions JOIN publications ON publications.id = video_id LEFT JOIN chapters USING (video_id)
WHERE versions.id = %s
"""
RESTORE_CHAPTERS = """
WITH former AS (DELETE FROM former_chapters WHERE version_id = %s RETURNING *), described AS (
  UPDATE publications SET described_times = former.described_times FROM former WHERE id = %s
)
INSERT INTO chapters (video_id, saved, of_file) SELECT %s, saved, of_file FROM former
ON CONFLICT (video_id) DO UPDATE SET saved = excluded.saved, of_file = excluded.of_file
"""
ARCHIVE_CAPTIONS = """
INSERT INTO former_captions (version_id, id, language, label, is_default, source, rendition, text,
                             whole_text, search, cue_count, version, changed_at)
SELECT %s, id, language, label, is_default, source, rendition, text,
       whole_text, search, cue_count, version, changed_at
FROM captions WHERE video_id = %s
"""
# The id and the version of a track name its folder in storage, which never changes. So a track
# follows the version of the track that it replaces, or else gets a new id.
RESTORE_CAPTIONS = """
WITH former AS (DELETE FROM former_captions WHERE version_id = %s RETURNING *)
INSERT INTO captions (video_id, id, version, language, label, is_default, source, rendition, text,
                      whole_text, search, cue_count, changed_at)
SELECT %s, coalesce(replaced.id, nextval(pg_get_serial_sequence('captions', 'id'))),
       coalesce(replaced.version, 0) + 1, former.language, former.label, former.is_default,
       former.source, former.rendition, former.text, former.whole_text, former.search,
       former.cue_count, former.changed_at
FROM former LEFT JOIN former_captions replaced
  ON replaced.version_id = %s AND replaced.language = former.language
"""
CHAPTERS = "SELECT saved, of_file FROM chapters WHERE video_id = %s"
CHANGE_CHAPTERS = "UPDATE chapters SET saved = %s, of_file = %s WHERE video_id = %s"


async def is_current(version: Version) -> bool:
    """Return whether people get this version of its video."""
    return await Publication.exists(version_id=version.id)


async def note_of_version(
    version: Version, type: EventType, *, otherwise: EventType | None = None
) -> None:
    """Record an event of a version's video, of this type if the version is the video's current one.

    Otherwise record one of the type `otherwise`, or none if that is None.
    """
    event = type if await is_current(version) else otherwise
    if event is not None:
        await note_outcome(event, version.video_id)


async def make_current(version: Version) -> None:
    """Make a ready version the current one, and retire the former one. Record the event.

    A retired version gets no more renditions, unless it is the whole film of the current one. Later
    `make_current` can make the former version the current one again. A cut in progress of another
    file is withdrawn.
    """
    former = await Video.get(id=version.video_id)
    retired = Version.filter(id=former.version_id)
    await retired.update(retired_at=RawSQL("clock_timestamp()"))
    is_same_file = former.storage_key == version.storage_key
    in_use = {version.id, version.base_id}
    for unused_id in (former.version_id, former.base_id):
        if unused_id is None or unused_id in in_use:
            continue
        jobs = {"complete_job_id": None, "storyboard_job_id": None}
        await Version.filter(id=unused_id).update(**jobs)
        # A first pass that was retried can no longer publish anything, and no worker goes on.
        await delete_progress(unused_id)
    await retired.filter(status=VideoStatus.PROCESSING).update(status=VideoStatus.FAILED)
    if not is_same_file:
        cuts = Version.filter(video_id=version.video_id, retired_at=None, base_id__isnull=False)
        for cut in await cuts.exclude(id=version.id):
            await withdraw(cut)
    await Version.filter(id=version.id).update(retired_at=None)
    publications = Publication.filter(id=version.video_id)
    if not is_same_file and lacks_poster_frame(former):
        await publications.update(poster_path=None, poster_time_s=None)
    await publications.update(version_id=version.id)
    video = await Video.get(id=version.video_id)
    if video.poster_path is not None and not lacks_poster_frame(video):
        await Version.filter(id=version.id).update(has_poster=True)
    await _transcribe_again(version.video_id)
    if is_same_file:
        captions_job_id = await captions.follow_cut(video)
    else:
        captions_job_id = await _follow_file(former, video)
    await publications.update(captions_job_id=captions_job_id)
    event = EventType.CUTS_CHANGED if is_same_file else EventType.REPLACED
    await note_outcome(event, version.video_id)
    if former.status is not VideoStatus.READY:
        await note_outcome(EventType.READY, version.video_id)


async def _follow_file(former: Video, video: Video) -> int | None:
    """Restore the captions and chapters of a video's new current file, or pass the former ones on.

    The subtitles of the former file are not passed on to a file that has its own.
    `former` is the video with the version before, whose captions and chapters are kept. Returns the
    id of the job that stores all captions again, because their segments end with the film; None
    without captions.
    """
    await execute(ARCHIVE_CHAPTERS, former.version_id)
    changed = await execute(ARCHIVE_CAPTIONS, former.version_id, video.id)
    tracks = Caption.filter(video_id=video.id)
    if await execute(RESTORE_CHAPTERS, video.version_id, video.id, video.id):
        await tracks.delete()
        changed += await execute(RESTORE_CAPTIONS, video.version_id, video.id, former.version_id)
    else:
        if former.keep is not None:
            await _keep_shown_chapters(video.id, Kept.of(former.keep))
            times = DescribedTimes.of(former.described_times, former.keep, former.duration_s)
            recorded = times.of_next_film(former.description)
            await Publication.filter(id=video.id).update(described_times=recorded)
            await tracks.update(whole_text=None)
        if await Rendition.exists(version_id=video.version_id, kind=Kind.SUBTITLES):
            await tracks.filter(source=CaptionSource.FILE).delete()
        columns = {"written_version": None, "tries": 0, "error_code": None}
        # Viewers may still get the folder of the last version. A track of the same name in the new
        # file is another one.
        await tracks.update(version=F("version") + 1, rendition=None, **columns)
        await _rewrite_machine_captions(video.id)
        await captions.derive_texts(video)
    return await captions.CAPTIONS.enqueue(video_id=video.id) if changed else None


async def _rewrite_machine_captions(video_id: UUID) -> None:
    """Delete captions that a machine wrote for another file, and request new ones."""
    tracks = Caption.filter(video_id=video_id, source=CaptionSource.MACHINE)
    track = await tracks.only("id", "language").first()
    if track is not None:
        await tracks.delete()
        # The job of another request does nothing without its row.
        await Transcription.filter(video_id=video_id).delete()
        job_id = await captions.TRANSCRIPTION.enqueue(video_id=video_id)
        language = captions.language_of_track(track)
        await Transcription.create(video_id=video_id, language=language, job_id=job_id)


async def _keep_shown_chapters(video_id: UUID, cut: Kept) -> None:
    """Replace the chapters of a whole film by those that viewers got of the cut film."""
    for row in await fetch_rows(CHAPTERS, video_id):
        columns = (_shown_chapters(row[name], cut) for name in ("saved", "of_file"))
        await execute(CHANGE_CHAPTERS, *columns, video_id)


def _shown_chapters(rows: list[Row] | None, cut: Kept) -> str | None:
    """Return chapters of a cut film in JSON, from those of the whole film."""
    if rows is None:
        return None
    return json.dumps([asdict(chapter) for chapter in cut_chapters(chapters_from(rows), cut)])


def lacks_poster_frame(video: Video) -> bool:
    """Return whether the frame that a requested poster shows is cut from the film."""
    if video.keep is None or video.poster_time_s is None:
        return False
    return Kept.of(video.keep).cut_time_s(video.poster_time_s) is None


async def withdraw(version: Version) -> None:
    """Withdraw a version that is not the current one, whose workers can then publish nothing."""
    await cancel_jobs([version])
    rows = Version.filter(id=version.id)
    await rows.update(status=VideoStatus.FAILED, retired_at=WITHDRAWN_AT)


async def delete_progress(version_id: UUID) -> None:
    """Delete the rows of a version's pass and of its segments; workers then lose their leases."""
    await MadeSegment.filter(version_id=version_id).delete()
    await PassInProgress.filter(version_id=version_id).delete()


async def cancel_jobs(versions: Iterable[Version]) -> None:
    """Cancel the jobs of passes over these versions."""
    for version in versions:
        for job_id in {version.transcode_job_id, version.encode_job_id, version.complete_job_id}:
            if job_id is not None:
                await cancel_job(job_id)


async def _transcribe_again(video_id: UUID) -> None:
    """Restart a pending transcription, because it has the times of another film."""
    request = await Transcription.get_or_none(video_id=video_id, error_code=None)
    if request is not None:
        await cancel_job(request.job_id)
        await Transcription.filter(video_id=video_id).update(
            job_id=await captions.TRANSCRIPTION.enqueue(video_id=video_id),
            text="",
            until_s=0.0,
            tries=0,
        )
