"""Captions in the output of a video: tracks of its file, and entries of the master playlist.

Storage has a folder for each version of each caption track, `hls/<id>/captions/<track>-<version>/`,
whose files are never changed. `videos.captions` has the use cases of editors.

Captions have the times of the current version. When another version of the same file becomes the
current one, their text is derived anew from that of the whole film. `versions` restores those of
another file.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Self
from uuid import UUID

from tortoise.expressions import F

from portal.database.models import (
    Caption,
    CaptionSource,
    Publication,
    Rendition,
    RenditionState,
    Version,
    Video,
)
from portal.database.pool import extend_transaction
from portal.database.search import spoken_document
from portal.queue.app import Queue
from portal.queue.enqueue import defer_captions
from portal.storage.objects import output_root
from portal.transcoding.encoding.assembly import WEBVTT, PassOutput
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import Cue, read_webvtt, webvtt
from portal.transcoding.planning.kept import Kept

FOLDER = "captions"
UNDETERMINED = "und"
# Intervals that a version keeps, as pairs of seconds.
Keep = Sequence[Sequence[float]]
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


async def adopt(video_id: UUID, output: PassOutput, queue: Queue) -> int | None:
    """Save the new subtitle tracks of a file, in the transaction that publishes the video.

    Returns the id of the job that stores the video's captions; None if there are none.
    """
    rows = await Caption.filter(video_id=video_id).only("id", "rendition", "language")
    adopted = {row.rendition for row in rows}
    languages = {row.language for row in rows}
    for track in output.renditions:
        if track.kind is not Kind.SUBTITLES or track.name in adopted:
            continue
        text = await asyncio.to_thread(CaptionText.of, output.captions[track.name])
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
    return await defer_captions(video_id, queue) if languages else None


def language_tags(language: str | None) -> Iterator[str]:
    """Yield tags for several tracks in a language, such as `en`, `en-x-2` and `en-x-3`."""
    tag = language or UNDETERMINED
    yield tag
    for number in count(2):
        yield f"{tag}-x-{number}"


async def follow_cut(video: Video, queue: Queue) -> int | None:
    """Give the captions of a locked video the times of its version, after another of the same file.

    Returns the id of the job that stores all captions again, because their segments end with the
    film; None without captions.
    """
    tracks = Caption.filter(video_id=video.id)
    # A video may have hundreds of megabytes of captions, so the tracks are read one by one.
    for listed in await tracks.filter(text__isnull=False).only("id"):
        track = await tracks.only("id", "text", "whole_text").get(id=listed.id)
        whole_text = track.whole_text or track.text or ""
        columns = await asyncio.to_thread(_columns_of_cut, whole_text, video.keep)
        await tracks.filter(id=track.id).update(**columns)
        extend_transaction()
    # Viewers get no folder of the last version, which may have captions that are cut now.
    change = F("version") + 2
    changed = await tracks.update(version=change, written_version=None, tries=0, error_code=None)
    return await defer_captions(video.id, queue) if changed else None


def whole_text_of(text: str, former: str, keep: Keep) -> str:
    """Return captions of the whole film from those of the cut film, as WebVTT.

    `former` is the text that the whole film had, of which removed parts stay. Takes up to seconds.
    """
    return webvtt(Kept.of(keep).whole_cues(read_webvtt(text), read_webvtt(former)))


def _columns_of_cut(whole_text: str, keep: Keep | None) -> dict[str, object]:
    """Return the columns of a track, from the text of the whole film. Takes up to seconds."""
    cues = read_webvtt(whole_text)
    if keep is None:
        return {**asdict(CaptionText.of(cues)), "whole_text": None}
    return {**asdict(CaptionText.of(Kept.of(keep).cut_cues(cues))), "whole_text": whole_text}


def served_folders(row: Caption) -> set[str]:
    """Return the folders of a track that viewers may get: the newest one, and those in playlists.

    Viewers may still watch the version before.
    """
    return {f"{row.id}-{row.version - age}" for age in (0, 1)} | {f"{row.id}-{row.written_version}"}


async def entries(version: Version) -> list[Entry]:
    """Return the captions for the master playlist, with their folders relative to it.

    A file's track is in the folder of the pass until it is stored as captions.
    """
    tracks = Rendition.filter(
        version_id=version.id, kind=Kind.SUBTITLES, state=RenditionState.COMPLETE
    )
    attempts = dict(await tracks.values_list("name", "attempt_number"))
    named: list[Entry] = []
    for row in await Caption.filter(video_id=version.video_id).only(*NAMED):
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


async def store_again(video_id: UUID, queue: Queue) -> None:
    """Queue the job that stores all captions of a locked video again."""
    tracks = Caption.filter(video_id=video_id)
    await tracks.update(written_version=None, tries=0, error_code=None)
    job_id = await defer_captions(video_id, queue)
    await Publication.filter(id=video_id).update(captions_job_id=job_id)


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
