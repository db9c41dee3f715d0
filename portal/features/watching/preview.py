"""Preview of a video that is being transcoded: playlists of one rendition and the sound.

The playlists grow. They list the segments that passes have recorded, from the first one up to the
first gap, in the folders of the attempts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from portal.database.connection import Row, fetch_rows
from portal.database.models import Rendition, Video
from portal.errors import NotFound
from portal.storage.bucket import Storage
from portal.storage.objects import output_root
from portal.transcoding.packaging import hls, master
from portal.transcoding.packaging.cmaf import AAC_LC, avc_codec
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.ladder import early_rendition
from portal.transcoding.probing.facts import interpret
from portal.transcoding.probing.segment_bounds import SEGMENT_S

# A rendition without segments has one row, whose `number` is null.
SEGMENTS = """
SELECT kind, name, rendition.width, rendition.height, frame_rate, language, label, is_default,
       number, folder || '/' || name || '/' AS path, uri, segment.size_bytes, segment.duration_s
FROM videos JOIN renditions rendition USING (version_id)
LEFT JOIN made_segments segment
  ON segment.version_id = videos.version_id AND segment.rendition = name
WHERE videos.id = %s AND status = 'processing' AND kind IN ('video', 'audio')
ORDER BY rendition.position, number
"""


class PreviewNotReady(NotFound, code="preview_not_ready"):
    """Nothing of this video can be watched yet. Try again in a few seconds."""


@dataclass(frozen=True)
class GrowingRendition:
    """Row of a rendition that is being made, and the rows of its segments up to the first gap."""

    row: Row
    segments: Sequence[Row]

    def playlist(self) -> str:
        """Return the media playlist. Its folder is beside the master playlist."""
        return hls.media_playlist(
            self._listed_segments,
            target_duration_s=self._target_s,
            map_uri=f"../../{self.init_path}",
            is_whole=False,
        )

    def measured(self, codecs: str) -> FinishedRendition:
        """Return the rendition for the master playlist, measured by its segments so far."""
        sizes_bytes = [segment["size_bytes"] for segment in self.segments]
        peak_bps, average_bps = hls.bandwidths_bps(
            self._listed_segments, sizes_bytes=sizes_bytes, target_duration_s=self._target_s
        )
        row = self.row
        return FinishedRendition(
            kind=Kind(row["kind"]),
            name=row["name"],
            codecs=codecs,
            bandwidth_bps=peak_bps,
            average_bandwidth_bps=average_bps,
            size_bytes=sum(sizes_bytes),
            segment_count=len(sizes_bytes),
            fps=Fraction(row["frame_rate"]) if row["frame_rate"] else None,
            width=row["width"],
            height=row["height"],
            language=row["language"],
            label=row["label"],
            is_default=row["is_default"],
        )

    @property
    def init_path(self) -> str:
        """Path of the init segment in the video's output folder."""
        return f"{self.segments[0]['path']}{hls.INIT_NAME}"

    @cached_property
    def _listed_segments(self) -> list[hls.Segment]:
        return [
            hls.Segment(
                uri=f"../../{segment['path']}{segment['uri']}", duration_s=segment["duration_s"]
            )
            for segment in self.segments
        ]

    @property
    def _target_s(self) -> int:
        return max(SEGMENT_S, hls.target_duration_s(self._listed_segments))


async def fetch_growing(video_id: UUID) -> list[GrowingRendition]:
    """Return the video rendition to watch, and all sound. Raises `PreviewNotReady`."""
    rows = await fetch_rows(SEGMENTS, video_id)
    renditions = [_growing(list(group)) for _, group in groupby(rows, key=itemgetter("name"))]
    videos = {
        rendition.row["name"]: rendition
        for rendition in renditions
        if rendition.segments and rendition.row["kind"] == Kind.VIDEO
    }
    sizes = {name: (video.row["width"], video.row["height"]) for name, video in videos.items()}
    sounds = [rendition for rendition in renditions if rendition.row["kind"] == Kind.AUDIO]
    early = early_rendition(sizes)
    if early is None or not all(sound.segments for sound in sounds):
        raise PreviewNotReady
    return [videos[early], *sounds]


@dataclass(frozen=True, slots=True)
class WatchablePart:
    """Length of the preview of a video, and of the whole video where it is known."""

    made_s: float
    whole_s: float | None


async def read_watchable_part(video: Video) -> WatchablePart | None:
    """Return the watchable part of a video that is being processed; None if there is none."""
    try:
        picture, *_ = await fetch_growing(video.id)
    except PreviewNotReady:
        return None
    facts = json.loads(video.probe_answer) if video.probe_answer else None
    return WatchablePart(
        made_s=sum(row["duration_s"] for row in picture.segments),
        whole_s=interpret(facts).duration_s if facts else None,
    )


async def read_playlist(video_id: UUID, name: str, storage: Storage) -> str:
    """Return the playlist with this name: the master playlist, or that of a rendition.

    Raises `PreviewNotReady`, or `NotFound` for other names.
    """
    growing = await fetch_growing(video_id)
    if name == master.MASTER_NAME:
        video, *sounds = growing
        init = await storage.get(f"{output_root(video_id)}{video.init_path}")
        measured = [video.measured(avc_codec(init)), *(sound.measured(AAC_LC) for sound in sounds)]
        return master.master_playlist([("", rendition) for rendition in measured])
    for rendition in growing:
        if name == hls.media_playlist_name(rendition.row["name"]):
            return rendition.playlist()
    raise NotFound


async def finished_path(video: Video, name: str) -> str:
    """Return the path, in a ready video's output folder, of a playlist that was previewed."""
    if name == master.MASTER_NAME:
        return name
    own = Rendition.filter(version_id=video.version_id)
    rendition = await own.get_or_none(name=name.rpartition("/")[0])
    return f"{rendition.attempt_number if rendition else video.published_attempt}/{name}"


def _growing(rows: Sequence[Row]) -> GrowingRendition:
    numbered = enumerate(row for row in rows if row["number"] is not None)
    segments = [row for number, row in numbered if row["number"] == number]
    return GrowingRendition(rows[0], segments)
