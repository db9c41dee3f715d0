"""Captions and chapters of the versions of a video: what becomes of them when viewers get another.

After a cut, captions move to the times of the version. Chapters are stored for the whole film, and
their readers map them. A transcription restarts.

A new file begins with the captions and chapters that viewers got before, without those of removed
parts; captions that a machine wrote are written anew. The captions and chapters of the former file
are kept with its version, those of removed parts included, and restored with it. The database
deletes them with the version.

Each function belongs to a transaction that has locked the video.
"""

import asyncio
import json
from dataclasses import asdict
from uuid import UUID

from tortoise.expressions import F

from portal.database.connection import Row, execute, fetch_rows
from portal.database.models import Caption, CaptionSource, Publication, Rendition, Version, Video
from portal.database.pool import extend_transaction
from portal.database.work_models import Transcription
from portal.films.captions import (
    CAPTIONS,
    TRANSCRIPTION,
    CaptionText,
    language_of_track,
    language_tags,
)
from portal.films.version_hooks import VersionChange
from portal.queue.jobs import cancel_job
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.packaging.master import Kind
from portal.transcoding.packaging.webvtt import read_webvtt
from portal.transcoding.planning.chapters import chapters_from, cut_chapters
from portal.transcoding.planning.described_times import DescribedTimes
from portal.transcoding.planning.kept import Kept

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
STORE_FILE_CHAPTERS = """
INSERT INTO chapters (video_id, of_file) VALUES (%s, %s)
ON CONFLICT (video_id) DO UPDATE SET of_file = excluded.of_file
"""

# Captions of the whole film; their text is cut afterwards.
COPY_CAPTIONS = """
INSERT INTO captions
  (video_id, language, label, is_default, source, text, cue_count, version, changed_at)
SELECT %s, language, label, is_default, source, coalesce(whole_text, text), cue_count, 1, now()
FROM captions WHERE video_id = %s AND text IS NOT NULL
"""
COPY_CHAPTERS = """
INSERT INTO chapters (video_id, saved, of_file)
SELECT %s, saved, of_file FROM chapters WHERE video_id = %s
"""


async def follow_version(change: VersionChange) -> None:
    """Adapt a video's captions and chapters to its new current version, and store them again."""
    video = change.video
    if change.former is None:
        # Captions may have been saved before the length of the film was known.
        await derive_texts(video)
    else:
        await _transcribe_again(video.id)
        if change.is_other_file:
            await _follow_file(change.former, video)
        else:
            await follow_cut(video)
    if change.output is not None:
        await _adopt(video.id, change.output)
    if change.chapters:
        await execute(STORE_FILE_CHAPTERS, video.id, json.dumps(list(change.chapters)))
    # The master playlist of a version that comes back may name captions that were deleted since.
    has_tracks = await Caption.exists(video_id=video.id)
    is_outdated = has_tracks or change.output is None
    job_id = await CAPTIONS.enqueue(video_id=video.id) if is_outdated else None
    await Publication.filter(id=video.id).update(captions_job_id=job_id)


async def follow_cut(video: Video) -> None:
    """Give the captions of a locked video the times of its version, after another of the same file.

    They are stored again, because their segments end with the film.
    """
    await derive_texts(video)
    # Viewers get no folder of the last version, which may have captions that are cut now.
    change = F("version") + 2
    tracks = Caption.filter(video_id=video.id)
    await tracks.update(version=change, written_version=None, tries=0, error_code=None)


async def derive_texts(video: Video) -> None:
    """Derive what viewers of a locked video get of its captions from those of the whole film."""
    film_s = video.duration_s
    if video.base_id is not None:
        film_s = (await Version.get(id=video.base_id)).duration_s
    tracks = Caption.filter(video_id=video.id)
    # A video may have hundreds of megabytes of captions, so the tracks are read one by one.
    for listed in await tracks.filter(text__isnull=False).only("id"):
        track = await tracks.only("id", "text", "whole_text").get(id=listed.id)
        cues = await asyncio.to_thread(read_webvtt, track.whole_text or track.text or "")
        text = await asyncio.to_thread(CaptionText.of, cues, film_s=film_s, keep=video.keep)
        await tracks.filter(id=track.id).update(**asdict(text))
        extend_transaction()


async def store_again(video_id: UUID) -> None:
    """Queue the job that stores all captions of a locked video again."""
    tracks = Caption.filter(video_id=video_id)
    await tracks.update(written_version=None, tries=0, error_code=None)
    job_id = await CAPTIONS.enqueue(video_id=video_id)
    await Publication.filter(id=video_id).update(captions_job_id=job_id)


async def _follow_file(former: Video, video: Video) -> None:
    """Restore the captions and chapters of a video's new current file, or pass the former ones on.

    The subtitles of the former file are not passed on to a file that has its own. `former` is the
    video with the version before, whose captions and chapters are kept.
    """
    await execute(ARCHIVE_CHAPTERS, former.version_id)
    await execute(ARCHIVE_CAPTIONS, former.version_id, video.id)
    tracks = Caption.filter(video_id=video.id)
    if await execute(RESTORE_CHAPTERS, video.version_id, video.id, video.id):
        await tracks.delete()
        await execute(RESTORE_CAPTIONS, video.version_id, video.id, former.version_id)
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
        await derive_texts(video)


async def _rewrite_machine_captions(video_id: UUID) -> None:
    """Delete captions that a machine wrote for another file, and request new ones."""
    tracks = Caption.filter(video_id=video_id, source=CaptionSource.MACHINE)
    track = await tracks.only("id", "language").first()
    if track is not None:
        await tracks.delete()
        # The job of another request does nothing without its row.
        await Transcription.filter(video_id=video_id).delete()
        job_id = await TRANSCRIPTION.enqueue(video_id=video_id)
        language = language_of_track(track)
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


async def copy_texts(video_id: UUID, copy: Video) -> None:
    """Copy captions and chapters of the video `video_id` to a new video, and cut them like it."""
    await execute(COPY_CHAPTERS, copy.id, video_id)
    await execute(COPY_CAPTIONS, copy.id, video_id)
    await follow_cut(copy)


async def _adopt(video_id: UUID, output: PassOutput) -> None:
    """Save the new subtitle tracks of a file."""
    rows = await Caption.filter(video_id=video_id).only("id", "rendition", "language")
    adopted = {row.rendition for row in rows}
    languages = {row.language for row in rows}
    for track in output.renditions:
        if track.kind is not Kind.SUBTITLES or track.name in adopted:
            continue
        cues = output.captions[track.name]
        text = await asyncio.to_thread(CaptionText.of, cues, film_s=output.duration_s)
        row = await Caption.create(
            video_id=video_id,
            language=next(tag for tag in language_tags(track.language) if tag not in languages),
            label=track.label,
            is_default=track.is_default,
            source=CaptionSource.FILE,
            rendition=track.name,
            **asdict(text),
        )
        languages.add(row.language)


async def _transcribe_again(video_id: UUID) -> None:
    """Restart a pending transcription, because it has the times of another film."""
    request = await Transcription.get_or_none(video_id=video_id, error_code=None)
    if request is not None:
        await cancel_job(request.job_id)
        await Transcription.filter(video_id=video_id).update(
            job_id=await TRANSCRIPTION.enqueue(video_id=video_id),
            text="",
            until_s=0.0,
            tries=0,
        )
