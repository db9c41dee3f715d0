"""Captions in the output of a video: tracks of its file, and entries of the master playlist.

Storage has a folder for each version of each caption track, `hls/<id>/captions/<track>-<version>/`,
whose files are never changed. `features.captions.service` has the use cases of editors.

Captions have the times of the current version, and end with its film. When another version becomes
the current one, their text is derived anew from that of the whole film. `versions` restores those
of another file.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import Self
from uuid import UUID

from portal.database.models import Caption, Rendition, RenditionState, Version
from portal.database.search import spoken_document
from portal.queue.jobs import SIDE_QUEUE, SPEECH_QUEUE, Job, Required
from portal.storage.objects import output_root
from portal.transcoding.encoding.assembly import WEBVTT
from portal.transcoding.packaging.master import Entry, FinishedRendition, Kind
from portal.transcoding.packaging.webvtt import Cue, read_webvtt, webvtt
from portal.transcoding.planning.kept import Kept

FOLDER = "captions"
UNDETERMINED = "und"
# Intervals that a version keeps, as pairs of seconds.
Keep = Sequence[Sequence[float]]
CAPTIONS = Job(
    name="captions",
    queue=SIDE_QUEUE,
    lock="captions:{video_id}",
    # Only tries that store no segment of a track count.
    max_tries=5,
    required=Required(
        table="publications",
        condition="EXISTS (SELECT FROM versions WHERE id = version_id AND status = 'ready')",
        job_id="captions_job_id",
        arguments={"video_id": "id"},
    ),
)
TRANSCRIPTION = Job(
    name="transcribe",
    queue=SPEECH_QUEUE,
    lock="speech:{video_id}",
    is_under_way="""EXISTS (
      SELECT FROM transcriptions WHERE job_id = job.id AND active_at > now() - interval '1 minute'
    )""",
    required=Required(
        table="transcriptions",
        condition="error_code IS NULL",
        arguments={"video_id": "video_id"},
    ),
)
# Columns that a playlist needs.
NAMED = ("id", "language", "label", "is_default", "rendition", "written_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionText:
    """Text of a track, as the columns of `Caption` have it."""

    text: str
    whole_text: str | None = None
    search: str
    cue_count: int

    @classmethod
    def of(
        cls, cues: Collection[Cue], *, film_s: float | None = None, keep: Keep | None = None
    ) -> Self:
        """Return the columns for cues of a whole film. Takes up to seconds.

        Viewers get the cues that begin before the end of the film, and in its kept intervals. The
        length of the film is None while it is unknown.
        """
        end_s = film_s or inf
        for_viewers = [cue for cue in cues if cue.start_s < end_s]
        has_all = len(for_viewers) == len(cues) and keep is None
        if keep is not None:
            # The last cue may end after the film, which removes nothing of it.
            within = (replace(cue, end_s=min(cue.end_s, end_s)) for cue in for_viewers)
            for_viewers = Kept.of(keep).cut_cues(within)
        spoken = ((cue.start_s, cue.plain_text) for cue in for_viewers)
        return cls(
            text=webvtt(for_viewers),
            whole_text=None if has_all else webvtt(cues),
            search=spoken_document(spoken),
            cue_count=len(for_viewers),
        )


def captions_root(video_id: UUID) -> str:
    """Return the prefix of all captions of a video in storage."""
    return f"{output_root(video_id)}{FOLDER}/"


def folder_name(row: Caption) -> str:
    """Return the folder name of a caption track's version, which is also its ETag."""
    return f"{row.id}-{row.version}"


def language_tags(language: str | None) -> Iterator[str]:
    """Yield tags for several tracks in a language, such as `en`, `en-x-2` and `en-x-3`."""
    tag = language or UNDETERMINED
    yield tag
    for number in count(2):
        yield f"{tag}-x-{number}"


def whole_text_of(text: str, former: str, keep: Keep) -> str:
    """Return captions of the whole film from those of the cut film, as WebVTT.

    `former` is the text that the whole film had, of which removed parts stay. Takes up to seconds.
    """
    return webvtt(Kept.of(keep).whole_cues(read_webvtt(text), read_webvtt(former)))


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


def language_of_track(row: Caption) -> str | None:
    """Return the language of a track, also of a further one in it; None if it is unknown."""
    language = row.language.partition("-x-")[0]
    return None if language == UNDETERMINED else language


def _track(row: Caption, name: str) -> FinishedRendition:
    return FinishedRendition(
        kind=Kind.SUBTITLES,
        name=name,
        codecs=WEBVTT,
        bandwidth_bps=0,
        average_bandwidth_bps=0,
        size_bytes=0,
        segment_count=0,
        language=language_of_track(row),
        label=row.label,
        is_default=row.is_default,
    )
