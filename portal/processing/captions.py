"""Captions in the output of a video: those its file brought, and what the master playlist names.

Storage has a folder for each version of each caption track, `hls/<id>/captions/<track>-<version>/`,
whose files are never changed. `videos.captions` has what people do with them.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Self
from uuid import UUID

from portal.database.models import Caption, CaptionSource, Rendition, RenditionState, Video
from portal.database.search import spoken_document
from portal.queue.app import Queue
from portal.queue.enqueue import defer_captions
from portal.storage.objects import output_root
from portal.transcoding.encoding.finishing import WEBVTT
from portal.transcoding.encoding.transcode import PassOutput
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import Cue, webvtt

FOLDER = "captions"
UNDETERMINED = "und"
# What a playlist tells of captions.
NAMED = ("id", "language", "label", "is_default", "rendition", "written_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionText:
    """Text of a track, as the columns of `Caption` have it."""

    text: str
    search: str
    cue_count: int

    @classmethod
    def of(cls, cues: Collection[Cue]) -> Self:
        """Write cues as text; takes a second for the most."""
        spoken = ((cue.start_s, cue.plain_text) for cue in cues)
        return cls(text=webvtt(cues), search=spoken_document(spoken), cue_count=len(cues))


def captions_root(video_id: UUID) -> str:
    """Where all captions of a video lie."""
    return f"{output_root(video_id)}{FOLDER}/"


def folder_name(row: Caption) -> str:
    """The folder of this version of a caption track."""
    return f"{row.id}-{row.version}"


async def adopt(video: Video, made: PassOutput, queue: Queue) -> int | None:
    """Make captions of a file's tracks, unless they are known; the job that stores what is missing.

    Part of the transaction that publishes the video.
    """
    rows = await Caption.filter(video_id=video.id).only("id", "rendition", "language")
    known = {row.rendition for row in rows}
    taken = {row.language for row in rows}
    for track in made.renditions:
        if track.kind is not Kind.SUBTITLES or track.name in known:
            continue
        text = await asyncio.to_thread(CaptionText.of, made.captions[track.name])
        row = Caption(
            video_id=video.id,
            language=next(it for it in names(track.language) if it not in taken),
            label=track.label,
            is_default=track.is_default,
            source=CaptionSource.FILE,
            rendition=track.name,
            **asdict(text),
        )
        await row.save()
        taken.add(row.language)
    return await defer_captions(video.id, queue) if taken else None


def names(language: str | None) -> Iterator[str]:
    """What captions in this language may be called; several tracks may be in one."""
    tag, number = language or UNDETERMINED, 1
    yield tag
    while True:
        number += 1
        yield f"{tag}-x-{number}"


async def entries(video: Video) -> list[Entry]:
    """The captions for the master playlist, with their folders relative to it.

    Until those of a file are stored as captions, they are where the pass put them.
    """
    made = Rendition.filter(video_id=video.id, kind=Kind.SUBTITLES, state=RenditionState.COMPLETE)
    attempts = dict(await made.values_list("name", "attempt_number"))
    found: list[Entry] = []
    for row in await Caption.filter(video_id=video.id).only(*NAMED):
        if row.written_version is not None:
            found.append((f"../{FOLDER}/", _track(row, f"{row.id}-{row.written_version}")))
        elif row.rendition is not None and row.rendition in attempts:
            found.append((f"../{attempts[row.rendition]}/", _track(row, row.rendition)))
    return found


async def written_folders(video_id: UUID) -> list[str]:
    """The folders of captions in storage, below `hls/<id>/`."""
    written = Caption.filter(video_id=video_id, written_version__isnull=False)
    rows = await written.only("id", "written_version")
    return [f"{FOLDER}/{row.id}-{row.written_version}" for row in rows]


async def store_again(video: Video, queue: Queue) -> None:
    """Queue the job that stores all captions of a locked video anew."""
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
