"""Captions in the output of a video: tracks of its file, and entries of the master playlist.

Storage has a folder for each version of each caption track, `hls/<id>/captions/<track>-<version>/`,
whose files are never changed. `videos.captions` has the use cases of editors.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Self
from uuid import UUID

from portal.database.models import Caption, CaptionSource, Rendition, RenditionState, Video
from portal.database.search import spoken_document
from portal.queue.app import Queue
from portal.queue.enqueue import defer_captions
from portal.storage.objects import output_root
from portal.transcoding.encoding.assembly import WEBVTT, PassOutput
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import Cue, webvtt

FOLDER = "captions"
UNDETERMINED = "und"
# Columns that a playlist needs.
NAMED = ("id", "language", "label", "is_default", "rendition", "written_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionText:
    """Text of a track, as the columns of `Caption` have it."""

    text: str
    search: str
    cue_count: int

    @classmethod
    def of(cls, cues: Collection[Cue]) -> Self:
        """Return the columns for cues. Takes up to a second."""
        spoken = ((cue.start_s, cue.plain_text) for cue in cues)
        return cls(text=webvtt(cues), search=spoken_document(spoken), cue_count=len(cues))


def captions_root(video_id: UUID) -> str:
    """Return the prefix of all captions of a video in storage."""
    return f"{output_root(video_id)}{FOLDER}/"


def folder_name(row: Caption) -> str:
    """Return the folder name of a caption track's version, which is also its ETag."""
    return f"{row.id}-{row.version}"


async def adopt(video: Video, output: PassOutput, queue: Queue) -> int | None:
    """Save the new subtitle tracks of a file, in the transaction that publishes the video.

    Returns the id of the job that stores the video's captions; None if there are none.
    """
    rows = await Caption.filter(video_id=video.id).only("id", "rendition", "language")
    adopted = {row.rendition for row in rows}
    languages = {row.language for row in rows}
    for track in output.renditions:
        if track.kind is not Kind.SUBTITLES or track.name in adopted:
            continue
        text = await asyncio.to_thread(CaptionText.of, output.captions[track.name])
        row = await Caption.create(
            video_id=video.id,
            language=next(tag for tag in language_tags(track.language) if tag not in languages),
            label=track.label,
            is_default=track.is_default,
            source=CaptionSource.FILE,
            rendition=track.name,
            **asdict(text),
        )
        languages.add(row.language)
    return await defer_captions(video.id, queue) if languages else None


def language_tags(language: str | None) -> Iterator[str]:
    """Yield tags for several tracks in a language, such as `en`, `en-x-2` and `en-x-3`."""
    tag = language or UNDETERMINED
    yield tag
    for number in count(2):
        yield f"{tag}-x-{number}"


async def entries(video: Video) -> list[Entry]:
    """Return the captions for the master playlist, with their folders relative to it.

    A file's track is in the folder of the pass until it is stored as captions.
    """
    tracks = Rendition.filter(video_id=video.id, kind=Kind.SUBTITLES, state=RenditionState.COMPLETE)
    attempts = dict(await tracks.values_list("name", "attempt_number"))
    named: list[Entry] = []
    for row in await Caption.filter(video_id=video.id).only(*NAMED):
        if row.written_version is not None:
            named.append((f"../{FOLDER}/", _track(row, f"{row.id}-{row.written_version}")))
        elif row.rendition is not None and row.rendition in attempts:
            named.append((f"../{attempts[row.rendition]}/", _track(row, row.rendition)))
    return named


async def written_folders(video_id: UUID) -> list[str]:
    """Return the folders of captions in storage, relative to `hls/<id>/`."""
    written = Caption.filter(video_id=video_id, written_version__isnull=False)
    rows = await written.only("id", "written_version")
    return [f"{FOLDER}/{row.id}-{row.written_version}" for row in rows]


async def store_again(video: Video, queue: Queue) -> None:
    """Queue the job that stores all captions of a locked video again."""
    tracks = Caption.filter(video_id=video.id)
    await tracks.update(written_version=None, tries=0, error_code=None)
    await Video.filter(id=video.id).update(captions_job_id=await defer_captions(video.id, queue))


def _track(row: Caption, name: str) -> FinishedRendition:
    language = row.language.partition("-x-")[0]
    return FinishedRendition(
        kind=Kind.SUBTITLES,
        name=name,
        codecs=WEBVTT,
        bandwidth_bps=0,
        average_bandwidth_bps=0,
        size_bytes=0,
        segment_count=0,
        language=None if language == UNDETERMINED else language,
        label=row.label,
        is_default=row.is_default,
    )
