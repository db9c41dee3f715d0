"""Workshop: the page on which editors change a video, part by part."""

from portal.videos.feature import Feature

FEATURE = Feature(name="workshop", routes=("pages",))
