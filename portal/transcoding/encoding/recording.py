"""Tell of the segments of encoded renditions as they come into storage."""

from dataclasses import dataclass, field

from portal.transcoding.encoding.continuation import MadeSegment, OnMade, check_join
from portal.transcoding.encoding.segment_upload import SegmentUpload, segment_number


@dataclass(frozen=True, slots=True)
class Recording:
    """Tells `on_made` of the segments of one run, for a later one that goes on after them.

    `begun` are the renditions of which some segment was stored.
    """

    upload: SegmentUpload
    on_made: OnMade
    begun: set[str] = field(default_factory=set)

    async def stored(self, name: str) -> None:
        """A segment is in storage. Raises NotContinuable when it follows none of those before."""
        rendition, _, uri = name.partition("/")
        facts, after = self.upload.facts.get(name), self.upload.after
        if facts is None:
            return
        number = segment_number(uri)
        if number == (after.number if after else 0):
            init = await self.upload.put_init(rendition)
            if after:
                check_join(after, rendition, init, facts)
        self.begun.add(rendition)
        size_bytes = self.upload.sizes_bytes[name]
        self.on_made(rendition, number, MadeSegment(uri=uri, size_bytes=size_bytes, facts=facts))
