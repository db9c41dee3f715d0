"""What can be watched of a video while it is made: one rendition and the sound, as they grow.

Playlists are made of the segments that passes record, the first up to where one is missing. They
name files in the attempts' folders beside their own.
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
from portal.transcoding.probing.cuts import SEGMENT_S
from portal.transcoding.probing.facts import interpret

# `number` is null of a rendition of which there is nothing; what is copied is watched once it is
# whole.
MADE = """
SELECT kind, name, rendition.width, rendition.height, frame_rate, language, label, is_default,
       number, folder || '/' || name || '/' AS below, uri, made.size_bytes, made.duration_s
FROM videos JOIN renditions rendition ON rendition.video_id = videos.id
LEFT JOIN made_segments made ON made.video_id = videos.id AND made.rendition = name
WHERE videos.id = %s AND status = 'processing' AND kind IN ('video', 'audio')
ORDER BY rendition.position, number
"""


class PreviewNotReady(NotFound, code="preview_not_ready"):
    """Nothing of this video can be watched yet. Try again in a few seconds."""


@dataclass(frozen=True)
class GrowingRendition:
    """A rendition that is being made: its row, and those of its segments from the first on."""

    row: Row
    made: Sequence[Row]

    def playlist(self) -> str:
        """Its playlist, which lies in a folder of its name beside the master playlist."""
        map_uri, target_s = f"../../{self.init_path}", self._target_s
        return hls.media_playlist(
            self._segments, target_duration_s=target_s, map_uri=map_uri, is_whole=False
        )

    def measured(self, codecs: str) -> FinishedRendition:
        """It as the master playlist tells of it, by what there is."""
        sizes_bytes = [it["size_bytes"] for it in self.made]
        peak_bps, average_bps = hls.bandwidths_bps(
            self._segments, sizes_bytes=sizes_bytes, target_duration_s=self._target_s
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
            **{it: row[it] for it in ("width", "height", "language", "label", "is_default")},
        )

    @property
    def init_path(self) -> str:
        """Where its init segment lies, below the folder of all attempts."""
        return f"{self.made[0]['below']}{hls.INIT_NAME}"

    @cached_property
    def _segments(self) -> list[hls.Segment]:
        return [
            hls.Segment(uri=f"../../{it['below']}{it['uri']}", duration_s=it["duration_s"])
            for it in self.made
        ]

    @property
    def _target_s(self) -> int:
        return max(SEGMENT_S, hls.target_duration_s(self._segments))


async def fetch_growing(video_id: UUID) -> list[GrowingRendition]:
    """The video rendition to watch, and all sound. Raises `PreviewNotReady`."""
    rows = await fetch_rows(MADE, video_id)
    found = [_growing(list(group)) for _, group in groupby(rows, key=itemgetter("name"))]
    videos = {it.row["name"]: it for it in found if it.made and it.row["kind"] == Kind.VIDEO}
    sizes = {name: (it.row["width"], it.row["height"]) for name, it in videos.items()}
    sounds = [it for it in found if it.row["kind"] == Kind.AUDIO]
    early = early_rendition(sizes)
    if early is None or not all(it.made for it in sounds):
        raise PreviewNotReady
    return [videos[early], *sounds]


@dataclass(frozen=True, slots=True)
class WatchablePart:
    """How much of a video can be watched while it is processed, and its length where known."""

    made_s: float
    whole_s: float | None


async def read_watchable_part(video: Video) -> WatchablePart | None:
    """Return how much of a video can be watched by now; None if nothing can be."""
    try:
        picture, *_ = await fetch_growing(video.id)
    except PreviewNotReady:
        return None
    facts = json.loads(video.probe_answer) if video.probe_answer else None
    return WatchablePart(
        made_s=sum(row["duration_s"] for row in picture.made),
        whole_s=interpret(facts).duration_s if facts else None,
    )


async def read_playlist(video_id: UUID, name: str, storage: Storage) -> str:
    """The master playlist, or that of the rendition whose folder the name is in.

    Raises `PreviewNotReady`, or `NotFound` for other names.
    """
    growing = await fetch_growing(video_id)
    if name == master.MASTER_NAME:
        video, *sounds = growing
        init = await storage.get(f"{output_root(video_id)}{video.init_path}")
        measured = [video.measured(avc_codec(init)), *(it.measured(AAC_LC) for it in sounds)]
        return master.master_playlist([("", it) for it in measured])
    for rendition in growing:
        if name == hls.media_playlist_name(rendition.row["name"]):
            return rendition.playlist()
    raise NotFound


async def finished_path(video: Video, name: str) -> str:
    """Where a ready video has what was previewed by this name, below the folder of all attempts."""
    made = await Rendition.get_or_none(video_id=video.id, name=name.rpartition("/")[0])
    return f"{made.attempt_number if made else video.published_attempt}/{name}"


def _growing(rows: Sequence[Row]) -> GrowingRendition:
    numbered = enumerate(row for row in rows if row["number"] is not None)
    made = [row for at, row in numbered if row["number"] == at]
    return GrowingRendition(rows[0], made)
