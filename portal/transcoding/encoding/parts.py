"""A pass and its parts: which segments are made together, and whether they join. Pure.

A pass encodes some renditions of a source with one decode. It consists of parts, each made by one
process of ffmpeg. A part makes the same segments as a process over the whole film would make there:
the same frames at the same times, cut at the same places. So parts can be made in any order, by any
worker, and a pass resumes with the parts that are missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from portal.transcoding.encoding.filters import frame_before
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.cmaf import SegmentFacts, time_scale
from portal.transcoding.planning.ladder import Plan, Rung
from portal.transcoding.probing.facts import Probe

# Differences of times that nobody notices.
JOIN_TOLERANCE_S = 0.002


class PartsDontJoin(Exception):
    """Parts of a pass differ in their init segments, or leave a gap; the pass must be one part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Segment of a rendition in storage; `number` counts from 0, `uri` is the name of its file."""

    number: int
    uri: str
    size_bytes: int
    duration_s: float
    facts: SegmentFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendition:
    """Rendition in storage: its init segment, and its segments by their numbers."""

    init: bytes
    segments: tuple[Segment, ...]

    @property
    def frame_count(self) -> int:
        """Return the number of frames."""
        return sum(segment.facts.sample_count for segment in self.segments)

    def playlist(self) -> hls.MediaPlaylist:
        """Return the playlist of the segments; each lasts until the next one begins."""
        scale = time_scale(self.init)
        facts = [segment.facts for segment in self.segments]
        ends_ticks = [*(following.from_ticks for following in facts[1:]), facts[-1].until_ticks]
        listed = tuple(
            hls.Segment(uri=segment.uri, duration_s=(end_ticks - segment.facts.from_ticks) / scale)
            for segment, end_ticks in zip(self.segments, ends_ticks, strict=True)
        )
        return hls.MediaPlaylist(
            segments=listed,
            map_uri=hls.INIT_NAME,
            target_duration_s=hls.target_duration_s(listed),
            complete=True,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """Renditions that are encoded from a source with one decode.

    Segments begin at `starts_s`, in seconds of the film; None leaves the times to the encoder, and
    then the film can't be divided into parts. `foreign_inits` are init segments of other encoders,
    by rendition: segments are made so that they can share these (`packaging.avc.shared_init`).
    """

    source_url: str
    probe: Probe
    plan: Plan
    rungs: Sequence[Rung]
    starts_s: Sequence[float] | None
    foreign_inits: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names of the renditions."""
        return [rung.name for rung in self.rungs]

    @property
    def is_snapped(self) -> bool:
        """Return whether frames are moved to exact times, so that their rate is constant.

        Frames that change their size are not: FFmpeg restarts the filters then, which lose the
        first frame's time.
        """
        video = self.probe.video
        keeps_times = self.plan.keeps_times or self.plan.is_held or video.changes_size
        return video.grid_lead is not None and not keeps_times


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Consecutive segments of a pass: from the number `first` to before the number `until`.

    None as `until` stands for the end of the film. The names of the segments begin with `prefix`,
    so that workers do not overwrite each other's.
    """

    first: int = 0
    until: int | None = None
    prefix: str = ""

    def end(self, starts_s: Sequence[float] | None) -> int | None:
        """Return the number of the first segment after the part; None at the end of the film."""
        if starts_s is None or self.until is None or self.until >= len(starts_s):
            return None
        return self.until

    def after_s(self, of_pass: Pass) -> Fraction | None:
        """Return when the last frame before the part is shown, in seconds of the film.

        None if the part begins the film.
        """
        if not self.first or of_pass.starts_s is None:
            return None
        return frame_before(
            of_pass.probe.video,
            of_pass.starts_s[self.first],
            is_snapped=of_pass.is_snapped,
            is_held=of_pass.plan.is_held,
        )

    def span_s(self, of_pass: Pass) -> tuple[float, float]:
        """Return when the part begins and ends, in seconds of the film."""
        starts_s = of_pass.starts_s or (0.0,)
        end = self.end(of_pass.starts_s)
        until_s = of_pass.probe.duration_s if end is None else starts_s[end]
        return starts_s[self.first], until_s


def is_whole(segment: Segment, rung: Rung, starts_s: Sequence[float] | None) -> bool:
    """Return whether a segment lasts until the next one; one that ffmpeg left early does not."""
    if starts_s is None or segment.number + 1 >= len(starts_s):
        return True
    planned_s = starts_s[segment.number + 1] - starts_s[segment.number]
    return segment.duration_s >= planned_s - float(1 / rung.fps) - JOIN_TOLERANCE_S


def check_joins(renditions: Mapping[str, Rendition]) -> None:
    """Raise PartsDontJoin unless each segment begins where the one before it ends."""
    for name, rendition in renditions.items():
        scale = time_scale(rendition.init)
        for before, after in pairwise(rendition.segments):
            gap_s = (after.facts.from_ticks - before.facts.until_ticks) / scale
            if abs(gap_s) > JOIN_TOLERANCE_S:
                raise PartsDontJoin(f"{name} has a gap of {gap_s:.3f} s at {after.number}")
